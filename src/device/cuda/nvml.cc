// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/nvml.h"

#include <dlfcn.h>

#include <array>

namespace kernelpro::cuda {
namespace {

/// nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3.
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};

// nvml.h: nvmlClockType_t and nvmlTemperatureSensors_t.
constexpr int kSmClock = 1;
constexpr int kMemoryClock = 2;
constexpr int kGpuSensor = 0;

struct Reason {
  std::uint64_t bit;
  const char* name;
  bool spoils;
};

/// nvml.h, nvmlClocksEventReason*.
constexpr std::array<Reason, 6> kReasons{{{0x04, "software power cap", false},
                                          {0x08, "hardware slowdown", true},
                                          {0x10, "sync boost", false},
                                          {0x20, "software thermal slowdown", true},
                                          {0x40, "hardware thermal slowdown", true},
                                          {0x80, "hardware power brake", true}}};

}  // namespace

std::vector<std::string> ThrottleReasons(std::uint64_t bits) {
  std::vector<std::string> names;
  for (const Reason& reason : kReasons) {
    if ((bits & reason.bit) != 0) {
      names.emplace_back(reason.name);
    }
  }
  return names;
}

bool SpoilsSample(std::uint64_t bits) {
  for (const Reason& reason : kReasons) {
    if (reason.spoils && (bits & reason.bit) != 0) {
      return true;
    }
  }
  return false;
}

struct Nvml::Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_bus_id)(const char*, void**) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*clock)(void*, int, unsigned*) = nullptr;
  int (*temperature)(void*, int, unsigned*) = nullptr;
  int (*power)(void*, unsigned*) = nullptr;
  int (*throttle)(void*, unsigned long long*) = nullptr;
  int (*energy)(void*, unsigned long long*) = nullptr;
  int (*max_clock)(void*, int, unsigned*) = nullptr;
  int (*processes)(void*, unsigned*, ProcessInfo*) = nullptr;
};

Nvml::Nvml() : functions_(std::make_unique<Functions>()) {}

Nvml::~Nvml() {
  if (missing_.empty() && functions_->shutdown != nullptr) {
    functions_->shutdown();
  }
}

std::unique_ptr<Nvml> Nvml::Open(const std::string& bus_id) {
  std::unique_ptr<Nvml> nvml(new Nvml);
  void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    nvml->missing_ = "libnvidia-ml.so.1 cannot be loaded";
    return nvml;
  }
  Functions& f = *nvml->functions_;
  const auto find = [&](auto& pointer, const char* name) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(::dlsym(library, name));
  };
  find(f.init, "nvmlInit_v2");
  find(f.shutdown, "nvmlShutdown");
  find(f.by_bus_id, "nvmlDeviceGetHandleByPciBusId_v2");
  find(f.driver_version, "nvmlSystemGetDriverVersion");
  find(f.clock, "nvmlDeviceGetClockInfo");
  find(f.temperature, "nvmlDeviceGetTemperature");
  find(f.power, "nvmlDeviceGetPowerUsage");
  find(f.throttle, "nvmlDeviceGetCurrentClocksEventReasons");
  if (f.throttle == nullptr) {  // its name before driver 535
    find(f.throttle, "nvmlDeviceGetCurrentClocksThrottleReasons");
  }
  find(f.energy, "nvmlDeviceGetTotalEnergyConsumption");
  find(f.max_clock, "nvmlDeviceGetMaxClockInfo");
  find(f.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  if (f.init == nullptr || f.by_bus_id == nullptr || f.init() != 0) {
    nvml->missing_ = "NVML does not start";
    return nvml;
  }
  if (f.by_bus_id(bus_id.c_str(), &nvml->device_) != 0) {
    nvml->missing_ = "NVML does not know the GPU at " + bus_id;
  }
  std::array<char, 96> version{};
  if (f.driver_version != nullptr && f.driver_version(version.data(), version.size()) == 0) {
    nvml->driver_version_ = version.data();
  }
  return nvml;
}

Reading Nvml::Read() const {
  Reading reading;
  if (!missing_.empty()) {
    return reading;
  }
  unsigned value = 0;
  const Functions& f = *functions_;
  if (f.clock != nullptr && f.clock(device_, kSmClock, &value) == 0) {
    reading.sm_mhz = value;
  }
  if (f.clock != nullptr && f.clock(device_, kMemoryClock, &value) == 0) {
    reading.memory_mhz = value;
  }
  if (f.temperature != nullptr && f.temperature(device_, kGpuSensor, &value) == 0) {
    reading.temperature_c = value;
  }
  if (f.power != nullptr && f.power(device_, &value) == 0) {
    reading.power_w = value / 1000.0;
  }
  unsigned long long bits = 0;
  if (f.throttle != nullptr && f.throttle(device_, &bits) == 0) {
    reading.throttle = bits;
    reading.throttle_known = true;
  }
  return reading;
}

std::optional<std::uint64_t> Nvml::TotalEnergyMj() const {
  unsigned long long millijoules = 0;
  if (!missing_.empty() || functions_->energy == nullptr ||
      functions_->energy(device_, &millijoules) != 0) {
    return std::nullopt;
  }
  return millijoules;
}

double Nvml::MaxSmMhz() const {
  unsigned mhz = 0;
  return missing_.empty() && functions_->max_clock != nullptr &&
                 functions_->max_clock(device_, kSmClock, &mhz) == 0
             ? mhz
             : -1;
}

std::vector<pid_t> Nvml::ComputeProcesses() const {
  std::vector<pid_t> pids;
  if (!missing_.empty() || functions_->processes == nullptr) {
    return pids;
  }
  std::array<ProcessInfo, 64> infos{};
  auto count = static_cast<unsigned>(infos.size());
  if (functions_->processes(device_, &count, infos.data()) == 0) {
    for (unsigned i = 0; i < count; ++i) {
      pids.push_back(static_cast<pid_t>(infos.at(i).pid));
    }
  }
  return pids;
}

}  // namespace kernelpro::cuda
