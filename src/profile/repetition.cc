// SPDX-License-Identifier: Apache-2.0
#include "profile/repetition.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace kernelpro {
namespace {

/// Prefix hashes modulo the prime 2^61 - 1.
class Hashes {
 public:
  explicit Hashes(std::span<const std::uint32_t> items) : items_(items) {
    prefix_.resize(items.size() + 1);
    power_.resize(items.size() + 1);
    power_[0] = 1;
    for (std::size_t i = 0; i < items.size(); ++i) {
      prefix_[i + 1] = Reduce(Multiply(prefix_[i], kBase) + items[i] + 1);
      power_[i + 1] = Multiply(power_[i], kBase);
    }
  }

  /// Length of the longest common prefix of the suffixes at a and b.
  [[nodiscard]] std::size_t Forward(std::size_t a, std::size_t b) const {
    return Search(items_.size() - std::max(a, b),
                  [&](std::size_t k) { return Slice(a, a + k) == Slice(b, b + k); });
  }

  /// Length of the longest common suffix of the prefixes that end before a and b.
  [[nodiscard]] std::size_t Backward(std::size_t a, std::size_t b) const {
    return Search(std::min(a, b),
                  [&](std::size_t k) { return Slice(a - k, a) == Slice(b - k, b); });
  }

 private:
  static constexpr std::uint64_t kPrime = (1ULL << 61U) - 1;
  static constexpr std::uint64_t kBase = 0x1b873593cc9e2d51ULL % kPrime;

  static std::uint64_t Reduce(std::uint64_t x) {
    x = (x & kPrime) + (x >> 61U);
    return x >= kPrime ? x - kPrime : x;
  }

  static std::uint64_t Multiply(std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return Reduce(static_cast<std::uint64_t>(product & kPrime) +
                  static_cast<std::uint64_t>(product >> 61U));
  }

  [[nodiscard]] std::uint64_t Slice(std::size_t begin, std::size_t end) const {
    return Reduce(prefix_[end] + kPrime - Multiply(prefix_[begin], power_[end - begin]));
  }

  /// The largest k <= most that holds; it holds for all smaller ones. Most are short: gallop.
  template <class Holds>
  static std::size_t Search(std::size_t most, const Holds& holds) {
    std::size_t low = 0;
    std::size_t step = 1;
    while (low + step <= most && holds(low + step)) {
      low += step;
      step *= 2;
    }
    std::size_t high = std::min(most, low + step - 1);
    while (low < high) {
      const std::size_t middle = low + (high - low + 1) / 2;
      if (holds(middle)) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  std::span<const std::uint32_t> items_;
  std::vector<std::uint64_t> prefix_, power_;
};

class Finder {
 public:
  Finder(std::span<const std::uint32_t> items, std::span<const double> weights, std::size_t least)
      : items_(items), least_(least), hashes_(items), sums_(items.size() + 1) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      sums_[i + 1] = sums_[i] + weights[i];
    }
  }

  std::optional<Repetition> Find() {
    for (const bool reversed : {false, true}) {
      // The longest Lyndon word at i ends where the next smaller suffix begins.
      std::vector<std::size_t> next(items_.size());
      for (std::size_t i = items_.size(); i-- > 0;) {
        std::size_t j = i + 1;
        while (j < items_.size() && Smaller(i, j, reversed)) {
          j = next[j];
        }
        next[i] = j;
        Extend(i, j - i);
      }
    }
    return best_;
  }

 private:
  [[nodiscard]] bool Smaller(std::size_t a, std::size_t b, bool reversed) const {
    const std::size_t same = hashes_.Forward(a, b);
    if (std::max(a, b) + same == items_.size()) {
      return a > b;  // the shorter one
    }
    return (items_[a + same] < items_[b + same]) != reversed;
  }

  /// The maximal stretch of this period around [at, at + period).
  void Extend(std::size_t at, std::size_t period) {
    Consider(at - hashes_.Backward(at, at + period), at + period + hashes_.Forward(at, at + period),
             period);
  }

  void Consider(std::size_t begin, std::size_t end, std::size_t period) {
    const std::size_t repeats = (end - begin) / period;
    if (repeats < least_) {
      return;
    }
    const double weight = sums_[begin + repeats * period] - sums_[begin];
    const bool better = !best_ || weight > weight_ ||
                        (weight == weight_ && (period < best_->length ||
                                               (period == best_->length && begin < best_->first)));
    if (better) {
      best_ = {begin, period, repeats};
      weight_ = weight;
    }
  }

  std::span<const std::uint32_t> items_;
  std::size_t least_;
  Hashes hashes_;
  std::vector<double> sums_;
  std::optional<Repetition> best_;
  double weight_ = 0;
};

}  // namespace

std::optional<Repetition> FindRepetition(std::span<const std::uint32_t> items,
                                         std::span<const double> weights, std::size_t least) {
  KP_CHECK(items.size() == weights.size() && least >= 2);
  return Finder(items, weights, least).Find();
}

}  // namespace kernelpro
