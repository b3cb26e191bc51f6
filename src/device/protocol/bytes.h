// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Little-endian fields in a byte string. Standard library only: the untrusted runner uses it too.
namespace kernelpro::protocol {

class ByteWriter {
 public:
  void U8(std::uint8_t value) { bytes_.push_back(std::byte{value}); }

  void U16(std::uint16_t value) { Fixed(value, 2); }

  void U32(std::uint32_t value) { Fixed(value, 4); }

  void U64(std::uint64_t value) { Fixed(value, 8); }

  void F64(double value) { U64(std::bit_cast<std::uint64_t>(value)); }

  /// LEB128: small numbers, the common case in counters, take one byte.
  void Varint(std::uint64_t value) {
    while (value >= 0x80U) {
      U8(static_cast<std::uint8_t>(value | 0x80U));
      value >>= 7U;
    }
    U8(static_cast<std::uint8_t>(value));
  }

  void Raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  void Blob(std::span<const std::byte> bytes) {
    Varint(bytes.size());
    Raw(bytes);
  }

  void Text(std::string_view text) { Blob(std::as_bytes(std::span(text.data(), text.size()))); }

  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

  [[nodiscard]] std::vector<std::byte> Take() { return std::move(bytes_); }

 private:
  void Fixed(std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) {
      bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
    }
  }

  std::vector<std::byte> bytes_;
};

/// Reads what ByteWriter wrote. After the first field that is not there every read gives zero or
/// nothing and ok() is false: decoders check once, at the end. Never reads past the input and never
/// allocates more than the input holds.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint8_t U8() { return static_cast<std::uint8_t>(Fixed(1)); }

  std::uint16_t U16() { return static_cast<std::uint16_t>(Fixed(2)); }

  std::uint32_t U32() { return static_cast<std::uint32_t>(Fixed(4)); }

  std::uint64_t U64() { return Fixed(8); }

  double F64() { return std::bit_cast<double>(U64()); }

  std::uint64_t Varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64U; shift += 7U) {
      const std::uint8_t byte = U8();
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) == 0U) {
        return value;
      }
    }
    ok_ = false;
    return 0;
  }

  std::uint32_t Varint32() {
    const std::uint64_t value = Varint();
    ok_ = ok_ && value <= UINT32_MAX;
    return static_cast<std::uint32_t>(value);
  }

  std::span<const std::byte> Blob() { return Raw(Varint()); }

  std::string Text() {
    const auto blob = Blob();
    return {reinterpret_cast<const char*>(blob.data()), blob.size()};
  }

  std::span<const std::byte> Raw(std::uint64_t size) {
    if (!ok_ || size > bytes_.size() - at_) {
      ok_ = false;
      return {};
    }
    const auto part = bytes_.subspan(at_, static_cast<std::size_t>(size));
    at_ += static_cast<std::size_t>(size);
    return part;
  }

  /// A count of elements that follow and take at least one byte each: a larger one is a lie.
  std::size_t Count() {
    const std::uint64_t count = Varint();
    if (count > bytes_.size() - at_) {
      ok_ = false;
      return 0;
    }
    return static_cast<std::size_t>(count);
  }

  [[nodiscard]] bool ok() const { return ok_; }

  /// Everything was there and nothing is left over.
  [[nodiscard]] bool Complete() const { return ok_ && at_ == bytes_.size(); }

 private:
  std::uint64_t Fixed(std::size_t width) {
    const auto part = Raw(width);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < part.size(); ++i) {
      value |= std::uint64_t{std::to_integer<std::uint8_t>(part[i])} << (8U * i);
    }
    return value;
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace kernelpro::protocol
