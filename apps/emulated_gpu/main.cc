// SPDX-License-Identifier: Apache-2.0
// kernelpro-emulated-gpu: the process that owns device memory, runs kernels and keeps the counters
// of one session. Started by the referee with its socket as descriptor 3 and the runner's as 4.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>

#include "device/gpu/emulated_gpu.h"
#include "device/gpu/serve.h"
#include "device/protocol/runner_message.h"
#include "emulator/model/model.h"

namespace kernelpro {
namespace {

/// Device memory is host memory here; leave some for everybody else.
std::uint64_t UsableMemory() {
  const auto pages = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  const auto page = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PAGESIZE)));
  constexpr std::uint64_t kOf = 4;
  constexpr std::uint64_t kUsed = 3;
  return pages / kOf * kUsed * page;
}

/// Under memory pressure the kernel shall end this process, which a session survives as "device
/// lost", and not the referee.
void OfferForKilling() {
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd >= 0) {
    [[maybe_unused]] const ssize_t n = ::write(fd, "900", 3);
    ::close(fd);
  }
}

int Run(const char* name) {
  OfferForKilling();
  auto spec = model::LoadSpec(name);
  if (!spec) {
    fmt::print(stderr, "kernelpro-emulated-gpu: {}\n", spec.error().message);
    return 1;
  }
  gpu::EmulatedGpu gpu(std::move(spec).value(), UsableMemory());
  const auto served = gpu::Serve(gpu, protocol::kRefereeFd, protocol::kGpuFd);
  if (!served) {
    fmt::print(stderr, "kernelpro-emulated-gpu: {}\n", served.error().message);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace kernelpro

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("kernelpro-emulated-gpu is started by kernelpro; it takes the name of a GPU\n",
               stderr);
    return 1;
  }
  try {
    return kernelpro::Run(argv[1]);
  } catch (const std::exception& thrown) {
    std::fprintf(stderr, "kernelpro-emulated-gpu: %s\n", thrown.what());
    return 1;
  }
}
