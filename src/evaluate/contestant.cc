// SPDX-License-Identifier: Apache-2.0
#include "evaluate/contestant.h"

#include <utility>

#include "device/cuda/arena.h"
#include "evaluate/fill.h"

namespace kernelpro {
namespace {

std::uint64_t Count(const TensorSpec& tensor, const Workload& workload) {
  const auto count = ElementCount(tensor, workload.axes);
  return count ? static_cast<std::uint64_t>(*count) : 0;  // checked when the set was made
}

/// What content `content` is for input `tensor`: the same for every contestant.
cuda::MixRule RuleOf(std::uint64_t content, std::size_t tensor, std::uint64_t count) {
  Rng rng = Rng(content).Fork(tensor);
  cuda::MixRule rule;
  rule.key = rng.Next();
  rule.shift_a = rng.Below(count);
  rule.shift_b = rng.Below(count);
  return rule;
}

}  // namespace

Result<Masters> Masters::Create(const Task& task, const Workload& workload, const cuda::Gpu& gpu,
                                Rng secrets) {
  Masters masters;
  for (std::size_t t = 0; t < task.tensors.size(); ++t) {
    const TensorSpec& tensor = task.tensors[t];
    if (tensor.role != Role::kInput) {
      continue;
    }
    Pair pair;
    for (cuda::Memory* const memory : {&pair.a, &pair.b}) {
      const std::vector<std::byte> bytes =
          MakeInput(tensor, Count(tensor, workload), secrets.Next());
      KP_ASSIGN_OR_RETURN(*memory, gpu.Allocate(bytes.size()));
      KP_RETURN_IF_ERROR(gpu.Upload(memory->address(), bytes));
    }
    masters.inputs.emplace(tensor.name, std::move(pair));
  }
  return masters;
}

Result<std::uint64_t> Contestant::SetBytes(const Task& task, const Workload& workload) {
  std::uint64_t bytes = 0;
  for (const TensorSpec& tensor : task.tensors) {
    KP_ASSIGN_OR_RETURN(const std::int64_t count, ElementCount(tensor, workload.axes));
    bytes += cuda::Arena::Footprint(static_cast<std::uint64_t>(count) * SizeOf(tensor.dtype));
  }
  return bytes;
}

Status Contestant::Reserve(std::size_t count) {
  const ArgsLayout layout = TaskArgsLayout(task_);
  while (sets_.size() < count) {
    Set set;
    for (const ArgsField& field : layout.fields) {
      if (field.kind != ArgsField::Kind::kTensor) {
        continue;
      }
      const TensorSpec& tensor = task_.tensors[set.buffers.size()];
      KP_ASSIGN_OR_RETURN(
          const BufferId id,
          session_.Allocate({.name = tensor.name,
                             .bytes = Count(tensor, workload_) * SizeOf(tensor.dtype),
                             .read_only = tensor.role == Role::kInput}));
      set.buffers.push_back(id);
      set.pointers.push_back({field.offset, id});
    }
    sets_.push_back(std::move(set));
  }
  return Ok();
}

Status Contestant::Release() {
  for (const Set& set : sets_) {
    for (const BufferId id : set.buffers) {
      KP_RETURN_IF_ERROR(session_.Free(id));
    }
  }
  sets_.clear();
  return Ok();
}

std::uint64_t Contestant::PoisonSeed(std::size_t set, std::size_t tensor,
                                     std::uint64_t content) const {
  return Rng(content).Fork(1000 + set).Fork(tensor).Next();
}

Status Contestant::Fill(std::size_t set, const Masters& masters, std::uint64_t content) {
  cuda::MemoryKernels& kernels = session_.gpu().kernels();
  for (std::size_t t = 0; t < task_.tensors.size(); ++t) {
    const TensorSpec& tensor = task_.tensors[t];
    KP_ASSIGN_OR_RETURN(const cuda::DevicePointer address, Address(set, t));
    const std::uint64_t count = Count(tensor, workload_);
    if (tensor.role == Role::kInput) {
      const Masters::Pair& pair = masters.inputs.at(tensor.name);
      kernels.Mix(address, pair.a.address(), pair.b.address(), count, tensor.dtype,
                  RuleOf(content, t, count));
    } else {
      kernels.Poison(address, count * SizeOf(tensor.dtype), PoisonSeed(set, t, content));
    }
  }
  return kernels.TakeFailure();
}

Status Contestant::CountFlaws(std::size_t set, const Masters& masters, std::uint64_t content,
                              cuda::DevicePointer counts) {
  cuda::MemoryKernels& kernels = session_.gpu().kernels();
  for (std::size_t t = 0; t < task_.tensors.size(); ++t) {
    const TensorSpec& tensor = task_.tensors[t];
    KP_ASSIGN_OR_RETURN(const cuda::DevicePointer address, Address(set, t));
    const std::uint64_t count = Count(tensor, workload_);
    if (tensor.role == Role::kInput) {
      const Masters::Pair& pair = masters.inputs.at(tensor.name);
      kernels.CheckMix(address, pair.a.address(), pair.b.address(), count, tensor.dtype,
                       RuleOf(content, t, count), counts);
    } else if (IsFloat(tensor.dtype) || SizeOf(tensor.dtype) >= 4) {
      // In a narrow integer the poison is also a value that an honest kernel may write.
      kernels.CountPoison(address, count, tensor.dtype, PoisonSeed(set, t, content), counts + 8);
    }
  }
  return kernels.TakeFailure();
}

Result<std::string> Contestant::BrokenGuard(std::size_t sets) {
  std::vector<BufferId> ids;
  for (std::size_t s = 0; s < sets && s < sets_.size(); ++s) {
    ids.insert(ids.end(), sets_[s].buffers.begin(), sets_[s].buffers.end());
  }
  return session_.BrokenGuard(ids);
}

}  // namespace kernelpro
