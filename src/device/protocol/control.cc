// SPDX-License-Identifier: Apache-2.0
#include "device/protocol/control.h"

#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "device/protocol/bytes.h"
#include "device/protocol/members.h"

namespace kernelpro::protocol {
namespace {

class Encoder {
 public:
  void Put(std::integral auto value) { out_.Varint(static_cast<std::uint64_t>(value)); }

  template <class T>
    requires std::is_enum_v<T>
  void Put(T value) {
    Put(static_cast<std::underlying_type_t<T>>(value));
  }

  void Put(double value) { out_.F64(value); }

  void Put(const std::string& value) { out_.Text(value); }

  template <class T>
  void Put(const std::vector<T>& values) {
    out_.Varint(values.size());
    for (const T& value : values) {
      Put(value);
    }
  }

  template <class T>
  void Put(const std::map<std::string, T>& values) {
    out_.Varint(values.size());
    for (const auto& [key, value] : values) {
      Put(key);
      Put(value);
    }
  }

  template <class T>
    requires std::is_class_v<T>
  void Put(const T& value) {
    std::apply([this](const auto&... members) { (Put(members), ...); }, Members(value));
  }

  [[nodiscard]] std::vector<std::byte> Take() { return out_.Take(); }

 private:
  ByteWriter out_;
};

class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> bytes) : in_(bytes) {}

  void Get(bool& value) { value = in_.Varint() != 0; }

  template <std::integral T>
  void Get(T& value) {
    const std::uint64_t wide = in_.Varint();
    value = static_cast<T>(wide);
    fits_ = fits_ && static_cast<std::uint64_t>(value) == wide;
  }

  template <class T>
    requires std::is_enum_v<T>
  void Get(T& value) {
    std::underlying_type_t<T> number{};
    Get(number);
    value = static_cast<T>(number);
  }

  void Get(double& value) { value = in_.F64(); }

  void Get(std::string& value) { value = in_.Text(); }

  template <class T>
  void Get(std::vector<T>& values) {
    const std::size_t count = in_.Count();
    for (std::size_t i = 0; i < count && in_.ok(); ++i) {
      Get(values.emplace_back());
    }
  }

  template <class T>
  void Get(std::map<std::string, T>& values) {
    const std::size_t count = in_.Count();
    for (std::size_t i = 0; i < count && in_.ok(); ++i) {
      const std::string key = in_.Text();
      Get(values[key]);
    }
  }

  template <class T>
    requires std::is_class_v<T>
  void Get(T& value) {
    std::apply([this](auto&... members) { (Get(members), ...); }, Members(value));
  }

  [[nodiscard]] bool Complete() const { return fits_ && in_.Complete(); }

 private:
  ByteReader in_;
  bool fits_ = true;
};

template <class Message>
Frame Encode(ControlKind kind, std::uint64_t sequence, const Message& message) {
  Encoder out;
  out.Put(message);
  return {static_cast<std::uint16_t>(kind), sequence, out.Take()};
}

}  // namespace

Frame ToFrame(ControlKind kind, std::uint64_t sequence, const OpenMessage& message) {
  return Encode(kind, sequence, message);
}

Frame ToFrame(ControlKind kind, std::uint64_t sequence, const AllocateMessage& message) {
  return Encode(kind, sequence, message);
}

Frame ToFrame(ControlKind kind, std::uint64_t sequence, const FreeMessage& message) {
  return Encode(kind, sequence, message);
}

Frame ToFrame(ControlKind kind, std::uint64_t sequence, const BeginCallMessage& message) {
  return Encode(kind, sequence, message);
}

Frame ToFrame(ControlKind kind, std::uint64_t sequence, const EndCallMessage& message) {
  return Encode(kind, sequence, message);
}

Frame ToFrame(ControlKind kind, std::uint64_t sequence, const Answer& message) {
  return Encode(kind, sequence, message);
}

Frame ToFrame(ControlKind kind, std::uint64_t sequence, const CallReport& message) {
  return Encode(kind, sequence, message);
}

template <class Message>
std::optional<Message> DecodeControl(const Frame& frame) {
  Decoder in(frame.payload);
  Message message;
  in.Get(message);
  if (!in.Complete()) {
    return std::nullopt;
  }
  return message;
}

template std::optional<OpenMessage> DecodeControl(const Frame& frame);
template std::optional<AllocateMessage> DecodeControl(const Frame& frame);
template std::optional<FreeMessage> DecodeControl(const Frame& frame);
template std::optional<BeginCallMessage> DecodeControl(const Frame& frame);
template std::optional<EndCallMessage> DecodeControl(const Frame& frame);
template std::optional<Answer> DecodeControl(const Frame& frame);
template std::optional<CallReport> DecodeControl(const Frame& frame);

}  // namespace kernelpro::protocol
