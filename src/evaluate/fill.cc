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

double Draw(const Fill& fill, Rng& rng, Normal& normal) {
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

}  // namespace

std::vector<std::byte> MakeInput(const TensorSpec& tensor, std::uint64_t count,
                                 std::uint64_t seed) {
  const std::size_t size = SizeOf(tensor.dtype);
  std::vector<std::byte> bytes(count * size);
  Rng rng(seed);
  Normal normal(rng);
  for (std::uint64_t i = 0; i < count; ++i) {
    StoreElement(tensor.dtype, Draw(tensor.fill, rng, normal), bytes.data() + i * size);
  }
  return bytes;
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
