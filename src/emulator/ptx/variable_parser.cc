// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/variable_parser.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "emulator/ptx/cursor.h"
#include "emulator/ptx/lexer.h"
#include "emulator/ptx/module.h"

namespace kernelpro::ptx {
namespace {

/// The bits of a written floating-point number as an element of `type` holds them.
bool ConvertFloat(const Token& token, Type type, std::uint64_t& bits) {
  const double value = token.float_bits == 32
                           ? double{std::bit_cast<float>(static_cast<std::uint32_t>(token.bits))}
                           : std::bit_cast<double>(token.bits);
  const bool same_width = SizeOf(type) * 8 == token.float_bits;
  if (same_width && !token.decimal) {
    bits = token.bits;  // also for .b32 and .b64, and exact for every NaN
  } else if (type == Type::kF32) {
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  } else if (type == Type::kF64) {
    bits = std::bit_cast<std::uint64_t>(value);
  } else {
    return false;
  }
  return true;
}

std::uint64_t ConvertInteger(std::uint64_t value, bool negative, Type type) {
  const std::uint64_t bits = negative ? 0 - value : value;
  if (type != Type::kF32 && type != Type::kF64) {
    return bits;
  }
  const double number = negative ? -static_cast<double>(value) : static_cast<double>(value);
  return type == Type::kF64 ? std::bit_cast<std::uint64_t>(number)
                            : std::bit_cast<std::uint32_t>(static_cast<float>(number));
}

}  // namespace

Status VariableParser::Parse(
    Space space, bool is_extern,
    const std::function<Status(Variable, std::string_view name, std::uint32_t line)>& add) {
  KP_ASSIGN_OR_RETURN(const Declaration declaration, ParseDeclaration(cursor_, false));
  if (declaration.type == Type::kPred) {
    return cursor_.Unexpected("a type that can be stored before this name; .pred cannot");
  }
  do {
    const std::uint32_t line = cursor_.Peek().line;
    KP_ASSIGN_OR_RETURN(const std::string_view name, cursor_.ExpectWord("the variable's name"));
    Variable variable;
    variable.name = name;
    variable.space = space;
    variable.is_extern = is_extern;
    KP_RETURN_IF_ERROR(ParseVariable(declaration, variable));
    KP_RETURN_IF_ERROR(add(std::move(variable), name, line));
  } while (cursor_.Accept(','));
  return cursor_.Expect(';');
}

Status VariableParser::ParseVariable(const Declaration& declaration, Variable& variable) {
  const std::uint32_t line = cursor_.Peek().line;
  variable.type = declaration.type;
  KP_ASSIGN_OR_RETURN(dimensions_, ParseDimensions(cursor_));
  const bool open = !dimensions_.empty() && dimensions_.front() == 0;
  if (declaration.lanes > 1) {
    dimensions_.push_back(declaration.lanes);
  }
  const std::uint32_t natural = SizeOf(declaration.type) * declaration.lanes;
  variable.alignment = declaration.alignment == 0 ? natural : declaration.alignment;
  std::uint64_t bytes = SizeOf(declaration.type);
  for (std::size_t i = open ? 1 : 0; i < dimensions_.size(); ++i) {
    if (dimensions_[i] > kLargestVariable / bytes) {
      return cursor_.ErrorAt(
          line, fmt::format("variable {} is larger than 2^62 bytes", Quoted(variable.name)));
    }
    bytes *= dimensions_[i];
  }
  const bool has_values = cursor_.Accept('=');
  if (open && !has_values && !variable.is_extern) {
    return cursor_.ErrorAt(line, fmt::format("array {} has neither a size nor values nor .extern",
                                             Quoted(variable.name)));
  }
  variable.bytes = open ? 0 : bytes;
  if (!has_values) {
    return Ok();
  }
  // `[]` is measured by its list, but no list of this text can be longer than this.
  if (open) {
    dimensions_.front() = kLargestVariable / bytes;
  }
  address_bytes_.clear();
  std::uint64_t count = 1;
  if (cursor_.Peek().Is('{')) {
    KP_RETURN_IF_ERROR(ParseList(variable, 0, 0, count));
  } else {
    KP_RETURN_IF_ERROR(ParseValue(variable, 0));
  }
  if (open) {
    variable.bytes = (count * SizeOf(variable.type) + bytes - 1) / bytes * bytes;
  }
  return JoinAddressBytes(variable);
}

/// `count` is how many elements the list covers.
Status VariableParser::ParseList(Variable& variable, std::size_t level, std::uint64_t base,
                                 std::uint64_t& count) {
  if (level >= dimensions_.size()) {
    return cursor_.Unexpected("no more braces than the array has dimensions; a value");
  }
  KP_RETURN_IF_ERROR(cursor_.Expect('{'));
  const std::uint64_t size = SizeOf(variable.type);
  std::uint64_t inner = 1;  // elements that one nested list stands for
  for (std::size_t i = level + 1; i < dimensions_.size(); ++i) {
    inner *= dimensions_[i];
  }
  const std::uint64_t most = inner * dimensions_[level];
  count = 0;
  if (cursor_.Accept('}')) {
    return Ok();
  }
  do {
    const bool nested = cursor_.Peek().Is('{');
    if (nested) {
      count = (count + inner - 1) / inner * inner;
    }
    if (count >= most) {
      return cursor_.Unexpected(fmt::format("at most {} values", most));
    }
    if (nested) {
      std::uint64_t covered = 0;
      KP_RETURN_IF_ERROR(ParseList(variable, level + 1, base + count * size, covered));
      count += inner;
    } else {
      KP_RETURN_IF_ERROR(ParseValue(variable, base + count * size));
      ++count;
    }
  } while (cursor_.Accept(','));
  return cursor_.Expect('}');
}

Status VariableParser::ParseValue(Variable& variable, std::uint64_t offset) {
  const Token token = cursor_.Peek();
  if (token.kind == Token::Kind::kWord) {
    Variable::Relocation address;
    KP_RETURN_IF_ERROR(ParseAddress(address));
    address.offset = offset;
    address.bytes = SizeOf(variable.type);
    if (address.bytes != 4 && address.bytes != 8) {
      return cursor_.ErrorAt(token.line, fmt::format("the address of {} does not fit in .{}",
                                                     Quoted(address.symbol), Name(variable.type)));
    }
    variable.relocations.push_back(std::move(address));
    return Ok();
  }
  if (token.kind == Token::Kind::kInteger) {
    cursor_.Next();
    if (cursor_.Accept('(')) {
      return ParseAddressByte(variable, offset, token);
    }
    return Store(variable, offset, ConvertInteger(token.bits, false, variable.type));
  }
  return ParseNumber(variable, offset);
}

Status VariableParser::ParseNumber(Variable& variable, std::uint64_t offset) {
  const bool negative = cursor_.Accept('-');
  const Token token = cursor_.Peek();
  std::uint64_t bits = 0;
  if (token.kind == Token::Kind::kInteger) {
    bits = ConvertInteger(token.bits, negative, variable.type);
  } else if (token.kind == Token::Kind::kFloat && ConvertFloat(token, variable.type, bits)) {
    bits ^= negative ? std::uint64_t{1} << (SizeOf(variable.type) * 8 - 1) : 0;
  } else {
    return cursor_.Unexpected(fmt::format("a value of type .{}", Name(variable.type)));
  }
  cursor_.Next();
  return Store(variable, offset, bits);
}

Status VariableParser::Store(Variable& variable, std::uint64_t offset, std::uint64_t bits) {
  if (bits == 0) {
    return Ok();  // what follows the last byte stored is zero anyway
  }
  const std::uint64_t size = std::min<std::uint64_t>(SizeOf(variable.type), 8);
  const std::uint64_t end = offset + size;
  if (end > variable.init.size()) {
    budget_.initializer_bytes += end - variable.init.size();
    if (budget_.initializer_bytes > kMostInitializerBytes) {
      return cursor_.Unexpected(fmt::format("less than {} MiB of initial values in one module",
                                            kMostInitializerBytes >> 20U));
    }
    variable.init.resize(end, '\0');
  }
  for (std::uint64_t i = 0; i < size; ++i) {
    variable.init[offset + i] = static_cast<char>(bits >> (8 * i));
  }
  return Ok();
}

/// `sym`, `sym+8`, `generic(sym)`, `generic(sym)-8`.
Status VariableParser::ParseAddress(Variable::Relocation& address) {
  KP_ASSIGN_OR_RETURN(std::string_view name, cursor_.ExpectWord("a variable or function"));
  if (name == "generic" && cursor_.Accept('(')) {
    address.generic = true;
    KP_ASSIGN_OR_RETURN(name, cursor_.ExpectWord("a variable or function"));
    KP_RETURN_IF_ERROR(cursor_.Expect(')'));
  }
  address.symbol = name;
  const bool minus = cursor_.Peek().Is('-');
  if (minus || cursor_.Peek().Is('+')) {
    cursor_.Next();
    KP_ASSIGN_OR_RETURN(const std::uint64_t addend, cursor_.ExpectInteger("an offset"));
    address.addend = static_cast<std::int64_t>(minus ? 0 - addend : addend);
  }
  return Ok();
}

Status VariableParser::ParseAddressByte(Variable& variable, std::uint64_t offset,
                                        const Token& mask) {
  AddressByte found;
  found.line = mask.line;
  KP_RETURN_IF_ERROR(ParseAddress(found.address));
  KP_RETURN_IF_ERROR(cursor_.Expect(')'));
  found.address.offset = offset;
  const auto shift = mask.bits == 0 ? 0U : static_cast<unsigned>(std::countr_zero(mask.bits));
  if (mask.bits >> shift != 0xff || shift % 8 != 0 || SizeOf(variable.type) != 1) {
    return cursor_.ErrorAt(mask.line, fmt::format("{} is not the mask of one byte in a byte array",
                                                  Quoted(mask.text)));
  }
  found.byte = shift / 8;
  address_bytes_.push_back(std::move(found));
  return Ok();
}

Status VariableParser::JoinAddressBytes(Variable& variable) {
  std::size_t begin = 0;
  while (begin < address_bytes_.size()) {
    const AddressByte& first = address_bytes_[begin];
    std::size_t end = begin;
    while (end < address_bytes_.size() && end - begin < 8) {
      const AddressByte& next = address_bytes_[end];
      if (next.byte != end - begin || next.address.offset != first.address.offset + next.byte ||
          next.address.symbol != first.address.symbol ||
          next.address.addend != first.address.addend ||
          next.address.generic != first.address.generic) {
        break;
      }
      ++end;
    }
    const auto bytes = static_cast<std::uint32_t>(end - begin);
    if (bytes != 4 && bytes != 8) {
      return cursor_.ErrorAt(
          first.line, fmt::format("{} byte(s) of the address of {}: only a whole address of 4 or 8 "
                                  "bytes, lowest byte first, can be placed",
                                  bytes, Quoted(first.address.symbol)));
    }
    variable.relocations.push_back(first.address);
    variable.relocations.back().bytes = bytes;
    begin = end;
  }
  return Ok();
}

}  // namespace kernelpro::ptx
