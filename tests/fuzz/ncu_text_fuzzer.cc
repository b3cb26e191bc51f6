// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "profile/file_kind.h"
#include "profile/ncu_text.h"
#include "profile/text_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(kernelpro::SniffFile(text, "fuzz"));
  static_cast<void>(kernelpro::FromWideText(std::string(text)));
  static_cast<void>(kernelpro::ParseNcuText(text, "fuzz"));
  return 0;
}
