// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/simt/handler.h"

namespace kernelpro::simt {

struct Context;
struct Decoded;
struct Access;

/// Copies from global to shared memory (cp.async) that the lanes of one warp have issued and not
/// yet waited for.
///
/// PTX promises that a copy is done when its thread has waited for its group, and nothing before.
/// So here a copy takes place as late as that allows, in the wait itself: who reads shared memory
/// earlier finds the old contents. The source is read then, too. It was also looked at when the
/// copy was issued, and a difference is reported as a race: the GPU may read at either time. A
/// thread that exits drops what it has not waited for.
class AsyncCopies {
 public:
  void Clear();

  /// cp.async: checks both sides, counts the traffic, notes the copy. False on a fault.
  [[nodiscard]] bool Issue(Context& context, const Decoded& d, LaneMask on);
  /// Each lane's copies since its last commit become its newest group (which may be empty).
  void Commit(LaneMask on);

  /// cp.async.mbarrier.arrive: everything that has been issued so far, by number.
  [[nodiscard]] std::uint64_t issued() const { return issued_; }

  /// Does the copies of `lanes` that were issued before the number. The copying warp has not
  /// waited: it is ordered as the arrival at the mbarrier orders it.
  void FinishIssuedBefore(Context& context, const Decoded& d, LaneMask lanes, std::uint64_t before);
  /// Does the copies of all groups of each lane but the `left` newest ones. Copies that were not
  /// committed stay.
  void Wait(Context& context, const Decoded& d, LaneMask on, std::uint32_t left);

 private:
  static constexpr std::uint32_t kMostBytes = 16;

  /// One execution of cp.async.
  struct Copy {
    const Decoded* at = nullptr;
    LaneMask lanes = 0;  ///< still to be done
    std::uint64_t number = 0;
    std::uint32_t bytes = 0;  ///< cp-size: what is written, zeros behind the source's bytes
    std::uint32_t group[kWarpSize] = {};
    std::uint32_t to[kWarpSize] = {};
    const std::byte* from[kWarpSize] = {};
    std::uint32_t length[kWarpSize] = {};  ///< bytes of the source
    std::byte seen[kWarpSize][kMostBytes] = {};
  };

  [[nodiscard]] static bool ReadSizes(Context& context, const Decoded& d, LaneMask on, Copy& copy);
  [[nodiscard]] static bool FindSource(Context& context, const Decoded& d, LaneMask on, Copy& copy);
  [[nodiscard]] static bool FindDestination(Context& context, const Decoded& d, LaneMask on,
                                            Copy& copy);
  static void Do(Context& context, const Decoded& d, const Copy& copy, LaneMask lanes);
  void Forget();

  std::uint64_t issued_ = 0;
  std::uint32_t committed_[kWarpSize] = {};  ///< groups of each lane
  std::vector<Copy> pending_;                ///< in the order of issue
};

}  // namespace kernelpro::simt
