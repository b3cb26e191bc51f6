// SPDX-License-Identifier: Apache-2.0
#include "sass/matrix_shape.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace kernelpro::sass {
namespace {

struct Shape {
  unsigned m = 0, n = 0, k = 0;
  unsigned threads = 32;
};

unsigned Number(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value <= 4096 ? value : 0;
}

/// "16816" -> 16x8x16; "64x128x16" -> 64x128x16 of a warpgroup.
Shape ShapeIn(std::string_view word) {
  if (const std::size_t x = word.find('x'); x != word.npos) {
    const std::size_t y = word.find('x', x + 1);
    if (y == word.npos) {
      return {};
    }
    return {Number(word.substr(0, x)), Number(word.substr(x + 1, y - x - 1)),
            Number(word.substr(y + 1)), 128};
  }
  const bool tall = word.starts_with("168");
  if (!tall && !word.starts_with("88")) {
    return {};
  }
  return {tall ? 16U : 8U, 8, Number(word.substr(tall ? 3 : 2)), 32};
}

unsigned OperandBits(const Opcode& op) {
  if (op.Is("DMMA")) {
    return 64;
  }
  if (op.Is("BMMA", "BGMMA")) {
    return 1;
  }
  if (op.Is("OMMA") || op.Has("S4") || op.Has("U4")) {
    return 4;
  }
  if (op.Is("IMMA", "IGMMA", "QMMA", "QGMMA")) {
    return 8;
  }
  return op.Has("TF32") ? 32 : 16;
}

}  // namespace

MatrixRegisters MatrixRegistersOf(const Opcode& op) {
  Shape shape;
  for (std::size_t i = 0; i < 4 && shape.k == 0 && !op.Modifier(i).empty(); ++i) {
    shape = ShapeIn(op.Modifier(i));
  }
  if (op.Is("HMMA") && op.Modifier(0) == "884") {
    return {.d = 2, .a = 2, .b = 2, .c = 2};  // Volta: one STEP of a product by quads of lanes.
  }
  if (shape.m == 0 || shape.n == 0 || shape.k == 0) {
    return {.d = 4, .a = 4, .b = 2, .c = 4};
  }
  const bool half = op.Is("HMMA", "HGMMA", "QMMA", "QGMMA") && !op.Has("F32");
  const unsigned result_bits = op.Is("DMMA") ? 64 : half ? 16 : 32;
  const auto registers = [&shape](unsigned elements, unsigned bits) {
    return std::clamp(elements * bits / (shape.threads * 32), 1U, 255U);
  };
  const unsigned d = registers(shape.m * shape.n, result_bits);
  const unsigned a = registers(shape.m * shape.k, OperandBits(op));
  return {.d = d,
          .a = a,
          .b = shape.threads == 128 ? d : registers(shape.n * shape.k, OperandBits(op)),
          .c = d};
}

}  // namespace kernelpro::sass
