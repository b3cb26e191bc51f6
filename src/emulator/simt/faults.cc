// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace kernelpro::simt {
namespace {

std::string_view FileName(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string Triple(const Dim3& d) {
  return fmt::format("({},{},{})", d.x, d.y, d.z);
}

Dim3 ThreadOf(const LaunchConfig& config, const Warp& warp, int lane) {
  const std::uint32_t linear = warp.index * kWarpSize + static_cast<std::uint32_t>(lane);
  const Dim3& block = config.block;
  return Dim3{linear % block.x, linear / block.x % block.y, linear / block.x / block.y};
}

std::string Past(std::uint64_t distance, const Allocation& allocation) {
  const std::string where = distance == 0 ? std::string("just") : fmt::format("{} bytes", distance);
  return fmt::format("{} past the end of '{}' ({} bytes)", where, allocation.name,
                     allocation.bytes);
}

}  // namespace

const ptx::SourceLocation& LocationOf(const FunctionCode& code, const Decoded& d) {
  static const ptx::SourceLocation kNowhere;
  return d.instruction < code.function->body.size() ? code.function->body[d.instruction].where
                                                    : kNowhere;
}

std::string At(const ptx::Module& module, const ptx::SourceLocation& where) {
  if (where.line != 0 && where.file < module.files.size()) {
    return fmt::format(" at {}:{}", FileName(module.files[where.file]), where.line);
  }
  if (where.ptx_line != 0) {
    return fmt::format(" at line {} of the PTX", where.ptx_line);
  }
  return {};
}

void DescribeBadAddress(const DeviceMemory& memory, std::uint64_t address, std::uint32_t bytes,
                        bool store, Fault& fault) {
  fault.kind = FaultKind::kOutOfBounds;
  fault.address = address;
  const std::string did = fmt::format("{} {} bytes", store ? "wrote" : "read", bytes);
  const Allocation* below = memory.Nearest(address);
  const Allocation* above = memory.NextAbove(address);
  const std::uint64_t before = above == nullptr ? ~0ULL : above->address - address;
  if (below != nullptr && address - below->address < std::max<std::uint64_t>(below->bytes, 1) &&
      !below->live) {
    fault.allocation = fmt::format("{}+{}", below->name, address - below->address);
    fault.message = fmt::format("{} at offset {} of '{}', which has been freed", did,
                                address - below->address, below->name);
    return;
  }
  const std::uint64_t after = below == nullptr ? ~0ULL : address - below->address;
  constexpr std::uint64_t kFar = 1ULL << 40U;
  if (std::min(after, before) >= kFar) {
    fault.message = fmt::format("{} at address 0x{:x}, where nothing is allocated", did, address);
  } else if (before < after) {
    fault.allocation = fmt::format("{}-{}", above->name, before);
    fault.message = fmt::format("{} {} bytes before the start of '{}' ({} bytes)", did, before,
                                above->name, above->bytes);
  } else if (after < below->bytes) {
    fault.allocation = fmt::format("{}+{}", below->name, after);
    fault.message = fmt::format("{} at offset {}, reaching past the end of '{}' ({} bytes)", did,
                                after, below->name, below->bytes);
  } else {
    fault.allocation = fmt::format("{}+{}", below->name, after);
    fault.message = fmt::format("{} {}", did, Past(after - below->bytes, *below));
  }
}

void ReportMisaligned(Context& context, const Decoded& d, int lane, std::uint64_t address,
                      std::uint32_t bytes, bool store) {
  Fault fault;
  fault.kind = FaultKind::kMisaligned;
  fault.address = address;
  if (const Allocation* a = context.machine->memory->Find(address); a != nullptr) {
    fault.allocation = fmt::format("{}+{}", a->name, address - a->address);
  }
  fault.message = fmt::format("{} {} bytes at address 0x{:x}{}, which is not a multiple of {}",
                              store ? "wrote" : "read", bytes, address,
                              fault.allocation.empty() ? "" : " (" + fault.allocation + ")", bytes);
  context.machine->Report(context, d, lane, std::move(fault));
}

void Machine::Report(const Context& context, const Decoded& at, int lane, Fault fault) {
  if (!fault.fatal) {
    for (Fault& known : report.faults) {
      if (known.instruction == at.instruction && known.kind == fault.kind &&
          known.kernel == kernel->function->name) {
        ++known.count;
        return;
      }
    }
  }
  const ptx::SourceLocation& where = LocationOf(*context.frame->code, at);
  fault.kernel = kernel->function->name;
  fault.cta = context.cta->id;
  fault.thread = ThreadOf(*config, *context.warp, lane);
  fault.instruction = context.frame->code->index == 0 ? at.instruction : ~0U;
  fault.ptx_line = where.ptx_line;
  fault.line = where.line;
  if (where.line != 0 && where.file < program->module().files.size()) {
    fault.file = program->module().files[where.file];
  }
  fault.message =
      fmt::format("kernel {}: thread {} of block {} {}{}", fault.kernel, Triple(fault.thread),
                  Triple(fault.cta), fault.message, At(program->module(), where));
  report.faults.push_back(std::move(fault));
}

}  // namespace kernelpro::simt
