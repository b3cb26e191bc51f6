// SPDX-License-Identifier: Apache-2.0
#include "record.h"

#include <string_view>
#include <utility>

namespace kernelpro::activity {
namespace {

std::string_view Safe(const char* text) {
  return text == nullptr ? std::string_view("?") : std::string_view(text);
}

template <class Record>
const Record& As(const CUpti_Activity& record) {
  return reinterpret_cast<const Record&>(record);
}

template <class Record>
bool Ended(const Record& r) {
  return r.end != 0 && r.end >= r.start;
}

Line& Span(Line& line, std::uint64_t start, std::uint64_t end) {
  return line.Number("s", start).Number("e", end);
}

bool Kernel(const CUpti_ActivityKernel10& r, Log* log) {
  if (!Ended(r)) {
    return false;
  }
  if (log->Admit()) {
    Line line("kernel");
    const std::uint32_t name = log->NameId(Safe(r.name));
    Span(line.Number("n", name), r.start, r.end)
        .Number("d", r.deviceId)
        .Number("st", r.streamId)
        .Number("c", r.correlationId)
        .Triple("g", r.gridX, r.gridY, r.gridZ)
        .Triple("b", r.blockX, r.blockY, r.blockZ)
        .Number("r", r.registersPerThread)
        .Number("ss", static_cast<std::uint32_t>(r.staticSharedMemory))
        .Number("ds", static_cast<std::uint32_t>(r.dynamicSharedMemory))
        .Number("l", r.localMemoryPerThread)
        .Number("gr", r.graphNodeId != 0 ? r.graphId : 0)
        .Number("gn", r.graphNodeId);
    log->Record(std::move(line));
  }
  return true;
}

bool Copy(const CUpti_ActivityMemcpy6& r, Log* log) {
  if (!Ended(r)) {
    return false;
  }
  if (log->Admit()) {
    Line line("copy");
    Span(line, r.start, r.end)
        .Number("k", r.copyKind)
        .Number("src", r.srcKind)
        .Number("dst", r.dstKind)
        .Number("by", r.bytes)
        .Number("d", r.deviceId)
        .Number("st", r.streamId)
        .Number("c", r.correlationId)
        .Number("gn", r.graphNodeId);
    log->Record(std::move(line));
  }
  return true;
}

bool Set(const CUpti_ActivityMemset4& r, Log* log) {
  if (!Ended(r)) {
    return false;
  }
  if (log->Admit()) {
    Line line("set");
    Span(line, r.start, r.end)
        .Number("by", r.bytes)
        .Number("d", r.deviceId)
        .Number("st", r.streamId)
        .Number("c", r.correlationId)
        .Number("gn", r.graphNodeId);
    log->Record(std::move(line));
  }
  return true;
}

bool Api(const CUpti_ActivityAPI& r, bool runtime, const Cupti& cupti, Log* log) {
  if (!Ended(r)) {
    return false;
  }
  if (log->Admit()) {
    const char* name = nullptr;
    if (cupti.callback_name != nullptr) {
      (void)cupti.callback_name(runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API,
                                r.cbid, &name);
    }
    const std::uint32_t id = log->NameId(Safe(name));
    Line line("api");
    Span(line.Number("n", id), r.start, r.end)
        .Number("c", r.correlationId)
        .Number("th", r.threadId)
        .Number("rt", runtime ? 1 : 0)
        .Number("rv", r.returnValue);
    log->Record(std::move(line));
  }
  return true;
}

bool Sync(const CUpti_ActivitySynchronization2& r, Log* log) {
  if (!Ended(r)) {
    return false;
  }
  if (log->Admit()) {
    Line line("sync");
    Span(line.Number("k", static_cast<std::uint32_t>(r.type)), r.start, r.end)
        .Number("c", r.correlationId);
    log->Record(std::move(line));
  }
  return true;
}

bool Overhead(const CUpti_ActivityOverhead3& r, Log* log) {
  if (!Ended(r)) {
    return false;
  }
  if (log->Admit()) {
    Line line("overhead");
    Span(line.Number("k", static_cast<std::uint32_t>(r.overheadKind)), r.start, r.end);
    log->Record(std::move(line));
  }
  return true;
}

bool Graph(const CUpti_ActivityGraphTrace2& r, Log* log) {
  if (!Ended(r)) {
    return false;
  }
  if (log->Admit()) {
    Line line("graph");
    Span(line.Number("gr", r.graphId), r.start, r.end)
        .Number("d", r.deviceId)
        .Number("st", r.streamId)
        .Number("c", r.correlationId);
    log->Record(std::move(line));
  }
  return true;
}

void Memory(const CUpti_ActivityMemory4& r, Log* log) {
  if (log->Admit()) {
    log->Record(std::move(Line("memory")
                              .Number("k", static_cast<std::uint32_t>(r.memoryOperationType))
                              .Number("m", static_cast<std::uint32_t>(r.memoryKind))
                              .Number("by", r.bytes)
                              .Number("s", r.timestamp)
                              .Number("c", r.correlationId)
                              .Number("as", r.isAsync != 0 ? 1 : 0)));
  }
}

bool Jit(const CUpti_ActivityJit2& r, Log* log) {
  if (!Ended(r)) {
    return false;
  }
  if (log->Admit()) {
    Line line("jit");
    Span(line.Number("k", static_cast<std::uint32_t>(r.jitOperationType)), r.start, r.end)
        .Number("c", r.correlationId);
    log->Record(std::move(line));
  }
  return true;
}

void Device(const CUpti_ActivityDevice5& r, Log* log) {
  log->Meta(std::move(Line("device")
                          .Number("id", r.id)
                          .Text("name", Safe(r.name))
                          .Number("sms", r.numMultiprocessors)
                          .Number("cc", r.computeCapabilityMajor * 10 + r.computeCapabilityMinor)));
}

}  // namespace

bool WriteRecord(const CUpti_Activity& record, const Cupti& cupti, Log* log) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return Kernel(As<CUpti_ActivityKernel10>(record), log);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return Copy(As<CUpti_ActivityMemcpy6>(record), log);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return Set(As<CUpti_ActivityMemset4>(record), log);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return Api(As<CUpti_ActivityAPI>(record), true, cupti, log);
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return Api(As<CUpti_ActivityAPI>(record), false, cupti, log);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return Sync(As<CUpti_ActivitySynchronization2>(record), log);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return Overhead(As<CUpti_ActivityOverhead3>(record), log);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return Graph(As<CUpti_ActivityGraphTrace2>(record), log);
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      Memory(As<CUpti_ActivityMemory4>(record), log);
      return true;
    case CUPTI_ACTIVITY_KIND_JIT:
      return Jit(As<CUpti_ActivityJit2>(record), log);
    case CUPTI_ACTIVITY_KIND_DEVICE:
      Device(As<CUpti_ActivityDevice5>(record), log);
      return true;
    default:
      return true;
  }
}

}  // namespace kernelpro::activity
