// SPDX-License-Identifier: Apache-2.0
#include "device/runtime/client.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "device/protocol/channel.h"
#include "device/protocol/cuda_error.h"

namespace kernelpro::runtime {
namespace {

/// A CUDA runtime has one connection per process by its interface: this is the one global.
struct Connection {
  std::mutex mutex;
  std::unique_ptr<protocol::Channel> channel;
  std::uint64_t sequence = 0;
  std::atomic<CudaError> sticky{0};
};

/// A program with its own main is not connected by the runner: its environment says where the GPU
/// is (device/referee/program_run.h).
Connection* Open() {
  auto* const connection = new Connection;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): read once, nobody sets it here
  if (const char* fd = std::getenv("KERNELPRO_EMULATED_GPU_FD"); fd != nullptr) {
    connection->channel = std::make_unique<protocol::Channel>(
        static_cast<int>(std::strtol(fd, nullptr, 10)), protocol::kRunnerPayloadLimit);
  }
  return connection;
}

/// Never destroyed: static destructors of the candidate may still call CUDA.
Connection& TheConnection() {
  static Connection* const connection = Open();
  return *connection;
}

thread_local CudaError last_error = 0;

}  // namespace

protocol::GpuReply Ask(const protocol::GpuRequest& request) {
  Connection& c = TheConnection();
  const std::lock_guard lock(c.mutex);
  protocol::GpuReply lost;
  lost.error = protocol::kErrorInitialization;
  if (!c.channel) {
    return lost;
  }
  const std::uint64_t sequence = ++c.sequence;
  if (!c.channel->Send(protocol::ToFrame(request, sequence))) {
    return lost;
  }
  const auto frame = c.channel->Receive();
  if (!frame || frame->sequence != sequence) {
    return lost;
  }
  auto reply = protocol::DecodeGpuReply(*frame);
  if (!reply) {
    return lost;
  }
  if (protocol::IsStickyCudaError(reply->error)) {
    c.sticky = reply->error;
  }
  return *std::move(reply);
}

protocol::GpuReply Ask(protocol::GpuOp op, std::initializer_list<std::uint64_t> values,
                       std::span<const std::byte> bytes) {
  protocol::GpuRequest request;
  request.op = op;
  request.values = values;
  request.bytes.assign(bytes.begin(), bytes.end());
  return Ask(request);
}

CudaError Report(CudaError error) {
  // cudaErrorNotReady says how far work is; it is not an error to remember.
  if (error != protocol::kSuccess && error != protocol::kErrorNotReady) {
    last_error = error;
  }
  return error;
}

CudaError LastError(bool clear) {
  const CudaError sticky = TheConnection().sticky;
  if (sticky != protocol::kSuccess) {
    return sticky;
  }
  const CudaError error = last_error;
  if (clear) {
    last_error = protocol::kSuccess;
  }
  return error;
}

}  // namespace kernelpro::runtime

/// The runner connects this library to its emulated GPU before it loads the candidate. A real
/// libcudart has no such function and needs no connection.
KP_CUDA_API void kernelpro_runtime_connect(int fd) {
  auto& c = kernelpro::runtime::TheConnection();
  const std::lock_guard lock(c.mutex);
  c.channel =
      std::make_unique<kernelpro::protocol::Channel>(fd, kernelpro::protocol::kRunnerPayloadLimit);
}
