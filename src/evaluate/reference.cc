// SPDX-License-Identifier: Apache-2.0
#include "evaluate/reference.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/text.h"
#include "evaluate/numeric.h"
#include "process/process.h"

namespace kernelpro {
namespace {

constexpr std::uint64_t kAlignment = 64;

std::uint64_t AlignUp(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

/// Anonymous memory that a child can map through the descriptor.
class SharedBlock {
 public:
  [[nodiscard]] static Result<SharedBlock> Create(std::uint64_t bytes) {
    SharedBlock block;
    block.fd_ = ::memfd_create("kernelpro-reference", MFD_CLOEXEC);
    if (block.fd_ < 0 || ::ftruncate(block.fd_, static_cast<off_t>(bytes)) != 0) {
      return Fail(ErrorCode::kIo, fmt::format("cannot share {} bytes with the reference", bytes));
    }
    void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, block.fd_, 0);
    if (mapped == MAP_FAILED) {
      return Fail(ErrorCode::kIo, fmt::format("cannot map {} bytes for the reference", bytes));
    }
    block.bytes_ = std::span(static_cast<std::byte*>(mapped), bytes);
    return block;
  }

  SharedBlock(SharedBlock&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), bytes_(std::exchange(other.bytes_, {})) {}

  SharedBlock& operator=(SharedBlock&&) = delete;
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;

  ~SharedBlock() {
    if (!bytes_.empty()) {
      ::munmap(bytes_.data(), bytes_.size());
    }
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }

  [[nodiscard]] int fd() const { return fd_; }

  [[nodiscard]] std::byte* at(std::uint64_t offset) const { return bytes_.data() + offset; }

 private:
  SharedBlock() = default;

  int fd_ = -1;
  std::span<std::byte> bytes_;
};

/// Bytes of one element as the reference sees it: floats as double, integers as they are.
std::uint64_t ReferenceSize(DType dtype) {
  return IsFloat(dtype) ? 8 : SizeOf(dtype);
}

/// Where in ReferenceArgs the tensor pointers are, in order of task.tensors.
std::vector<std::uint64_t> PointerOffsets(const Task& task) {
  std::vector<std::uint64_t> offsets;
  for (const ArgsField& field : ReferenceArgsLayout(task).fields) {
    if (field.kind == ArgsField::Kind::kTensor) {
      offsets.push_back(field.offset);
    }
  }
  return offsets;
}

void StoreInput(const TensorSpec& tensor, const std::vector<std::byte>& bytes, std::byte* out) {
  if (!IsFloat(tensor.dtype)) {
    std::memcpy(out, bytes.data(), bytes.size());
    return;
  }
  const std::size_t size = SizeOf(tensor.dtype);
  for (std::size_t i = 0; i < bytes.size() / size; ++i) {
    const double value = LoadElement(tensor.dtype, bytes.data() + i * size);
    std::memcpy(out + i * sizeof value, &value, sizeof value);
  }
}

std::vector<double> LoadOutput(const TensorSpec& tensor, std::uint64_t count, const std::byte* in) {
  if (!IsFloat(tensor.dtype)) {
    return ToDoubles(tensor.dtype, std::span(in, count * SizeOf(tensor.dtype)));
  }
  std::vector<double> values(count);
  std::memcpy(values.data(), in, count * sizeof(double));
  return values;
}

}  // namespace

Result<TensorDoubles> Reference::Run(const AxisValues& axes, const TensorBytes& inputs,
                                     const std::stop_token& stop) const {
  KP_ASSIGN_OR_RETURN(const std::vector<std::byte> image, ReferenceArgsImage(task_, axes));
  const std::vector<std::uint64_t> pointer_offsets = PointerOffsets(task_);
  ReferenceBlock header;
  header.args_offset = AlignUp(sizeof header, kAlignment);
  header.pointers_offset = AlignUp(header.args_offset + image.size(), kAlignment);
  header.pointer_count = task_.tensors.size();
  std::uint64_t end = header.pointers_offset + header.pointer_count * 16;
  std::vector<std::uint64_t> offsets;
  std::vector<std::uint64_t> counts;
  for (const TensorSpec& tensor : task_.tensors) {
    KP_ASSIGN_OR_RETURN(const std::int64_t count, ElementCount(tensor, axes));
    end = AlignUp(end, kAlignment);
    offsets.push_back(end);
    counts.push_back(static_cast<std::uint64_t>(count));
    end += counts.back() * ReferenceSize(tensor.dtype);
  }
  KP_ASSIGN_OR_RETURN(const SharedBlock block, SharedBlock::Create(end));
  std::memcpy(block.at(0), &header, sizeof header);
  std::memcpy(block.at(header.args_offset), image.data(), image.size());
  for (std::size_t i = 0; i < task_.tensors.size(); ++i) {
    std::memcpy(block.at(header.pointers_offset + i * 16), &pointer_offsets[i], 8);
    std::memcpy(block.at(header.pointers_offset + i * 16 + 8), &offsets[i], 8);
    if (task_.tensors[i].role == Role::kInput) {
      StoreInput(task_.tensors[i], inputs.at(task_.tensors[i].name), block.at(offsets[i]));
    }
  }
  ProcessSpec spec;
  spec.argv = {program_.string(), library_.string()};
  spec.fds = {{block.fd(), 3}};
  spec.limits.wall = std::chrono::minutes(2);
  spec.confinement = SystemConfinement();
  for (const std::filesystem::path& file :
       {program_, library_, program_.parent_path() / "../lib"}) {
    spec.confinement->read_only.push_back(file);
  }
  KP_ASSIGN_OR_RETURN(const ProcessResult ran, RunProcess(spec, stop));
  if (!ran.Succeeded()) {
    return Fail(
        ran.end == ProcessResult::End::kCancelled ? ErrorCode::kCancelled : ErrorCode::kToolFailed,
        fmt::format("the reference {} {}{}{}", task_.reference.string(),
                    DescribeEnd(ran, spec.limits), ran.err.empty() ? "" : ": ",
                    Printable(Trim(ran.err), 2000)));
  }
  TensorDoubles outputs;
  for (std::size_t i = 0; i < task_.tensors.size(); ++i) {
    if (task_.tensors[i].role == Role::kOutput) {
      outputs[task_.tensors[i].name] =
          LoadOutput(task_.tensors[i], counts[i], block.at(offsets[i]));
    }
  }
  return outputs;
}

}  // namespace kernelpro
