// SPDX-License-Identifier: Apache-2.0
#include "emulator/model/spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// toml++ 3.3 asserts on some malformed bare keys that it then reports as errors anyway.
#define TOML_ASSERT(expression) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "base/result.h"
#include "emulator/model/model.h"
#include "emulator/model/spec_data.h"
#include "emulator/simt/engine.h"

namespace kernelpro::model {
namespace {

using Member = std::variant<double GpuSpec::*, std::uint32_t GpuSpec::*, std::uint64_t GpuSpec::*>;

/// A key of the [numbers] table: where it goes, and what its unit is in SI units.
struct Field {
  std::string_view key;
  Member member;
  double scale = 1;
};

constexpr double kKiB = 1024;

const std::vector<Field>& Fields() {
  static const std::vector<Field> kFields = {
      {"compute_capability", &GpuSpec::compute_capability},
      {"sm_count", &GpuSpec::sm_count},
      {"clock_mhz", &GpuSpec::clock_hz, 1e6},
      {"memory_gb", &GpuSpec::memory_bytes, 1e9},
      {"warps_per_sm", &GpuSpec::warps_per_sm},
      {"ctas_per_sm", &GpuSpec::ctas_per_sm},
      {"registers_per_sm", &GpuSpec::registers_per_sm},
      {"shared_per_sm_kib", &GpuSpec::shared_per_sm_bytes, kKiB},
      {"shared_per_cta_kib", &GpuSpec::shared_per_cta_bytes, kKiB},
      {"shared_reserved_per_cta_bytes", &GpuSpec::shared_reserved_per_cta_bytes},
      {"l1_kib", &GpuSpec::l1_bytes, kKiB},
      {"warp_schedulers", &GpuSpec::warp_schedulers},
      {"fp32_lanes", &GpuSpec::fp32_lanes},
      {"int_lanes", &GpuSpec::int_lanes},
      {"fp64_lanes", &GpuSpec::fp64_lanes},
      {"sfu_lanes", &GpuSpec::sfu_lanes},
      {"tensor_f16_tflops", &GpuSpec::tensor_f16_flops_per_s, 1e12},
      {"mma_sync_efficiency", &GpuSpec::mma_sync_efficiency},
      {"store_cycles_per_line", &GpuSpec::store_cycles_per_line},
      {"l2_mib", &GpuSpec::l2_bytes, kKiB * kKiB},
      {"dram_gb_s", &GpuSpec::dram_bytes_per_s, 1e9},
      {"dram_peak_gb_s", &GpuSpec::dram_peak_bytes_per_s, 1e9},
      {"l2_gb_s", &GpuSpec::l2_bytes_per_s, 1e9},
      {"latency_l1", &GpuSpec::latency_l1},
      {"latency_shared", &GpuSpec::latency_shared},
      {"latency_l2", &GpuSpec::latency_l2},
      {"latency_dram", &GpuSpec::latency_dram},
      {"latency_alu", &GpuSpec::latency_alu},
      {"latency_fp64", &GpuSpec::latency_fp64},
      {"latency_sfu", &GpuSpec::latency_sfu},
      {"latency_division", &GpuSpec::latency_division},
      {"latency_shuffle", &GpuSpec::latency_shuffle},
      {"latency_barrier", &GpuSpec::latency_barrier},
      {"cta_launches_per_cycle", &GpuSpec::cta_launches_per_cycle},
      {"cta_overhead_cycles", &GpuSpec::cta_overhead_cycles},
      {"atomic_cycles_per_sector_op", &GpuSpec::atomic_cycles_per_sector_op},
      {"launch_overhead_us", &GpuSpec::launch_overhead_us},
      {"p_norm", &GpuSpec::p_norm},
  };
  return kFields;
}

Error Bad(std::string_view label, std::string_view what) {
  return Fail(ErrorCode::kParse, fmt::format("GPU spec {}: {}", label, what));
}

/// Bytes >= 0x80 in a bare key run toml++ into undefined behaviour; the specs need none anywhere.
bool IsPlain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || byte == '\n' || byte == '\r' || (byte >= 0x20U && byte < 0x7fU);
  });
}

Result<SpecNumber> ReadNumber(const toml::table& numbers, std::string_view key,
                              std::string_view label) {
  const toml::table* entry = numbers[key].as_table();
  if (entry == nullptr) {
    return Bad(label, fmt::format("[numbers] has no table '{}'", key));
  }
  SpecNumber number;
  number.key = std::string(key);
  const std::optional<double> value = (*entry)["value"].value<double>();
  if (!value || !std::isfinite(*value) || *value <= 0 || *value > 1e9) {
    return Bad(label, fmt::format("'{}' needs a value > 0", key));
  }
  number.value = *value;
  number.source = (*entry)["source"].value_or(std::string());
  const std::optional<bool> calibrated = (*entry)["calibrated"].value<bool>();
  if (number.source.empty() || !calibrated) {
    return Bad(label, fmt::format("'{}' needs a source and calibrated = true or false", key));
  }
  number.calibrated = *calibrated;
  number.verify = (*entry)["verify"].value_or(false);
  return number;
}

void Store(GpuSpec& spec, const Field& field, double value) {
  std::visit(
      [&](auto member) {
        using Value = std::remove_reference_t<decltype(spec.*member)>;
        spec.*member = static_cast<Value>(value * field.scale);
      },
      field.member);
}

}  // namespace

Result<GpuSpec> ParseSpec(std::string_view text, std::string_view label) {
  if (!IsPlain(text)) {
    return Bad(label, "only printable ASCII is allowed");
  }
  const toml::parse_result parsed = toml::parse(text, label);
  if (!parsed) {
    return Bad(label, fmt::format("line {}: {}", parsed.error().source().begin.line,
                                  parsed.error().description()));
  }
  const toml::table& root = parsed.table();
  GpuSpec spec;
  spec.name = root["name"].value_or(std::string());
  spec.title = root["title"].value_or(std::string());
  spec.calibrated = root["calibrated"].value_or(false);
  const toml::table* numbers = root["numbers"].as_table();
  if (spec.name.empty() || spec.title.empty() || numbers == nullptr) {
    return Bad(label, "name, title and [numbers] are required");
  }
  for (const auto& [key, node] : *numbers) {
    if (std::ranges::find(Fields(), key.str(), &Field::key) == Fields().end()) {
      return Bad(label, fmt::format("unknown number '{}'", key.str()));
    }
  }
  for (const Field& field : Fields()) {
    KP_ASSIGN_OR_RETURN(SpecNumber number, ReadNumber(*numbers, field.key, label));
    Store(spec, field, number.value);
    spec.numbers.push_back(std::move(number));
  }
  return spec;
}

std::vector<std::string> SpecNames() {
  std::vector<std::string> names;
  for (const SpecText& file : EmbeddedSpecs()) {
    names.emplace_back(file.name);
  }
  return names;
}

Result<GpuSpec> LoadSpec(std::string_view name) {
  for (const SpecText& file : EmbeddedSpecs()) {
    if (file.name == name) {
      return ParseSpec(file.text, file.name);
    }
  }
  return Fail(ErrorCode::kNotFound, fmt::format("no GPU spec called '{}'; known: {}", name,
                                                fmt::join(SpecNames(), ", ")));
}

simt::EngineSpec ToEngineSpec(const GpuSpec& spec) {
  simt::EngineSpec engine;
  engine.sm_count = spec.sm_count;
  engine.warps_per_sm = spec.warps_per_sm;
  engine.l1_bytes = static_cast<std::uint32_t>(spec.l1_bytes);
  engine.l2_bytes = spec.l2_bytes;
  engine.max_shared_per_cta = static_cast<std::uint32_t>(spec.shared_per_cta_bytes);
  engine.max_threads_per_sm = spec.warps_per_sm * 32;
  engine.clock_mhz = static_cast<std::uint32_t>(spec.clock_hz / 1e6);
  return engine;
}

}  // namespace kernelpro::model
