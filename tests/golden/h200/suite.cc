// SPDX-License-Identifier: Apache-2.0
#include "suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "compile_suite.h"
#include "emulator/model/model.h"
#include "emulator/ptx/module.h"
#include "emulator/simt/engine.h"
#include "emulator/simt/memory.h"
#include "emulator/simt/report.h"
#include "measurements.h"

namespace kernelpro::golden {
namespace {

/// Histograms are the only kernels whose traffic depends on the data.
Status FillRandom(simt::DeviceMemory& memory, std::uint64_t address, std::uint64_t bytes) {
  KP_ASSIGN_OR_RETURN(const std::span<std::byte> view, memory.View(address, bytes));
  Rng rng(51);
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= view.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t bits = rng.Next();
    std::memcpy(&view[at], &bits, sizeof(bits));
  }
  return Ok();
}

template <class T>
void Put(std::vector<std::byte>& block, std::size_t offset, T value) {
  if (offset + sizeof(T) <= block.size()) {
    std::memcpy(&block[offset], &value, sizeof(T));
  }
}

Result<std::vector<std::byte>> Parameters(const Variant& variant, const ptx::Function& kernel,
                                          simt::DeviceMemory& memory) {
  if (kernel.parameters.size() != variant.arguments.size()) {
    return Fail(ErrorCode::kInvalidArgument, "argument count differs from the kernel's");
  }
  std::vector<std::byte> block(kernel.parameters.back().offset + kernel.parameters.back().bytes);
  for (std::size_t i = 0; i < variant.arguments.size(); ++i) {
    const Argument& argument = variant.arguments[i];
    const std::size_t at = kernel.parameters[i].offset;
    switch (argument.kind) {
      case Argument::Kind::kBufferFloats: {
        const auto bytes = static_cast<std::uint64_t>(argument.value) * sizeof(float);
        KP_ASSIGN_OR_RETURN(const std::uint64_t address,
                            memory.Allocate(bytes, kernel.parameters[i].name));
        if (i == 0 && variant.kernel.starts_with("hist")) {
          KP_RETURN_IF_ERROR(FillRandom(memory, address, bytes));
        }
        Put(block, at, address);
        break;
      }
      case Argument::Kind::kInt32:
        Put(block, at, static_cast<std::int32_t>(argument.value));
        break;
      case Argument::Kind::kFloat:
        Put(block, at, static_cast<float>(argument.value));
        break;
      case Argument::Kind::kDouble:
        Put(block, at, argument.value);
        break;
    }
  }
  return block;
}

struct Sums {
  double load_sectors = 0, store_sectors = 0, load_hits = 0;
};

Sums SumSectors(const ptx::Function& kernel, const simt::LaunchReport& report) {
  Sums out;
  for (std::size_t i = 0; i < report.instructions.size(); ++i) {
    const ptx::Instruction& op = kernel.body[i];
    const simt::InstructionCounters& c = report.instructions[i];
    if (op.parts.front() == "ld") {
      out.load_sectors += static_cast<double>(c.sectors);
      out.load_hits += static_cast<double>(c.l1_hit_sectors);
    } else if (op.parts.front() == "st") {
      out.store_sectors += static_cast<double>(c.sectors);
    }
  }
  return out;
}

Row Compare(const Variant& v, const ptx::Function& kernel, const simt::LaunchReport& report) {
  Row row;
  row.name = v.name;
  row.measured_us = v.measured_us;
  const Sums sums = SumSectors(kernel, report);
  const double scale = double(report.ctas) / double(report.ctas_executed);
  const std::string sectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_";
  const std::string wavefronts = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_";
  const double ncu_loads = v.Metric(sectors + "ld.sum");
  row.load_sectors = {sums.load_sectors * scale, ncu_loads};
  row.store_sectors = {sums.store_sectors * scale, v.Metric(sectors + "st.sum")};
  row.load_wavefronts.ncu = v.Metric(wavefronts + "ld.sum");
  row.store_wavefronts.ncu = v.Metric(wavefronts + "st.sum");
  row.instructions.ncu = v.Metric("smsp__inst_executed.sum");
  row.l1_hit_rate = {sums.load_hits / std::max(1.0, sums.load_sectors),
                     v.Metric(sectors + "ld_lookup_hit.sum") / std::max(1.0, ncu_loads)};
  return row;
}

Result<Row> RunVariant(const Variant& v, const CompiledSuite& suite, const model::GpuSpec& spec) {
  const ptx::Function* kernel = suite.module->Find(v.kernel);
  const auto resources = suite.resources.find(v.kernel);
  if (kernel == nullptr || resources == suite.resources.end()) {
    return Fail(ErrorCode::kNotFound, fmt::format("no kernel {} in the suite", v.kernel));
  }
  simt::DeviceMemory memory(spec.memory_bytes);
  KP_ASSIGN_OR_RETURN(const std::unique_ptr<simt::Program> program,
                      simt::Program::Create(suite.module, memory));
  KP_ASSIGN_OR_RETURN(std::vector<std::byte> parameters, Parameters(v, *kernel, memory));
  const model::Occupancy occupancy = model::ComputeOccupancy(
      spec, resources->second, static_cast<std::uint32_t>(v.block.Count()), 0);
  simt::LaunchConfig config;
  config.kernel = v.kernel;
  config.grid = v.grid;
  config.block = v.block;
  config.parameters = std::move(parameters);
  config.mode = simt::Mode::kSample;
  config.resident_ctas_per_sm = occupancy.ctas_per_sm;
  config.l1_carveout_bytes =
      model::SharedCarveout(spec, occupancy.ctas_per_sm, resources->second.static_shared_bytes);
  const auto start = std::chrono::steady_clock::now();
  KP_ASSIGN_OR_RETURN(const simt::LaunchReport report,
                      simt::Launch(*program, config, model::ToEngineSpec(spec), memory));
  if (!report.Completed()) {
    return Fail(ErrorCode::kInternal, report.faults.front().message);
  }
  Row row = Compare(v, *kernel, report);
  row.emulation_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  row.modelled = model::ModelTime(spec, *kernel, report, resources->second);
  row.load_wavefronts.ours = row.modelled.shared_load_wavefronts;
  row.store_wavefronts.ours = row.modelled.shared_store_wavefronts;
  row.instructions.ours = row.modelled.issued_warp_instructions;
  return row;
}

/// Ranks 0..n-1 (all values differ in practice; ties keep their order).
std::vector<double> Ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    ranks[order[i]] = static_cast<double>(i);
  }
  return ranks;
}

double Spearman(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = Ranks(a);
  const std::vector<double> y = Ranks(b);
  const auto n = static_cast<double>(x.size());
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    squares += (x[i] - y[i]) * (x[i] - y[i]);
  }
  return 1 - 6 * squares / (n * (n * n - 1));
}

void JudgeSectors(const Pair& pair, Accuracy& out) {
  constexpr double kTolerance = 0.005;
  if (pair.ncu > 0) {
    ++out.sector_pairs;
    out.sector_pairs_right += std::abs(pair.Ratio() - 1) <= kTolerance ? 1 : 0;
  }
}

}  // namespace

double Pair::Ratio() const {
  return ncu == 0 && ours == 0 ? 1 : ours / ncu;
}

Result<std::vector<Row>> RunSuite(const CompiledSuite& suite, std::span<const Variant> variants,
                                  const model::GpuSpec& spec) {
  std::vector<Row> rows;
  for (const Variant& variant : variants) {
    Result<Row> row = RunVariant(variant, suite, spec);
    if (!row) {
      return std::move(row).error().Wrap(variant.name);
    }
    rows.push_back(std::move(*row));
  }
  return rows;
}

Accuracy Judge(std::span<const Row> rows) {
  Accuracy out;
  std::vector<double> modelled;
  std::vector<double> measured;
  std::vector<double> errors;
  double log_sum = 0;
  const auto n = static_cast<double>(rows.size());
  for (const Row& row : rows) {
    const double ratio = row.Ratio();
    modelled.push_back(row.modelled.time_us);
    measured.push_back(row.measured_us);
    errors.push_back(std::abs(ratio - 1));
    log_sum += std::abs(std::log(ratio));
    out.within_2x += (ratio > 0.5 && ratio < 2 ? 1 : 0) / n;
    out.within_1_5x += (ratio > 1 / 1.5 && ratio < 1.5 ? 1 : 0) / n;
    JudgeSectors(row.load_sectors, out);
    JudgeSectors(row.store_sectors, out);
  }
  out.spearman = Spearman(modelled, measured);
  out.geometric_factor = std::exp(log_sum / n);
  out.mape = std::accumulate(errors.begin(), errors.end(), 0.0) / n;
  std::ranges::sort(errors);
  out.median_error = errors[errors.size() / 2];
  return out;
}

std::string FormatRow(const Row& row) {
  std::string bounds;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, row.modelled.bounds.size()); ++i) {
    const model::Bound& bound = row.modelled.bounds[i];
    bounds += fmt::format(" {}={:.0f}%", bound.name, bound.share * 100);
  }
  return fmt::format(
      "{:<16} {:9.1f} {:9.1f} {:5.2f} ld {:6.4f} st {:6.4f} lds {:5.2f} sts {:5.2f} inst {:5.2f} "
      "hit {:4.2f}/{:4.2f} {:6.3f}s{}",
      row.name, row.measured_us, row.modelled.time_us, row.Ratio(), row.load_sectors.Ratio(),
      row.store_sectors.Ratio(), row.load_wavefronts.Ratio(), row.store_wavefronts.Ratio(),
      row.instructions.Ratio(), row.l1_hit_rate.ours, row.l1_hit_rate.ncu, row.emulation_s, bounds);
}

}  // namespace kernelpro::golden
