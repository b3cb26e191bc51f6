// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "device/cuda/arena.h"
#include "device/cuda/gpu.h"
#include "device/cuda/runner_process.h"
#include "device/cuda/session.h"
#include "device/emulated_launch.h"
#include "emulator/model/model.h"

namespace kernelpro::cuda {
namespace {

/// A session that gives its memory back to the device when it ends.
class Lease final : public Session {
 public:
  Lease(std::unique_ptr<CudaSession> session, std::vector<std::unique_ptr<Arena>>* spare)
      : session_(std::move(session)), spare_(spare) {}

  ~Lease() override { spare_->push_back(session_->TakeArena()); }

  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  [[nodiscard]] Result<BufferId> Allocate(const BufferRequest& request) override {
    return session_->Allocate(request);
  }

  [[nodiscard]] Status Free(BufferId id) override { return session_->Free(id); }

  [[nodiscard]] Status Write(BufferId id, std::uint64_t offset,
                             std::span<const std::byte> bytes) override {
    return session_->Write(id, offset, bytes);
  }

  [[nodiscard]] Status Read(BufferId id, std::uint64_t offset,
                            std::span<std::byte> bytes) override {
    return session_->Read(id, offset, bytes);
  }

  [[nodiscard]] Result<bool> GuardsIntact(BufferId id) override {
    return session_->GuardsIntact(id);
  }

  [[nodiscard]] Result<CallOutcome> Call(const CallRequest& request,
                                         const std::stop_token& stop) override {
    return session_->Call(request, stop);
  }

  [[nodiscard]] CudaSession* cuda() override { return session_.get(); }

  [[nodiscard]] std::vector<SandboxMeasure> sandbox() const override { return session_->sandbox(); }

 private:
  std::unique_ptr<CudaSession> session_;
  std::vector<std::unique_ptr<Arena>>* spare_;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(DeviceInfo info, std::unique_ptr<Gpu> gpu, RunnerRecipe recipe)
      : info_(std::move(info)), gpu_(std::move(gpu)), recipe_(std::move(recipe)) {}

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }

  [[nodiscard]] Gpu* gpu() override { return gpu_.get(); }

  void Prepare() override {
    if (!waiting_) {
      if (auto runner = RunnerProcess::Start(recipe_)) {
        waiting_ = std::move(runner).value();
      }
    }
  }

  [[nodiscard]] Result<std::unique_ptr<Session>> Open(const SessionRequest& request) override {
    KP_RETURN_IF_ERROR(gpu_->MakeCurrent());
    if (Status healthy = gpu_->Synchronize(); !healthy.ok()) {
      return std::move(healthy).error().Wrap("the GPU is not usable any more");
    }
    KP_ASSIGN_OR_RETURN(std::unique_ptr<Arena> arena, TakeArena(request.device_memory_bytes));
    std::unique_ptr<RunnerProcess> runner = std::move(waiting_);
    if (!runner || !runner->RunsAfter(std::chrono::milliseconds(0))) {
      KP_ASSIGN_OR_RETURN(runner, RunnerProcess::Start(recipe_));
    }
    KP_ASSIGN_OR_RETURN(std::unique_ptr<CudaSession> session,
                        CudaSession::Open(*gpu_, std::move(runner), std::move(arena), request));
    return std::unique_ptr<Session>(std::make_unique<Lease>(std::move(session), &spare_));
  }

 private:
  /// The smallest spare one that is large enough, or a new one.
  [[nodiscard]] Result<std::unique_ptr<Arena>> TakeArena(std::uint64_t bytes) {
    KP_ASSIGN_OR_RETURN(const std::uint64_t secret, SecretSeed());
    std::ranges::sort(spare_, {}, [](const auto& arena) { return arena->memory().bytes(); });
    const auto fits = std::ranges::find_if(
        spare_, [bytes](const auto& arena) { return arena->memory().bytes() >= bytes; });
    if (fits != spare_.end()) {
      std::unique_ptr<Arena> arena = std::move(*fits);
      spare_.erase(fits);
      arena->Reset(Rng(secret));
      return arena;
    }
    spare_.clear();  // Too small ones only take room.
    KP_ASSIGN_OR_RETURN(Memory memory, gpu_->Allocate(bytes));
    return std::make_unique<Arena>(std::move(memory), Rng(secret));
  }

  DeviceInfo info_;
  std::unique_ptr<Gpu> gpu_;
  RunnerRecipe recipe_;
  std::vector<std::unique_ptr<Arena>> spare_;
  std::unique_ptr<RunnerProcess> waiting_;
};

bool Matches(std::string_view gpu_name, std::string_view spec) {
  std::string lower;
  for (const char c : gpu_name) {
    if (c != ' ') {
      lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
  }
  return lower.find(spec) != std::string::npos;
}

DeviceInfo Describe(const Gpu& gpu, int index, const model::GpuSpec& spec, bool known) {
  DeviceInfo info;
  info.id = fmt::format("cuda:{}", index);
  info.title = gpu.name();
  info.spec = spec.name;
  info.arch =
      fmt::format("sm_{}{}", gpu.Attribute(kAttributeMajor), gpu.Attribute(kAttributeMinor));
  info.emulated = false;
  info.calibrated = known && spec.calibrated;
  info.l2_bytes = static_cast<std::uint64_t>(gpu.Attribute(kAttributeL2Bytes));
  info.hardware = HardwareOf(spec);
  if (!known) {
    // The driver's own figures, so that no floor is another GPU's.
    Hardware& h = info.hardware;
    h.name = gpu.name();
    h.sm_count = static_cast<std::uint32_t>(gpu.Attribute(kAttributeMultiprocessors));
    h.clock_hz = 1e3 * gpu.Attribute(kAttributeClockKhz);
    h.dram_peak_bytes_per_s =
        2e3 * gpu.Attribute(kAttributeMemoryClockKhz) * gpu.Attribute(kAttributeMemoryBusBits) / 8;
    h.dram_bytes_per_s = 0.9 * h.dram_peak_bytes_per_s;
    h.fp32_flops_per_s = h.fp32_lanes * 2.0 * h.sm_count * h.clock_hz;
  }
  return info;
}

}  // namespace

std::string SpecFor(std::string_view gpu_name, int major, int minor) {
  for (const std::string& spec : model::SpecNames()) {
    if (Matches(gpu_name, spec)) {
      return spec;
    }
  }
  return major >= 9 ? "h100" : major == 8 && minor == 9 ? "l4" : "a100";
}

int CountGpus() {
  Driver driver;
  int count = 0;
  if (!driver.Open().empty() || driver.cuInit(0) != kOk || driver.cuDeviceGetCount(&count) != kOk) {
    return 0;
  }
  return count;
}

Result<std::unique_ptr<Device>> OpenCuda(int index) {
  KP_ASSIGN_OR_RETURN(std::unique_ptr<Gpu> gpu, Gpu::Open(index));
  KP_ASSIGN_OR_RETURN(RunnerRecipe recipe, RunnerRecipe::Find(gpu->uuid()));
  const std::string name =
      SpecFor(gpu->name(), gpu->Attribute(kAttributeMajor), gpu->Attribute(kAttributeMinor));
  KP_ASSIGN_OR_RETURN(const model::GpuSpec spec, model::LoadSpec(name));
  DeviceInfo info = Describe(*gpu, index, spec, Matches(gpu->name(), name));
  return std::unique_ptr<Device>(
      std::make_unique<CudaDevice>(std::move(info), std::move(gpu), std::move(recipe)));
}

}  // namespace kernelpro::cuda
