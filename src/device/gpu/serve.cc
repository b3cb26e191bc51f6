// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/serve.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <string>
#include <utility>

#include "device/gpu/peer.h"
#include "device/protocol/control.h"
#include "device/protocol/gpu_request.h"

namespace kernelpro::gpu {
namespace {

using protocol::Answer;
using protocol::ControlKind;
using protocol::Frame;

/// Requests that may pile up between calls before the runner is cut off.
constexpr int kMostStray = 1000;

/// The referee's buffers as this process sees them.
struct Mapping {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
};

class Server {
 public:
  Server(EmulatedGpu& gpu, int referee_fd, int runner_fd)
      : gpu_(gpu),
        referee_(referee_fd, protocol::kControlPayloadLimit),
        runner_(runner_fd, protocol::kRunnerPayloadLimit) {}

  ~Server() {
    for (const auto& [address, mapping] : mappings_) {
      ::munmap(mapping.base, mapping.bytes);
    }
  }

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Status Run() {
    while (referee_.open()) {
      // A runner that does not take its answers is not asked for more.
      const bool hear_runner = in_call_ && runner_.open() && !runner_.wants_write();
      const short runner_events =
          static_cast<short>((hear_runner ? POLLIN : 0) | (runner_.wants_write() ? POLLOUT : 0));
      std::array<pollfd, 2> polls{
          {{referee_.fd(), static_cast<short>(POLLIN | (referee_.wants_write() ? POLLOUT : 0)), 0},
           {runner_events != 0 ? runner_.fd() : -1, runner_events, 0}}};
      if (::poll(polls.data(), polls.size(), -1) < 0 && errno != EINTR) {
        return Fail(ErrorCode::kIo, "emulated GPU: cannot wait for requests");
      }
      if (polls[0].revents != 0) {
        referee_.Flush();
        KP_RETURN_IF_ERROR(ServeReferee());
      }
      if (polls[1].revents != 0 && runner_.open()) {
        runner_.Flush();
        if (hear_runner) {
          runner_.Fill(false);
        }
        ServeRunner();
      }
    }
    return Ok();
  }

 private:
  Status ServeReferee() {
    if (!referee_.open()) {
      return Ok();
    }
    referee_.Fill(true);
    while (const auto frame = referee_.Next()) {
      KP_RETURN_IF_ERROR(Obey(*frame));
    }
    if (referee_.broken()) {
      return Fail(ErrorCode::kParse, "emulated GPU: the referee's stream is not understood");
    }
    return Ok();
  }

  void ServeRunner() {
    // Requests of one thread come one at a time, so at most a few are waiting here.
    while (in_call_ && !runner_.wants_write()) {
      const auto frame = runner_.Next();
      if (!frame) {
        break;
      }
      AnswerRunner(*frame);
    }
    if (runner_.broken()) {
      CutOff();
    }
  }

  void AnswerRunner(const Frame& frame) {
    const auto request = protocol::DecodeGpuRequest(frame);
    if (!request) {
      CutOff();
      return;
    }
    runner_.Push(protocol::ToFrame(gpu_.Handle(*request), frame));
  }

  void CutOff() {
    gpu_.NoteMalformed();
    runner_.Close();
  }

  /// Whatever waits on the runner's socket before a call is open was sent between calls.
  void RefuseStray() {
    for (int i = 0; i < kMostStray && runner_.open() && !runner_.broken(); ++i) {
      pollfd poll{runner_.fd(), POLLIN, 0};
      if (::poll(&poll, 1, 0) > 0 && (poll.revents & POLLIN) != 0) {
        runner_.Fill(false);
      }
      const auto frame = runner_.Next();
      if (!frame) {
        break;
      }
      runner_.Push(protocol::ToFrame(gpu_.RefuseStray(), *frame));
    }
    if (runner_.broken()) {
      CutOff();
    }
  }

  Status Obey(const Frame& frame) {
    const auto kind = static_cast<ControlKind>(frame.kind);
    Answer answer;
    switch (kind) {
      case ControlKind::kOpen: {
        auto message = protocol::DecodeControl<protocol::OpenMessage>(frame);
        if (!message) {
          return NotUnderstood();
        }
        gpu_.SetResources(std::move(message->kernels));
        break;
      }
      case ControlKind::kAllocate: {
        const auto message = protocol::DecodeControl<protocol::AllocateMessage>(frame);
        if (!message) {
          return NotUnderstood();
        }
        answer = Allocate(*message);
        break;
      }
      case ControlKind::kFree: {
        const auto message = protocol::DecodeControl<protocol::FreeMessage>(frame);
        if (!message) {
          return NotUnderstood();
        }
        answer = Free(message->address);
        break;
      }
      case ControlKind::kBeginCall: {
        const auto message = protocol::DecodeControl<protocol::BeginCallMessage>(frame);
        if (!message) {
          return NotUnderstood();
        }
        // The first call is the loading of the candidate, which may have begun before this message.
        if (loaded_) {
          RefuseStray();
        }
        gpu_.BeginCall(*message);
        loaded_ = true;
        in_call_ = true;
        break;
      }
      case ControlKind::kEndCall:
        in_call_ = false;
        referee_.Push(protocol::ToFrame(kind, frame.sequence, gpu_.EndCall()));
        return Ok();
      default:
        return NotUnderstood();
    }
    referee_.Push(protocol::ToFrame(kind, frame.sequence, answer));
    return Ok();
  }

  static Status NotUnderstood() {
    return Fail(ErrorCode::kParse, "emulated GPU: a message of the referee is not understood");
  }

  Answer Allocate(const protocol::AllocateMessage& message) {
    const int fd = referee_.TakeDescriptor();
    if (fd < 0) {
      return {0, "no memory came with the request for a buffer"};
    }
    const bool fits = message.offset <= message.mapping_bytes &&
                      message.bytes <= message.mapping_bytes - message.offset;
    void* const base = fits ? ::mmap(nullptr, static_cast<std::size_t>(message.mapping_bytes),
                                     PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                            : MAP_FAILED;
    ::close(fd);
    if (base == MAP_FAILED) {
      return {0, fmt::format("cannot map {} bytes of buffer '{}'", message.bytes, message.name)};
    }
    const Mapping mapping{static_cast<std::byte*>(base),
                          static_cast<std::size_t>(message.mapping_bytes)};
    const auto address = gpu_.AddBuffer(message, mapping.base + message.offset);
    if (!address) {
      ::munmap(mapping.base, mapping.bytes);
      return {0, address.error().message};
    }
    mappings_[*address] = mapping;
    return {*address, ""};
  }

  Answer Free(std::uint64_t address) {
    const auto mapping = mappings_.find(address);
    if (mapping == mappings_.end()) {
      return {0, fmt::format("no buffer at {:#x}", address)};
    }
    const auto freed = gpu_.RemoveBuffer(address);
    ::munmap(mapping->second.base, mapping->second.bytes);
    mappings_.erase(mapping);
    return {0, freed ? "" : freed.error().message};
  }

  EmulatedGpu& gpu_;
  Peer referee_;
  Peer runner_;
  std::map<std::uint64_t, Mapping> mappings_;
  bool loaded_ = false;
  bool in_call_ = false;
};

}  // namespace

Status Serve(EmulatedGpu& gpu, int referee_fd, int runner_fd) {
  return Server(gpu, referee_fd, runner_fd).Run();
}

}  // namespace kernelpro::gpu
