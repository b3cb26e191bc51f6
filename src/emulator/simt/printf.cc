// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "emulator/simt/access.h"
#include "emulator/simt/faults.h"

/// The device functions that CUDA provides: vprintf and __assertfail.
namespace kernelpro::simt {
namespace {

constexpr std::size_t kMostPrinted = 64U << 10U;
constexpr std::size_t kLongestString = 4096;
constexpr int kWidestField = 512;

/// Host view of what a thread's generic address points to, `limit` bytes at most; empty when
/// nowhere.
std::string_view Memory(const Context& context, std::uint64_t address, int lane,
                        std::uint64_t limit) {
  const auto view = [&](const std::byte* data, std::uint64_t bytes) {
    return std::string_view(reinterpret_cast<const char*>(data),  // NOLINT: bytes as text
                            std::min(bytes, limit));
  };
  const Cta& cta = *context.cta;
  if (const std::uint64_t offset = address - kLocalWindow; offset < kWindowBytes) {
    const std::uint64_t thread =
        context.warp->index * std::uint64_t{kWarpSize} + static_cast<std::uint64_t>(lane);
    return offset < cta.local_bytes ? view(cta.local.data() + thread * cta.local_bytes + offset,
                                           cta.local_bytes - offset)
                                    : std::string_view();
  }
  if (const std::uint64_t offset = address - kSharedWindow; offset < kWindowBytes) {
    return offset < cta.shared_bytes ? view(cta.shared.data() + offset, cta.shared_bytes - offset)
                                     : std::string_view();
  }
  const Allocation* allocation = context.machine->memory->Find(address);
  if (allocation == nullptr) {
    return {};
  }
  const std::uint64_t offset = address - allocation->address;
  return view(allocation->host + offset, allocation->bytes - offset);
}

std::string Text(const Context& context, std::uint64_t address, int lane) {
  const std::string_view memory = Memory(context, address, lane, kLongestString);
  return std::string(memory.substr(0, memory.find('\0')));
}

std::uint64_t Argument(const Context& context, const CallOp& call, std::size_t index, int lane) {
  if (index >= call.arguments.size()) {
    return 0;
  }
  const CallOp::Copy& copy = call.arguments[index];
  std::uint64_t value = 0;
  std::memcpy(&value,
              context.registers + copy.from + static_cast<std::size_t>(lane) * copy.from_stride,
              std::min<std::size_t>(copy.bytes, sizeof value));
  return value;
}

/// The arguments of a printf, packed by type as the compiler stores them.
class ArgumentReader {
 public:
  explicit ArgumentReader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  T Next() {
    at_ = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value{};
    if (at_ + sizeof(T) <= bytes_.size()) {
      std::memcpy(&value, bytes_.data() + at_, sizeof value);
    }
    at_ += sizeof(T);
    return value;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

template <class T>
std::string Print(const std::string& spec, int width, int precision, T value) {
  char buffer[1024];
  const int length = std::snprintf(buffer, sizeof buffer, spec.c_str(), width, precision, value);
  return std::string(
      buffer, static_cast<std::size_t>(std::clamp(length, 0, static_cast<int>(sizeof buffer) - 1)));
}

/// One conversion specification of a format, taken apart.
struct Conversion {
  std::string flags;
  int width = 0;
  int precision = -1;
  bool is_long = false;
  char kind = 0;
};

std::optional<Conversion> ParseConversion(std::string_view format, std::size_t* at,
                                          ArgumentReader& arguments) {
  Conversion c;
  std::size_t i = *at;
  const auto number = [&]() {
    if (i < format.size() && format[i] == '*') {
      ++i;
      return std::clamp(arguments.Next<std::int32_t>(), -kWidestField, kWidestField);
    }
    int value = 0;
    for (; i < format.size() && format[i] >= '0' && format[i] <= '9'; ++i) {
      value = std::min(value * 10 + (format[i] - '0'), kWidestField);
    }
    return value;
  };
  for (; i < format.size() && std::string_view("-+ #0").find(format[i]) != std::string_view::npos;
       ++i) {
    c.flags += format[i];
  }
  c.width = number();
  if (i < format.size() && format[i] == '.') {
    ++i;
    c.precision = number();
  }
  for (; i < format.size() && std::string_view("hlLzjt").find(format[i]) != std::string_view::npos;
       ++i) {
    c.is_long = c.is_long || format[i] != 'h';
  }
  if (i >= format.size()) {
    return std::nullopt;
  }
  c.kind = format[i];
  *at = i + 1;
  return c;
}

std::string Convert(const Context& context, const Conversion& c, int lane,
                    ArgumentReader& arguments) {
  const std::string start = "%" + c.flags + "*.*";
  switch (c.kind) {
    case 'd':
    case 'i':
      return Print(start + "lld", c.width, c.precision,
                   c.is_long ? arguments.Next<long long>()
                             : static_cast<long long>(arguments.Next<std::int32_t>()));
    case 'u':
    case 'x':
    case 'X':
    case 'o':
      return Print(start + "ll" + c.kind, c.width, c.precision,
                   c.is_long ? arguments.Next<unsigned long long>()
                             : static_cast<unsigned long long>(arguments.Next<std::uint32_t>()));
    case 'c':
      return Print("%" + c.flags + "*.*c", c.width, c.precision, arguments.Next<std::int32_t>());
    case 's':
      return Print(start + "s", c.width, c.precision,
                   Text(context, arguments.Next<std::uint64_t>(), lane).c_str());
    case 'p':
      return fmt::format("0x{:x}", arguments.Next<std::uint64_t>());
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
      return Print(start + c.kind, c.width, c.precision, arguments.Next<double>());
    case '%':
      return "%";
    default:
      return std::string("%") + c.kind;
  }
}

std::string Format(const Context& context, std::string_view format, std::string_view buffer,
                   int lane) {
  ArgumentReader arguments(buffer);
  std::string out;
  for (std::size_t i = 0; i < format.size() && out.size() < kMostPrinted;) {
    if (format[i] != '%') {
      out += format[i++];
      continue;
    }
    ++i;
    const std::optional<Conversion> conversion = ParseConversion(format, &i, arguments);
    if (!conversion) {
      break;
    }
    out += Convert(context, *conversion, lane, arguments);
  }
  return out;
}

void Printf(Context& context, const CallOp& call, int lane) {
  const std::string format = Text(context, Argument(context, call, 0, lane), lane);
  const std::string_view buffer =
      Memory(context, Argument(context, call, 1, lane), lane, kLongestString);
  std::string& printed = context.machine->report.printed;
  printed += Format(context, format, buffer, lane);
  printed.resize(std::min(printed.size(), kMostPrinted));
  if (!call.results.empty()) {
    const CallOp::Copy& result = call.results[0];
    const std::uint32_t value = 1;
    std::memcpy(context.registers + result.to + static_cast<std::size_t>(lane) * result.to_stride,
                &value, std::min<std::size_t>(result.bytes, sizeof value));
  }
}

}  // namespace

bool RunBuiltin(Context& context, const Decoded& d, LaneMask on) {
  const CallOp& call = context.code->calls[d.extra];
  if (call.builtin == Builtin::kAssertFail) {
    const int lane = std::countr_zero(on);
    Fault fault;
    fault.kind = FaultKind::kTrap;
    fault.message = fmt::format("failed the assertion `{}` in {}, line {},",
                                Text(context, Argument(context, call, 0, lane), lane),
                                Text(context, Argument(context, call, 1, lane), lane),
                                static_cast<std::uint32_t>(Argument(context, call, 2, lane)));
    context.machine->Report(context, d, lane, std::move(fault));
    return false;
  }
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    Printf(context, call, std::countr_zero(rest));
  }
  return true;
}

}  // namespace kernelpro::simt
