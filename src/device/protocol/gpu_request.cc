// SPDX-License-Identifier: Apache-2.0
#include "device/protocol/gpu_request.h"

#include "device/protocol/bytes.h"

namespace kernelpro::protocol {
namespace {

/// Far above what any request has; keeps a lying count from becoming a large allocation.
constexpr std::size_t kMostValues = 8192;

void WriteBody(ByteWriter& out, const std::vector<std::uint64_t>& values,
               std::span<const std::byte> bytes) {
  out.Varint(values.size());
  for (const std::uint64_t value : values) {
    out.Varint(value);
  }
  out.Blob(bytes);
}

bool ReadBody(ByteReader& in, std::vector<std::uint64_t>* values, std::vector<std::byte>* bytes) {
  const std::size_t count = in.Count();
  if (count > kMostValues) {
    return false;
  }
  values->resize(count);
  for (std::uint64_t& value : *values) {
    value = in.Varint();
  }
  const auto blob = in.Blob();
  bytes->assign(blob.begin(), blob.end());
  return in.Complete();
}

}  // namespace

Frame ToFrame(const GpuRequest& request, std::uint64_t sequence) {
  ByteWriter out;
  WriteBody(out, request.values, request.bytes);
  return {static_cast<std::uint16_t>(request.op), sequence, out.Take()};
}

Frame ToFrame(const GpuReply& reply, const Frame& request) {
  ByteWriter out;
  out.U32(static_cast<std::uint32_t>(reply.error));
  WriteBody(out, reply.values, reply.bytes);
  return {request.kind, request.sequence, out.Take()};
}

std::optional<GpuRequest> DecodeGpuRequest(const Frame& frame) {
  if (frame.kind < static_cast<std::uint16_t>(GpuOp::kRegisterModule) ||
      frame.kind > static_cast<std::uint16_t>(GpuOp::kDeviceInfo)) {
    return std::nullopt;
  }
  GpuRequest request;
  request.op = static_cast<GpuOp>(frame.kind);
  ByteReader in(frame.payload);
  if (!ReadBody(in, &request.values, &request.bytes)) {
    return std::nullopt;
  }
  return request;
}

std::optional<GpuReply> DecodeGpuReply(const Frame& frame) {
  GpuReply reply;
  ByteReader in(frame.payload);
  reply.error = static_cast<std::int32_t>(in.U32());
  if (!ReadBody(in, &reply.values, &reply.bytes)) {
    return std::nullopt;
  }
  return reply;
}

}  // namespace kernelpro::protocol
