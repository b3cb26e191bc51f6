// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "llm/chat.h"
#include "llm/prices.h"

namespace kernelpro::llm {

/// Hard limits of what a run may spend. Unset: no limit of this kind.
struct Caps {
  std::optional<double> dollars;
  std::optional<std::uint64_t> tokens;            ///< prompt and answer together
  std::optional<std::chrono::milliseconds> time;  ///< since the Budget was made
};

struct Spent {
  double dollars = 0;
  std::uint64_t input_tokens = 0, output_tokens = 0;
  std::uint64_t requests = 0;   ///< attempts that reached a server
  std::uint64_t estimated = 0;  ///< of these, how many had to be charged at their upper bound
};

/// Keeps what was spent and refuses what would pass a cap. Every attempt first reserves its upper
/// bound and then settles what it really cost, so that with many requests in flight a cap is passed
/// by one request at most. Thread safe.
class Budget {
 public:
  Budget(Caps caps, const Clock& clock, Spent already = {});

  /// An attempt in flight. Destroying one that was not settled charges its upper bound: whoever
  /// lost sight of an attempt must assume that it was paid for.
  class Reservation {
   public:
    Reservation(Reservation&& other) noexcept;
    Reservation& operator=(Reservation&&) = delete;
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;
    ~Reservation();

    /// What the server says; returns the dollars.
    double Settle(const Usage& usage);
    /// It never reached a server, or the server said that it did no work: nothing is charged.
    void Release();
    /// Nobody said what it cost: its upper bound. What was seen of an answer bounds nothing, since
    /// reasoning is paid for and often never sent.
    double SettleUnknown();

   private:
    friend class Budget;

    Reservation(Budget* budget, Price price, Usage at_most)
        : budget_(budget), price_(price), at_most_(at_most) {}

    Budget* budget_;
    Price price_;
    Usage at_most_;
  };

  /// kBudget "the cap of 2.00 dollars is reached (1.97 spent, 0.05 in flight); ..." when what
  /// was spent and what is in flight reach a cap already.
  [[nodiscard]] Result<Reservation> Reserve(const Price& price, const Usage& at_most);

  [[nodiscard]] Spent spent() const;

  /// Called after each charge, by the thread that makes it, until it is set to nothing. Not while
  /// questions are in flight on other threads.
  void WhenCharged(std::function<void()> charged) { charged_ = std::move(charged); }

  /// Until the cap of time, at least 0; nothing when there is none.
  [[nodiscard]] std::optional<std::chrono::milliseconds> TimeLeft() const;

  [[nodiscard]] const Caps& caps() const { return caps_; }

 private:
  void Finish(const Price& price, const Usage& at_most, const std::optional<Usage>& charged);

  const Caps caps_;
  const Clock& clock_;
  const std::chrono::nanoseconds start_;
  std::function<void()> charged_;
  mutable std::mutex mutex_;
  Spent spent_;
  double reserved_dollars_ = 0;
  std::uint64_t reserved_tokens_ = 0, in_flight_ = 0;
};

}  // namespace kernelpro::llm
