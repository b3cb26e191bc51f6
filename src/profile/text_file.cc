// SPDX-License-Identifier: Apache-2.0
#include "profile/text_file.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/result.h"

namespace kernelpro {
namespace {

void AppendUtf8(std::uint32_t c, std::string& out) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  const auto tail = [&](std::uint32_t shift) { put(0x80U | ((c >> shift) & 0x3fU)); };
  if (c < 0x80U) {
    put(c);
  } else if (c < 0x800U) {
    put(0xc0U | (c >> 6U));
    tail(0);
  } else if (c < 0x10000U) {
    put(0xe0U | (c >> 12U));
    tail(6);
    tail(0);
  } else {
    put(0xf0U | (c >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace

std::string FromWideText(std::string bytes) {
  const bool little = bytes.starts_with("\xFF\xFE");
  if (!little && !bytes.starts_with("\xFE\xFF")) {
    return bytes;
  }
  const auto unit = [&](std::size_t at) -> std::uint32_t {
    const auto first = static_cast<unsigned char>(bytes[at]);
    const auto second = static_cast<unsigned char>(bytes[at + 1]);
    return little ? first | (second << 8U) : second | (first << 8U);
  };
  std::string out;
  out.reserve(bytes.size() / 2);
  for (std::size_t i = 2; i + 1 < bytes.size(); i += 2) {
    const std::uint32_t c = unit(i);
    const bool high = c >= 0xd800U && c < 0xdc00U;
    const std::uint32_t low = high && i + 3 < bytes.size() ? unit(i + 2) : 0;
    if (high && low >= 0xdc00U && low < 0xe000U) {
      AppendUtf8(0x10000U + ((c - 0xd800U) << 10U) + (low - 0xdc00U), out);
      i += 2;
    } else {
      AppendUtf8(c >= 0xd800U && c < 0xe000U ? std::uint32_t{'?'} : c, out);
    }
  }
  return out;
}

Result<std::string> ReadTextFile(const std::filesystem::path& path) {
  KP_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path, 1ULL << 30U));
  return FromWideText(std::move(bytes));
}

}  // namespace kernelpro
