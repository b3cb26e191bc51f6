// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/fat_binary.h"

#include <fmt/format.h>

#include <optional>

#include "device/protocol/bytes.h"

namespace kernelpro::gpu {
namespace {

constexpr std::uint32_t kMagic = 0xba55ed50;
constexpr std::uint16_t kVersion = 1;
constexpr std::uint16_t kKindPtx = 1;
constexpr std::uint64_t kFlagsCompressed = 0x2000U | 0x8000U;  ///< LZ4 of old toolkits, zstd of new
constexpr std::uint32_t kSmallestEntryHeader = 64;

struct Entry {
  std::uint16_t kind = 0;
  std::uint32_t header_bytes = 0;
  std::uint64_t payload_bytes = 0;
  std::uint32_t compute_capability = 0;
  std::uint64_t flags = 0;
  std::span<const std::byte> payload;
};

/// kind u16, version u16, header u32, payload u64, compressed u32, options u32, minor u16,
/// major u16, architecture u32, name offset u32, name bytes u32, flags u64, ...
std::optional<Entry> ReadEntry(protocol::ByteReader& in) {
  Entry entry;
  entry.kind = in.U16();
  (void)in.U16();
  entry.header_bytes = in.U32();
  entry.payload_bytes = in.U64();
  (void)in.U64();
  (void)in.U32();
  entry.compute_capability = in.U32();
  (void)in.U64();
  entry.flags = in.U64();
  constexpr std::uint32_t kReadSoFar = 48;
  if (!in.ok() || entry.header_bytes < kSmallestEntryHeader) {
    return std::nullopt;
  }
  (void)in.Raw(entry.header_bytes - kReadSoFar);
  entry.payload = in.Raw(entry.payload_bytes);
  return in.ok() ? std::optional(entry) : std::nullopt;
}

std::string TextOf(std::span<const std::byte> payload) {
  std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
  const std::size_t end = text.find('\0');  // Padded with zeros to a multiple of 8.
  return end == std::string::npos ? text : text.substr(0, end);
}

}  // namespace

Result<std::string> ExtractPtx(std::span<const std::byte> image, std::uint32_t compute_capability) {
  protocol::ByteReader header(image);
  const std::uint32_t magic = header.U32();
  const std::uint16_t version = header.U16();
  const std::uint16_t header_bytes = header.U16();
  const std::uint64_t body_bytes = header.U64();
  constexpr std::uint16_t kHeaderBytes = 16;
  if (!header.ok() || magic != kMagic || version != kVersion || header_bytes < kHeaderBytes ||
      header_bytes > image.size() || body_bytes > image.size() - header_bytes) {
    return Fail(ErrorCode::kParse, "the device code is not a fat binary of version 1");
  }
  protocol::ByteReader in(image.subspan(header_bytes, static_cast<std::size_t>(body_bytes)));
  std::optional<Entry> best;
  std::string found;
  while (!in.Complete()) {
    const auto entry = ReadEntry(in);
    if (!entry) {
      return Fail(ErrorCode::kParse, "the fat binary is cut short");
    }
    const bool ptx = entry->kind == kKindPtx;
    found += fmt::format("{}{}_{}", found.empty() ? "" : ", ", ptx ? "compute" : "sm",
                         entry->compute_capability);
    if (ptx && entry->compute_capability <= compute_capability &&
        (!best || entry->compute_capability > best->compute_capability)) {
      best = entry;
    }
  }
  if (!best) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("the library holds no PTX that sm_{0} can run (it holds: {1}); compile "
                            "with -gencode arch=compute_{0},code=[compute_{0},sm_{0}]",
                            compute_capability, found.empty() ? "nothing" : found));
  }
  if ((best->flags & kFlagsCompressed) != 0) {
    return Fail(ErrorCode::kUnavailable,
                "the PTX in the library is compressed; compile with nvcc -no-compress");
  }
  return TextOf(best->payload);
}

}  // namespace kernelpro::gpu
