// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "emulator/ptx/module.h"

namespace kernelpro::ptx {
namespace {

struct TypeInfo {
  Type type;
  std::string_view name;
  std::uint32_t bytes;
  bool is_float;
  bool is_signed;
};

// In the order of the enumerators: a Type is its own index.
constexpr std::array<TypeInfo, 24> kTypes = {{
    {Type::kNone, "", 0, false, false},        {Type::kPred, "pred", 0, false, false},
    {Type::kB8, "b8", 1, false, false},        {Type::kB16, "b16", 2, false, false},
    {Type::kB32, "b32", 4, false, false},      {Type::kB64, "b64", 8, false, false},
    {Type::kB128, "b128", 16, false, false},   {Type::kU8, "u8", 1, false, false},
    {Type::kU16, "u16", 2, false, false},      {Type::kU32, "u32", 4, false, false},
    {Type::kU64, "u64", 8, false, false},      {Type::kS8, "s8", 1, false, true},
    {Type::kS16, "s16", 2, false, true},       {Type::kS32, "s32", 4, false, true},
    {Type::kS64, "s64", 8, false, true},       {Type::kF16, "f16", 2, true, false},
    {Type::kF16x2, "f16x2", 4, true, false},   {Type::kBF16, "bf16", 2, true, false},
    {Type::kBF16x2, "bf16x2", 4, true, false}, {Type::kTF32, "tf32", 4, true, false},
    {Type::kF32, "f32", 4, true, false},       {Type::kF64, "f64", 8, true, false},
    {Type::kE4M3x2, "e4m3x2", 2, true, false}, {Type::kE5M2x2, "e5m2x2", 2, true, false},
}};

const TypeInfo& InfoOf(Type type) {
  return kTypes[static_cast<std::size_t>(type)];
}

}  // namespace

std::uint32_t SizeOf(Type type) {
  return InfoOf(type).bytes;
}

bool IsFloat(Type type) {
  return InfoOf(type).is_float;
}

bool IsSigned(Type type) {
  return InfoOf(type).is_signed;
}

Type ParseType(std::string_view name) {
  const auto* const found = std::ranges::find(kTypes, name, &TypeInfo::name);
  return found == kTypes.end() ? Type::kNone : found->type;
}

std::string_view Name(Type type) {
  return InfoOf(type).name;
}

bool Instruction::Has(std::string_view modifier) const {
  return !parts.empty() && std::find(parts.begin() + 1, parts.end(), modifier) != parts.end();
}

const Function* Module::Find(std::string_view name) const {
  const auto found = std::ranges::find(functions, name, &Function::name);
  return found == functions.end() ? nullptr : &*found;
}

}  // namespace kernelpro::ptx
