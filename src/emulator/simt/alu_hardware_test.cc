// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/simt/alu_test_util.h"

// What an H200 returned for edge-heavy inputs of more than 900 opcodes (tests/data/h200/README.md):
// equal bit for bit, except the approximations, which are held to the error bounds measured there.
namespace kernelpro::simt::alu_test {
namespace {

struct Record {
  std::string opcode;
  unsigned width = 32;  ///< of the register that received the result
  std::vector<std::vector<std::uint64_t>> sources;
  std::vector<std::uint64_t> results;
};

class Reader {
 public:
  explicit Reader(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
  }

  [[nodiscard]] bool empty() const { return bytes_.empty(); }

  std::string Text(std::size_t n) {
    std::string text = bytes_.substr(at_, n);
    at_ += n;
    return text;
  }

  std::uint64_t Number(std::size_t bytes) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + at_, bytes);
    at_ += bytes;
    return value;
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

std::vector<std::uint64_t> ReadColumn(Reader* reader, std::size_t bits, std::size_t count) {
  std::vector<std::uint64_t> column(count);
  for (auto& value : column) {
    value = reader->Number(bits == 1 ? 4 : bits / 8);
  }
  return column;
}

std::vector<Record> ReadRecords(const std::string& path) {
  Reader reader(path);
  EXPECT_FALSE(reader.empty()) << path;
  std::vector<Record> records;
  if (reader.empty()) {
    return records;
  }
  EXPECT_EQ(reader.Text(7), "KPALU1\n");
  const std::uint64_t count = reader.Number(4);
  const std::uint64_t lanes = reader.Number(4);
  for (std::uint64_t i = 0; i < count; ++i) {
    Record record;
    record.opcode = reader.Text(reader.Number(1));
    const std::uint64_t sources = reader.Number(1);
    std::vector<std::size_t> bits;
    for (std::uint64_t k = 0; k <= sources; ++k) {
      bits.push_back(reader.Number(1));
    }
    for (std::uint64_t k = 1; k <= sources; ++k) {
      record.sources.push_back(ReadColumn(&reader, bits[k], lanes));
    }
    record.width = static_cast<unsigned>(bits[0]);
    record.results = ReadColumn(&reader, bits[0], lanes);
    records.push_back(std::move(record));
  }
  return records;
}

/// Allowed distance for the approximations: units in the last place of an f32 (f16, bf16), or an
/// absolute error where the hardware's is absolute.
struct Bound {
  double ulp = 0;
  double absolute = 0;
};

Bound BoundOf(std::string_view opcode) {
  const auto starts = [opcode](std::string_view prefix) { return opcode.starts_with(prefix); };
  if (opcode.find(".approx") == std::string_view::npos && !starts("div.full")) {
    return {};
  }
  if (opcode.ends_with("f16")) {
    return {.ulp = 1};
  }
  if (starts("lg2")) {
    return {.ulp = 2, .absolute = 2.1e-6};
  }
  if (starts("sin") || starts("cos")) {
    return {.absolute = 4e-7};
  }
  if (starts("tanh")) {
    return {.ulp = 131, .absolute = 8e-6};
  }
  return {.ulp = 2};
}

bool Near(std::uint64_t got, std::uint64_t want, unsigned width, Bound bound) {
  if (got == want) {
    return true;
  }
  const std::uint64_t sign = std::uint64_t{1} << (width - 1);
  if (((got ^ want) & sign) == 0) {
    const auto distance = static_cast<double>(got > want ? got - want : want - got);
    const double unit = width == 64 ? 0x1p32 : 1;  // f64 approximations have 20 mantissa bits
    if (distance <= bound.ulp * unit) {
      return true;
    }
  }
  return width == 32 && std::fabs(double{AsF32(got)} - AsF32(want)) <= bound.absolute;
}

/// Conversions to 8 bits are observed in a 16-bit register: their sign must extend.
ptx::Type TypeOfWidth(unsigned width) {
  switch (width) {
    case 1:
      return ptx::Type::kPred;
    case 16:
      return ptx::Type::kB16;
    case 64:
      return ptx::Type::kB64;
    default:
      return ptx::Type::kB32;
  }
}

std::size_t CountMismatches(const Record& record, AluIsa isa, std::string* first) {
  const AluDecode decode = SelectAluFor(isa, Parse(record.opcode));
  if (decode.run == nullptr || decode.sources != static_cast<int>(record.sources.size())) {
    *first = record.opcode + " is not supported";
    return record.results.size();
  }
  const Bound bound = BoundOf(record.opcode);
  std::size_t mismatches = 0;
  for (std::size_t base = 0; base < record.results.size(); base += kWarpSize) {
    Slots slots;
    const std::size_t lanes = std::min<std::size_t>(kWarpSize, record.results.size() - base);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      for (int k = 0; k < decode.sources; ++k) {
        slots.Set(k, decode.src[k], static_cast<int>(lane),
                  record.sources[static_cast<std::size_t>(k)][base + lane]);
      }
    }
    decode.run(slots.data(), StandardOperands(), kAllLanes);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const std::uint64_t got = slots.Get(kDst, TypeOfWidth(record.width), static_cast<int>(lane));
      const std::uint64_t want = record.results[base + lane];
      if (!Near(got, want, record.width, bound)) {
        Values values{};
        for (std::size_t k = 0; k < record.sources.size(); ++k) {
          values[k] = record.sources[k][base + lane];
        }
        if (mismatches++ == 0) {
          char text[64];
          std::snprintf(text, sizeof text, " = %llx, hardware %llx",
                        static_cast<unsigned long long>(got),
                        static_cast<unsigned long long>(want));
          *first = Describe(record.opcode, values, decode.sources) + text;
        }
      }
    }
  }
  return mismatches;
}

void CheckFile(const std::string& name, std::size_t least) {
  const std::vector<Record> records = ReadRecords(KP_SOURCE_DIR "/tests/data/h200/" + name);
  ASSERT_GE(records.size(), least);
  for (const AluIsa isa : Isas()) {
    for (const Record& record : records) {
      std::string first;
      const std::size_t mismatches = CountMismatches(record, isa, &first);
      EXPECT_EQ(mismatches, 0U) << first;
    }
  }
}

TEST(HardwareTest, EveryRecordedOpcode) {
  CheckFile("alu_records.bin", 883);
}

TEST(HardwareTest, FlushingAndNanBoundaries) {
  CheckFile("alu_boundary.bin", 44);
}

TEST(HardwareTest, SpecialFunctionsOnOrdinaryArguments) {
  CheckFile("sfu_records.bin", 11);
}

TEST(HardwareTest, AWrongResultIsNoticed) {
  std::string first;
  const Record wrong = {.opcode = "add.u32", .width = 32, .sources = {{1}, {2}}, .results = {4}};
  EXPECT_EQ(CountMismatches(wrong, AluIsa::kV2, &first), 1U);
  const Record far = {
      .opcode = "ex2.approx.f32", .width = 32, .sources = {{0}}, .results = {0x3f800003}};
  EXPECT_EQ(CountMismatches(far, AluIsa::kV2, &first), 1U);
  const Record near = {
      .opcode = "ex2.approx.f32", .width = 32, .sources = {{0}}, .results = {0x3f800002}};
  EXPECT_EQ(CountMismatches(near, AluIsa::kV2, &first), 0U);
}

}  // namespace
}  // namespace kernelpro::simt::alu_test
