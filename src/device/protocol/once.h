// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "device/protocol/bytes.h"

/// The call file of `kernelpro-runner --once LIBRARY CALLFILE`, which calls a candidate under a
/// sanitizer: nobody serves it and nothing is judged there. Standard library only.
///
/// Little endian: 8 bytes "KPONCE01", u32 calls; each call: u32 bytes of its TaskArgs image, the
/// image, u32 tensors; each tensor: u32 offset of its pointer in the image, u64 bytes, u8 kind (0:
/// nobody writes it before the call, it is read back afterwards; 1: the contents follow, they are
/// copied in).
namespace kernelpro::protocol {

/// argv[1]; argv[2] is the candidate's library, argv[3] the call file.
inline constexpr const char* kOnceMode = "--once";
inline constexpr std::string_view kOnceMagic = "KPONCE01";
/// The last line that the runner prints when every call returned success.
inline constexpr std::string_view kOnceDone = "kernelpro-runner: all calls returned";
inline constexpr std::uint64_t kOnceFileLimit = 1ULL << 30U;
inline constexpr std::uint64_t kOnceTensorLimit = 1ULL << 32U;

struct OnceTensor {
  std::uint32_t offset = 0;
  std::uint64_t bytes = 0;
  bool output = false;                  ///< has no contents
  std::span<const std::byte> contents;  ///< `bytes` of them unless it is an output
};

struct OnceCall {
  std::vector<std::byte> image;
  std::vector<OnceTensor> tensors;
};

inline void EncodeOnceStart(std::uint32_t calls, ByteWriter& out) {
  out.Raw(std::as_bytes(std::span(kOnceMagic.data(), kOnceMagic.size())));
  out.U32(calls);
}

inline void EncodeOnceCall(const OnceCall& call, ByteWriter& out) {
  out.U32(static_cast<std::uint32_t>(call.image.size()));
  out.Raw(call.image);
  out.U32(static_cast<std::uint32_t>(call.tensors.size()));
  for (const OnceTensor& tensor : call.tensors) {
    out.U32(tensor.offset);
    out.U64(tensor.bytes);
    out.U8(tensor.output ? 0 : 1);
    if (!tensor.output) {
      out.Raw(tensor.contents);
    }
  }
}

/// Nothing when the bytes are not a call file. Contents refer to `bytes`.
inline std::optional<std::vector<OnceCall>> DecodeOnce(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const auto magic = in.Raw(kOnceMagic.size());
  const auto wanted = std::as_bytes(std::span(kOnceMagic.data(), kOnceMagic.size()));
  if (!in.ok() || std::memcmp(magic.data(), wanted.data(), wanted.size()) != 0) {
    return std::nullopt;
  }
  std::vector<OnceCall> calls;
  const std::uint32_t count = in.U32();
  for (std::uint32_t i = 0; in.ok() && i < count; ++i) {
    OnceCall& call = calls.emplace_back();
    const auto image = in.Raw(in.U32());
    call.image.assign(image.begin(), image.end());
    const std::uint32_t tensors = in.U32();
    for (std::uint32_t t = 0; in.ok() && t < tensors; ++t) {
      OnceTensor& tensor = call.tensors.emplace_back();
      tensor.offset = in.U32();
      tensor.bytes = in.U64();
      const std::uint8_t kind = in.U8();
      tensor.output = kind == 0;
      if (!in.ok() || kind > 1 || tensor.bytes == 0 || tensor.bytes > kOnceTensorLimit ||
          std::uint64_t{tensor.offset} + sizeof(std::uint64_t) > call.image.size()) {
        return std::nullopt;
      }
      if (!tensor.output) {
        tensor.contents = in.Raw(tensor.bytes);
      }
    }
  }
  return in.Complete() ? std::optional(std::move(calls)) : std::nullopt;
}

}  // namespace kernelpro::protocol
