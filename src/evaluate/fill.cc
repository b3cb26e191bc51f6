// SPDX-License-Identifier: Apache-2.0
#include "evaluate/fill.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/rng.h"
#include "evaluate/numeric.h"

namespace kernelpro {
namespace {

/// Standard normal numbers, two a time (Box-Muller).
class Normal {
 public:
  explicit Normal(Rng& rng) : rng_(rng) {}

  [[nodiscard]] double Next() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    const double radius = std::sqrt(-2.0 * std::log(1.0 - rng_.Uniform()));
    const double angle = 2.0 * std::numbers::pi * rng_.Uniform();
    spare_ = radius * std::sin(angle);
    has_spare_ = true;
    return radius * std::cos(angle);
  }

 private:
  Rng& rng_;
  double spare_ = 0;
  bool has_spare_ = false;
};

double DrawFill(const Fill& fill, Rng& rng, Normal& normal) {
  switch (fill.kind) {
    case Fill::Kind::kNormal:
      return fill.a + fill.b * normal.Next();
    case Fill::Kind::kUniform:
      return fill.a + (fill.b - fill.a) * rng.Uniform();
    case Fill::Kind::kIntegers: {
      const auto range = static_cast<std::uint64_t>(std::max(0.0, fill.b - fill.a)) + 1U;
      return fill.a + static_cast<double>(rng.Below(range));
    }
    case Fill::Kind::kZeros:
      return 0;
    case Fill::Kind::kOnes:
      return 1;
  }
  return 0;
}

/// Deviations that an outlier and the heaviest tail reach: a sum of some thousand others does not
/// hide it. Half precision has no room for more.
double FarthestDeviations(DType dtype) {
  return dtype == DType::kF16 ? 64 : 1000;
}

double LargestFinite(DType dtype) {
  return dtype == DType::kF16 ? 65504.0 : dtype == DType::kF64 ? 0x1p1023 : 0x1p127;
}

/// The smallest step of a float type, and how many of them are below its smallest normal number.
struct Subnormals {
  double step = 0;
  std::uint64_t count = 0;
};

Subnormals SubnormalsOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return {0x1p-1074, std::uint64_t{1} << 52U};
    case DType::kF16:
      return {0x1p-24, 1U << 10U};
    case DType::kBF16:
      return {0x1p-133, 1U << 7U};
    default:
      return {0x1p-149, 1U << 23U};
  }
}

/// A normal fill without a promise: any real number may come.
class FreeValues {
 public:
  FreeValues(const TensorSpec& tensor, Distribution distribution, Rng& rng, Normal& normal)
      : tensor_(tensor), distribution_(distribution), rng_(rng), normal_(normal) {
    constexpr double kOctaves = 3;  // The scale of zero-mean inputs: 1/8 to 8 deviations.
    scale_ = tensor.fill.b * std::exp2(kOctaves * (2 * rng.Uniform() - 1));
  }

  [[nodiscard]] double Next() {
    const Fill& fill = tensor_.fill;
    switch (distribution_) {
      case Distribution::kZeroMean:
        return scale_ * normal_.Next();
      case Distribution::kHeavyTails: {
        // Student's t with two degrees of freedom: its variance is infinite.
        const double t = normal_.Next() / std::sqrt(-std::log(1.0 - rng_.Uniform()));
        const double farthest = FarthestDeviations(tensor_.dtype);
        return fill.a + fill.b * std::clamp(t, -farthest, farthest);
      }
      case Distribution::kTies:
        return fill.a + fill.b * (static_cast<double>(rng_.Below(9)) - 4) / 2;
      case Distribution::kDenormals:
        return rng_.Below(8) == 0 ? Denormal() : DrawFill(fill, rng_, normal_);
      case Distribution::kFill:
      case Distribution::kOutlier:
        return DrawFill(fill, rng_, normal_);
    }
    return 0;
  }

  [[nodiscard]] double Outlier() {
    const double far = tensor_.fill.b * FarthestDeviations(tensor_.dtype);
    return tensor_.fill.a + (rng_.Below(2) == 0 ? far : -far);
  }

 private:
  [[nodiscard]] double Denormal() {
    const auto [step, count] = SubnormalsOf(tensor_.dtype);
    const double value = step * static_cast<double>(1 + rng_.Below(count - 1));
    return rng_.Below(2) == 0 ? value : -value;
  }

  const TensorSpec& tensor_;
  Distribution distribution_;
  Rng& rng_;
  Normal& normal_;
  double scale_ = 1;
};

/// A fill with a range that the task's reference may rely on.
class RangedValues {
 public:
  RangedValues(const TensorSpec& tensor, Distribution distribution, Rng& rng, Normal& normal)
      : fill_(tensor.fill), distribution_(distribution), rng_(rng), normal_(normal) {
    const bool real = fill_.kind != Fill::Kind::kIntegers;
    low_ = fill_.kind == Fill::Kind::kNormal ? fill_.a - 3 * fill_.b : fill_.a;
    high_ = fill_.kind == Fill::Kind::kNormal ? fill_.a + 3 * fill_.b : fill_.b;
    // Exactly 0 and the open upper end are where logarithms and quotients end: stay inside.
    const double inside = real ? (high_ - low_) * 0x1p-10 : 0;
    edges_[0] = low_ == 0 ? low_ + inside : low_;
    edges_[1] = high_ - inside;
  }

  [[nodiscard]] double Next() {
    if (distribution_ == Distribution::kTies) {
      const double share = static_cast<double>(rng_.Below(9)) / 8;
      const double value = edges_[0] + (edges_[1] - edges_[0]) * share;
      return fill_.kind == Fill::Kind::kIntegers ? std::floor(value) : value;
    }
    if (distribution_ == Distribution::kHeavyTails && rng_.Below(4) == 0) {
      return edges_[rng_.Below(2)];
    }
    return DrawFill(fill_, rng_, normal_);
  }

  [[nodiscard]] double Outlier() const {
    return std::fabs(edges_[0]) > std::fabs(edges_[1]) ? edges_[0] : edges_[1];
  }

 private:
  Fill fill_;
  Distribution distribution_;
  Rng& rng_;
  Normal& normal_;
  double low_ = 0, high_ = 0;
  double edges_[2] = {};
};

template <class Values>
std::vector<std::byte> Make(const TensorSpec& tensor, std::uint64_t count,
                            Distribution distribution, Rng& rng, Values values) {
  const std::size_t size = SizeOf(tensor.dtype);
  const double largest = IsFloat(tensor.dtype) ? LargestFinite(tensor.dtype) : 0x1p64;
  std::vector<std::byte> bytes(count * size);
  for (std::uint64_t i = 0; i < count; ++i) {
    StoreElement(tensor.dtype, std::clamp(values.Next(), -largest, largest),
                 bytes.data() + i * size);
  }
  if (distribution == Distribution::kOutlier && count > 0) {
    StoreElement(tensor.dtype, std::clamp(values.Outlier(), -largest, largest),
                 bytes.data() + rng.Below(count) * size);
  }
  return bytes;
}

/// Whether the fill says that values come from a range, or of one sign.
bool PromisesRange(const Fill& fill) {
  return fill.kind != Fill::Kind::kNormal || std::fabs(fill.a) >= 3 * fill.b;
}

}  // namespace

std::vector<std::byte> MakeInput(const TensorSpec& tensor, std::uint64_t count, std::uint64_t seed,
                                 Distribution distribution) {
  Rng rng(seed);
  Normal normal(rng);
  const Fill& fill = tensor.fill;
  const bool constant = fill.kind == Fill::Kind::kZeros || fill.kind == Fill::Kind::kOnes ||
                        (fill.kind == Fill::Kind::kNormal && fill.b == 0);
  if (distribution == Distribution::kFill || constant) {
    return Make(tensor, count, Distribution::kFill, rng,
                RangedValues(tensor, Distribution::kFill, rng, normal));
  }
  if (PromisesRange(fill)) {
    return Make(tensor, count, distribution, rng, RangedValues(tensor, distribution, rng, normal));
  }
  return Make(tensor, count, distribution, rng, FreeValues(tensor, distribution, rng, normal));
}

void Poison(std::span<std::byte> bytes, std::uint64_t seed) {
  Rng rng(seed);
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    // 0x7ff0.... in every 16-bit piece is a NaN of f16 and bf16, hence of f32 and f64 too: the
    // exponent bits of all four formats are set, and so is a mantissa bit.
    const std::uint64_t word = rng.Next() | 0x7ff87ff87ff87ff8ULL;
    std::memcpy(bytes.data() + i, &word, std::min<std::size_t>(8, bytes.size() - i));
  }
}

}  // namespace kernelpro
