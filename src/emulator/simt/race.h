// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "emulator/simt/handler.h"

namespace kernelpro::simt {

struct Context;
struct Decoded;
struct Warp;

/// Happens-before race detection on one CTA's shared memory, warp against warp, with vector clocks
/// (in the manner of FastTrack, Flanagan and Freund, PLDI 2009), and reads of what nobody wrote.
/// Warps are ordered by barriers (bar.arrive orders one way only) and by atomics and volatile
/// accesses of the same word. Lanes of one warp are not set against each other.
class RaceDetector {
 public:
  RaceDetector(std::uint32_t warps, std::uint64_t shared_bytes, std::uint32_t granule);

  void StartCta();
  void Arrive(std::uint32_t barrier, std::uint32_t warp, bool waits);
  void Release(std::uint32_t barrier);

  /// offsets of the lanes in `on`; each touches `bytes`. Faults are reported at most once a call.
  void Read(Context& context, const Decoded& d, const std::uint32_t* offsets, LaneMask on,
            std::uint32_t bytes);
  void Write(Context& context, const Decoded& d, const std::uint32_t* offsets, LaneMask on,
             std::uint32_t bytes);
  /// An asynchronous copy writes at any time from its start to its finish, which its own warp sees
  /// in its wait: whoever touches the words in between, its own thread included, races with it.
  void StartCopy(Context& context, const Decoded& d, const std::uint32_t* offsets, LaneMask on,
                 std::uint32_t bytes);
  /// `waited` has waited for it. nullptr: nobody has; the copy counts as written when it was
  /// issued, and its arrival at an mbarrier orders it.
  void FinishCopy(const std::uint32_t* offsets, LaneMask on, std::uint32_t bytes,
                  const Warp* waited);
  /// Atomics and volatile accesses: order this warp after all earlier releases of the same words.
  void Acquire(const Context& context, const std::uint32_t* offsets, LaneMask on);
  void ReleaseTo(const Context& context, const std::uint32_t* offsets, LaneMask on);

 private:
  static constexpr std::uint32_t kMaxWarps = 32;
  using Clock = std::array<std::uint32_t, kMaxWarps>;

  struct Cell {
    std::uint32_t write_clock = 0;  ///< 0: not written
    std::uint32_t write_instruction = 0;
    std::uint32_t read_clock = 0;  ///< of read_warp, when it is the only reader since the write
    std::uint32_t read_instruction = 0;
    std::uint32_t shared_readers = 0;  ///< 1 + index into read_clocks_, when several warps read
    std::uint8_t write_warp = 0;
    std::uint8_t read_warp = 0;
    bool copying = false;  ///< write_warp's copy is in flight
  };

  [[nodiscard]] bool Ordered(std::uint32_t warp, std::uint32_t other, std::uint32_t clock) const {
    return clock == 0 || warp == other || clocks_[warp][other] >= clock;
  }

  void Report(Context& context, const Decoded& d, int lane, std::uint32_t offset, bool store,
              const char* earlier, std::uint32_t instruction, std::uint32_t other);
  void ReportCopy(Context& context, const Decoded& d, int lane, std::uint32_t offset, bool store,
                  const Cell& cell);
  void ReportUninitialised(Context& context, const Decoded& d, int lane, std::uint32_t offset);
  void NoteRead(Cell& cell, std::uint32_t warp, std::uint32_t instruction);

  std::uint32_t warps_;
  std::uint32_t granule_;
  std::vector<Cell> cells_;
  std::vector<Clock> read_clocks_;
  std::array<Clock, kMaxWarps> clocks_{};

  struct Phase {
    Clock joined{};
    std::uint32_t waiting = 0;  ///< warps to update on release
    std::uint32_t arrived = 0;
  };

  std::array<Phase, 16> phases_{};
  std::unordered_map<std::uint32_t, Clock> words_;
};

}  // namespace kernelpro::simt
