// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "task/float16.h"
#include "task/task.h"

namespace kernelpro {
namespace {

enum class Side : std::uint8_t { kCandidate, kReference };

/// The reference gets float scalars as double, whatever the candidate gets.
DType ScalarType(const ScalarSpec& scalar, Side side) {
  return side == Side::kReference && IsFloat(scalar.dtype) ? DType::kF64 : scalar.dtype;
}

void Append(ArgsLayout* layout, ArgsField::Kind kind, const std::string& name,
            std::uint32_t bytes) {
  const std::uint32_t offset = (layout->bytes + bytes - 1) / bytes * bytes;
  layout->fields.push_back({.kind = kind, .name = name, .offset = offset, .bytes = bytes});
  layout->bytes = offset + bytes;
}

ArgsLayout Layout(const Task& task, Side side) {
  constexpr std::uint32_t kWord = 8;
  ArgsLayout layout;
  for (const std::string& axis : task.axes) {
    Append(&layout, ArgsField::Kind::kAxis, axis, kWord);
  }
  for (const ScalarSpec& scalar : task.scalars) {
    Append(&layout, ArgsField::Kind::kScalar, scalar.name, SizeOf(ScalarType(scalar, side)));
  }
  for (const TensorSpec& tensor : task.tensors) {
    Append(&layout, ArgsField::Kind::kTensor, tensor.name, kWord);
  }
  // A task has an output, so the strictest alignment in the struct is that of a pointer.
  layout.bytes = (layout.bytes + kWord - 1) / kWord * kWord;
  return layout;
}

template <class T>
void Put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

void PutScalar(std::byte* to, DType dtype, double value) {
  switch (dtype) {
    case DType::kF64:
      return Put(to, value);
    case DType::kF32:
      return Put(to, static_cast<float>(value));
    case DType::kF16:
      return Put(to, HalfBits(value));
    case DType::kBF16:
      return Put(to, BFloat16Bits(value));
    case DType::kI64:
      return Put(to, static_cast<std::int64_t>(value));
    case DType::kI32:
      return Put(to, static_cast<std::int32_t>(value));
    case DType::kI8:
      return Put(to, static_cast<std::int8_t>(value));
    case DType::kU32:
      return Put(to, static_cast<std::uint32_t>(value));
    case DType::kU8:
      return Put(to, static_cast<std::uint8_t>(value));
  }
}

Result<std::vector<std::byte>> Image(const Task& task, const AxisValues& axes, Side side) {
  const ArgsLayout layout = Layout(task, side);
  std::vector<std::byte> image(layout.bytes);
  std::size_t field = 0;
  for (const std::string& axis : task.axes) {
    const auto found = axes.find(axis);
    if (found == axes.end()) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("axis \"{}\" has no value", axis));
    }
    Put(image.data() + layout.fields[field++].offset, found->second);
  }
  for (const ScalarSpec& scalar : task.scalars) {
    PutScalar(image.data() + layout.fields[field++].offset, ScalarType(scalar, side), scalar.value);
  }
  return image;
}

}  // namespace

ArgsLayout TaskArgsLayout(const Task& task) {
  return Layout(task, Side::kCandidate);
}

ArgsLayout ReferenceArgsLayout(const Task& task) {
  return Layout(task, Side::kReference);
}

Result<std::vector<std::byte>> TaskArgsImage(const Task& task, const AxisValues& axes) {
  return Image(task, axes, Side::kCandidate);
}

Result<std::vector<std::byte>> ReferenceArgsImage(const Task& task, const AxisValues& axes) {
  return Image(task, axes, Side::kReference);
}

}  // namespace kernelpro
