// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "emulator/simt/code.h"
#include "emulator/simt/decode.h"
#include "emulator/simt/layout.h"

namespace kernelpro::simt {

Result<std::unique_ptr<Program>> Program::Create(std::shared_ptr<const ptx::Module> module,
                                                 DeviceMemory& memory) {
  auto program = std::make_unique<ProgramImpl>(std::move(module), memory);
  KP_RETURN_IF_ERROR(program->PlaceVariables());
  KP_RETURN_IF_ERROR(program->DecodeKernels());
  return std::unique_ptr<Program>(std::move(program));
}

ProgramImpl::ProgramImpl(std::shared_ptr<const ptx::Module> module, DeviceMemory& memory)
    : module_(std::move(module)), memory_(&memory), memory_alive_(memory.alive()) {}

ProgramImpl::~ProgramImpl() {
  if (memory_alive_.expired()) {
    return;
  }
  for (const auto& [name, address] : addresses_) {
    (void)memory_->Free(address);
  }
}

Status ProgramImpl::PlaceVariables() {
  for (const ptx::Variable& variable : module_->variables) {
    const bool placed =
        variable.space == ptx::Space::kGlobal || variable.space == ptx::Space::kConst;
    if (!placed || (variable.is_extern && variable.bytes == 0)) {
      continue;
    }
    KP_ASSIGN_OR_RETURN(const std::uint64_t address,
                        memory_->Allocate(variable.bytes, variable.name));
    addresses_[variable.name] = address;
  }
  for (const ptx::Variable& variable : module_->variables) {
    if (addresses_.contains(variable.name)) {
      KP_RETURN_IF_ERROR(Initialise(variable));
    }
  }
  return Ok();
}

Status ProgramImpl::Initialise(const ptx::Variable& variable) {
  const std::uint64_t address = addresses_.find(variable.name)->second;
  KP_ASSIGN_OR_RETURN(const std::span<std::byte> bytes, memory_->View(address, variable.bytes));
  std::memcpy(bytes.data(), variable.init.data(),
              std::min<std::uint64_t>(variable.init.size(), variable.bytes));
  for (const ptx::Variable::Relocation& relocation : variable.relocations) {
    const auto target = addresses_.find(relocation.symbol);
    if (target == addresses_.end() || variable.bytes < 8 ||
        relocation.offset > variable.bytes - 8) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("the initial value of '{}' holds the address of '{}', which is not "
                              "a variable in global or constant memory",
                              variable.name, relocation.symbol));
    }
    const std::uint64_t value = target->second + static_cast<std::uint64_t>(relocation.addend);
    std::memcpy(bytes.data() + relocation.offset, &value, sizeof value);
  }
  if (variable.space == ptx::Space::kConst) {
    return memory_->SetReadOnly(address, true);
  }
  return Ok();
}

namespace {

std::uint32_t SharedGranule(const KernelCode& kernel) {
  std::uint32_t granule = 4;
  for (const auto& function : kernel.functions) {
    for (const Access& access : function->accesses) {
      if (access.space == ptx::Space::kShared || access.space == ptx::Space::kGeneric) {
        granule = std::min<std::uint32_t>(granule, access.width);
      }
    }
  }
  return granule;
}

}  // namespace

Status ProgramImpl::DecodeKernels() {
  for (const ptx::Function& function : module_->functions) {
    if (!function.is_entry || function.is_declaration) {
      continue;
    }
    auto kernel = std::make_unique<KernelCode>();
    kernel->function = &function;
    DecodeScope scope;
    scope.module = module_.get();
    scope.functions = Reachable(*module_, function);
    SharedLayout shared = LayOutShared(*module_, scope.functions);
    kernel->static_shared = shared.static_bytes;
    scope.symbols = std::move(shared.symbols);
    for (const auto& [name, address] : addresses_) {
      scope.symbols[name] = Symbol{ptx::Space::kGlobal, address};
    }
    std::vector<std::unique_ptr<Decoder>> decoders;
    for (const ptx::Function* part : scope.functions) {
      auto code = std::make_unique<FunctionCode>();
      code->function = part;
      code->index = static_cast<std::uint32_t>(kernel->functions.size());
      scope.codes.push_back(code.get());
      kernel->functions.push_back(std::move(code));
    }
    for (const auto& code : kernel->functions) {
      decoders.push_back(std::make_unique<Decoder>(scope, *code));
    }
    for (const auto& decoder : decoders) {
      decoder->Run();
    }
    for (const ptx::Parameter& parameter : function.parameters) {
      kernel->parameter_bytes =
          std::max(kernel->parameter_bytes, parameter.offset + parameter.bytes);
    }
    kernel->shared_granule = SharedGranule(*kernel);
    kernels_[function.name] = std::move(kernel);
  }
  return Ok();
}

std::uint64_t ProgramImpl::AddressOf(std::string_view symbol) const {
  const auto it = addresses_.find(symbol);
  return it == addresses_.end() ? 0 : it->second;
}

const KernelCode* ProgramImpl::Find(std::string_view kernel) const {
  const auto it = kernels_.find(kernel);
  return it == kernels_.end() ? nullptr : it->second.get();
}

std::uint64_t ProgramImpl::StaticShared(std::string_view kernel) const {
  const KernelCode* code = Find(kernel);
  return code == nullptr ? 0 : code->static_shared;
}

}  // namespace kernelpro::simt
