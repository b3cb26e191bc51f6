// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/protocol/frame.h"

/// What passes between the referee and its emulated GPU. Both are ours; frames are decoded with the
/// same care all the same. Every request is answered by one frame of the same kind and sequence.
namespace kernelpro::protocol {

inline constexpr std::uint32_t kControlPayloadLimit = 1U << 30U;

// NOLINTNEXTLINE(performance-enum-size): the width of Frame::kind
enum class ControlKind : std::uint16_t {
  kOpen = 1,   ///< OpenMessage -> Answer
  kAllocate,   ///< AllocateMessage and a memfd -> Answer with the device address
  kFree,       ///< FreeMessage -> Answer
  kBeginCall,  ///< BeginCallMessage -> Answer; from now on the runner is served
  kEndCall,    ///< EndCallMessage -> CallReport; from now on it is not
};

struct OpenMessage {
  std::map<std::string, model::KernelResources> kernels;  ///< ptxas figures by mangled name
};

struct AllocateMessage {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t mapping_bytes = 0;  ///< of the memfd
  std::uint64_t offset = 0;         ///< of the buffer in it: the rest is guard bands
  bool read_only = false;
};

struct FreeMessage {
  std::uint64_t address = 0;
};

struct BeginCallMessage {
  CallMode mode = CallMode::kCheck;
  std::uint64_t instruction_budget = 0;
};

struct EndCallMessage {};

struct Answer {
  std::uint64_t address = 0;
  std::string error;  ///< empty: done
};

/// A CUDA error that the GPU answered with, and why.
struct ErrorNote {
  std::int32_t error = 0;  ///< cudaError_t
  bool launch = false;     ///< it refused or ended a kernel
  std::string text;        ///< a sentence
};

/// What the GPU saw of one call; the referee believes this and nothing else.
struct CallReport {
  std::vector<EmulatedLaunch> launches;
  std::uint64_t launches_left_out = 0;  ///< above the limits below: figures not kept
  std::vector<simt::Fault> faults;      ///< of copies and fills by host code
  double device_us = 0;
  std::vector<ErrorNote> errors;     ///< the first of each kind, in order
  std::string unsupported;           ///< why the emulator cannot run this candidate; empty: it can
  std::int32_t sticky_error = 0;     ///< the context is unusable since
  bool out_of_memory = false;        ///< a cudaMalloc was refused
  std::uint64_t stray_requests = 0;  ///< came while no call was open: threads left behind
  bool malformed = false;            ///< the runner's stream was not our protocol
  std::uint64_t host_to_device_bytes = 0, device_to_host_bytes = 0;
};

/// A candidate must not be able to make a report that does not fit kControlPayloadLimit.
inline constexpr std::size_t kMostLaunchRecords = 2000;
inline constexpr std::size_t kMostInstructionRecords = 1'000'000;  ///< over all launches kept

[[nodiscard]] Frame ToFrame(ControlKind kind, std::uint64_t sequence, const OpenMessage& message);
[[nodiscard]] Frame ToFrame(ControlKind kind, std::uint64_t sequence,
                            const AllocateMessage& message);
[[nodiscard]] Frame ToFrame(ControlKind kind, std::uint64_t sequence, const FreeMessage& message);
[[nodiscard]] Frame ToFrame(ControlKind kind, std::uint64_t sequence,
                            const BeginCallMessage& message);
[[nodiscard]] Frame ToFrame(ControlKind kind, std::uint64_t sequence,
                            const EndCallMessage& message);
[[nodiscard]] Frame ToFrame(ControlKind kind, std::uint64_t sequence, const Answer& message);
[[nodiscard]] Frame ToFrame(ControlKind kind, std::uint64_t sequence, const CallReport& message);

/// Message is one of the structs above. Nothing when the payload is not exactly one of these.
template <class Message>
[[nodiscard]] std::optional<Message> DecodeControl(const Frame& frame);

}  // namespace kernelpro::protocol
