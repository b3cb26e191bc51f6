// SPDX-License-Identifier: Apache-2.0
#include "llm/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

namespace kernelpro::llm {
namespace {

using std::chrono::milliseconds;

std::uint64_t Tokens(const Usage& usage) {
  return usage.input + usage.output;
}

double Seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

Error Reached(const std::string& cap, const std::string& state) {
  return Fail(ErrorCode::kBudget,
              fmt::format("the cap of {} is reached ({}); nothing was sent: raise the cap to go on",
                          cap, state));
}

}  // namespace

Budget::Budget(Caps caps, const Clock& clock, Spent already)
    : caps_(caps), clock_(clock), start_(clock.Now()), spent_(already) {}

std::optional<milliseconds> Budget::TimeLeft() const {
  if (!caps_.time) {
    return std::nullopt;
  }
  const auto left = start_ + *caps_.time - clock_.Now();
  return std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(left));
}

Result<Budget::Reservation> Budget::Reserve(const Price& price, const Usage& at_most) {
  if (caps_.time && clock_.Now() - start_ >= *caps_.time) {
    return Reached(fmt::format("{:.0f} s", Seconds(*caps_.time)),
                   fmt::format("{:.0f} s passed", Seconds(clock_.Now() - start_)));
  }
  const std::scoped_lock lock(mutex_);
  if (caps_.dollars && spent_.dollars + reserved_dollars_ >= *caps_.dollars) {
    return Reached(
        fmt::format("{:.2f} dollars", *caps_.dollars),
        fmt::format("{:.4f} spent, {:.4f} in flight", spent_.dollars, reserved_dollars_));
  }
  const std::uint64_t tokens = spent_.input_tokens + spent_.output_tokens;
  if (caps_.tokens && tokens + reserved_tokens_ >= *caps_.tokens) {
    return Reached(fmt::format("{} tokens", *caps_.tokens),
                   fmt::format("{} spent, {} in flight", tokens, reserved_tokens_));
  }
  reserved_dollars_ += Cost(price, at_most);
  reserved_tokens_ += Tokens(at_most);
  ++in_flight_;
  return Reservation(this, price, at_most);
}

Spent Budget::spent() const {
  const std::scoped_lock lock(mutex_);
  return spent_;
}

void Budget::Finish(const Price& price, const Usage& at_most, const std::optional<Usage>& charged) {
  {
    const std::scoped_lock lock(mutex_);
    reserved_tokens_ -= Tokens(at_most);
    // Sums of floating-point numbers do not come back to 0 by themselves.
    reserved_dollars_ = --in_flight_ == 0 ? 0 : reserved_dollars_ - Cost(price, at_most);
    if (charged) {
      spent_.dollars += Cost(price, *charged);
      spent_.input_tokens += charged->input;
      spent_.output_tokens += charged->output;
      ++spent_.requests;
      spent_.estimated += charged->estimated ? 1 : 0;
    }
  }
  if (charged && charged_) {
    charged_();
  }
}

Budget::Reservation::Reservation(Reservation&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)),
      price_(other.price_),
      at_most_(other.at_most_) {}

Budget::Reservation::~Reservation() {
  if (budget_ != nullptr) {
    SettleUnknown();
  }
}

double Budget::Reservation::Settle(const Usage& usage) {
  if (budget_ == nullptr) {
    return 0;
  }
  std::exchange(budget_, nullptr)->Finish(price_, at_most_, usage);
  return Cost(price_, usage);
}

void Budget::Reservation::Release() {
  if (budget_ != nullptr) {
    std::exchange(budget_, nullptr)->Finish(price_, at_most_, std::nullopt);
  }
}

double Budget::Reservation::SettleUnknown() {
  Usage usage = at_most_;
  usage.estimated = true;
  return Settle(usage);
}

}  // namespace kernelpro::llm
