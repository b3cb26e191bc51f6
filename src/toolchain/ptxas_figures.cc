// SPDX-License-Identifier: Apache-2.0
#include "toolchain/ptxas_figures.h"

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/text.h"

namespace kernelpro {
namespace {

/// The number in front of `unit`, as in "38 registers" or "used 1 barriers" within one clause.
bool NumberBefore(std::string_view clause, std::string_view unit, std::uint64_t* value) {
  const std::size_t at = clause.find(unit);
  if (at == std::string_view::npos) {
    return false;
  }
  const std::string_view before = Trim(clause.substr(0, at));
  const std::size_t blank = before.find_last_of(" \t");
  const std::string_view digits =
      blank == std::string_view::npos ? before : before.substr(blank + 1);
  // Old versions print "16+0 bytes smem": the parts add up.
  std::uint64_t sum = 0;
  for (const std::string_view part : Split(digits, '+')) {
    long long number = 0;
    if (!ParseInteger(part, &number) || number < 0) {
      return false;
    }
    sum += static_cast<std::uint64_t>(number);
  }
  *value = sum;
  return true;
}

/// Text between the first `open` after `marker` and the next `close`.
std::string_view Quoted(std::string_view line, std::string_view marker) {
  const std::size_t at = line.find(marker);
  if (at == std::string_view::npos) {
    return {};
  }
  line.remove_prefix(at + marker.size());
  return line.substr(0, line.find('\''));
}

void ReadUsed(std::string_view line, KernelFigures* figures) {
  figures->constant_bytes = 0;
  for (const std::string_view clause : Split(line, ',')) {
    std::uint64_t value = 0;
    if (NumberBefore(clause, " registers", &value)) {
      figures->registers = static_cast<std::uint32_t>(value);
    } else if (NumberBefore(clause, " barriers", &value)) {
      figures->barriers = static_cast<std::uint32_t>(value);
    } else if (NumberBefore(clause, " bytes cumulative stack size", &value)) {
      figures->stack_bytes = value;
    } else if (NumberBefore(clause, " bytes smem", &value)) {
      figures->shared_bytes = value;
    } else if (NumberBefore(clause, " bytes cmem[", &value)) {
      figures->constant_bytes += value;
    }
  }
}

void ReadProperties(std::string_view line, KernelFigures* figures) {
  for (const std::string_view clause : Split(line, ',')) {
    std::uint64_t value = 0;
    if (NumberBefore(clause, " bytes stack frame", &value)) {
      figures->stack_bytes = value;
    } else if (NumberBefore(clause, " bytes spill stores", &value)) {
      figures->spill_store_bytes = value;
    } else if (NumberBefore(clause, " bytes spill loads", &value)) {
      figures->spill_load_bytes = value;
    }
  }
}

}  // namespace

std::map<std::string, KernelFigures> ParsePtxasFigures(std::string_view log) {
  constexpr std::string_view kProperties = "Function properties for ";
  constexpr std::string_view kUsed = " Used ";
  std::map<std::string, KernelFigures> kernels;
  std::string entry;
  std::string properties_of;
  for (const std::string_view line : Lines(log)) {
    if (const auto name = Quoted(line, "Compiling entry function '"); !name.empty()) {
      entry = std::string(name);
      kernels[entry] = KernelFigures();
    } else if (const std::size_t at = line.find(kProperties); at != std::string_view::npos) {
      properties_of = std::string(Trim(line.substr(at + kProperties.size())));
    } else if (line.find(" bytes stack frame") != std::string_view::npos) {
      if (properties_of == entry && !entry.empty()) {
        ReadProperties(line, &kernels[entry]);
      }
      properties_of.clear();
    } else if (const std::size_t used = line.find(kUsed);
               used != std::string_view::npos && !entry.empty() &&
               line.substr(0, used).find("ptxas") != std::string_view::npos) {
      ReadUsed(line.substr(used), &kernels[entry]);
    }
  }
  return kernels;
}

model::KernelResources ResourcesOf(const KernelFigures& figures) {
  return {.registers_per_thread = figures.registers,
          .static_shared_bytes = figures.shared_bytes,
          .local_bytes_per_thread = figures.stack_bytes,
          .spill_store_bytes = figures.spill_store_bytes,
          .spill_load_bytes = figures.spill_load_bytes};
}

}  // namespace kernelpro
