// SPDX-License-Identifier: Apache-2.0
// CUPTI's functions as far as the injection library uses them, with records made by hand: on the
// first flush FAKE_CUPTI_KERNELS (default 3) kernels, each with its launch, then one of every other
// kind; on a forced flush a kernel without an end. FAKE_CUPTI_VERSION and FAKE_CUPTI_REFUSE (a
// kind's number) make it unusable.
#include <cupti.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

CUpti_BuffersCallbackRequestFunc g_request = nullptr;
CUpti_BuffersCallbackCompleteFunc g_complete = nullptr;
std::atomic<bool> g_delivered{false};
CUpti_CallbackFunc g_callback = nullptr;
bool g_wants_stop = false;

unsigned Number(const char* name, unsigned otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

struct Buffer {
  std::uint8_t* data = nullptr;
  std::size_t size = 0, used = 0;

  template <class Record>
  void Add(const Record& record) {
    if (used + sizeof(Record) > size) {
      return;
    }
    std::memcpy(data + used, &record, sizeof(Record));
    used += sizeof(Record);
  }
};

CUpti_ActivityKernel10 Kernel(unsigned i) {
  CUpti_ActivityKernel10 r;
  std::memset(&r, 0, sizeof r);
  r.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  r.name = i % 2 == 0 ? "_Z4fillPfi" : "_Z5scaleIfEvPT_i";
  r.start = 1'000'000 + 10'000ULL * i;
  r.end = r.start + 5'000;
  r.streamId = 7;
  r.correlationId = 100 + i;
  r.gridX = 16;
  r.gridY = r.gridZ = r.blockY = r.blockZ = 1;
  r.blockX = 256;
  r.registersPerThread = 24;
  r.staticSharedMemory = 1024;
  return r;
}

CUpti_ActivityAPI Api(CUpti_ActivityKind kind, unsigned cbid, std::uint64_t start,
                      std::uint64_t end, unsigned correlation) {
  CUpti_ActivityAPI r;
  std::memset(&r, 0, sizeof r);
  r.kind = kind;
  r.cbid = cbid;
  r.start = start;
  r.end = end;
  r.threadId = 42;
  r.correlationId = correlation;
  return r;
}

void AddOthers(Buffer* buffer, std::uint64_t end) {
  CUpti_ActivityMemcpy6 copy;
  std::memset(&copy, 0, sizeof copy);
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
  copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  copy.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
  copy.bytes = 4096;
  copy.start = end + 1000;
  copy.end = end + 3000;
  copy.correlationId = 900;
  buffer->Add(copy);
  CUpti_ActivityMemset4 set;
  std::memset(&set, 0, sizeof set);
  set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  set.bytes = 64;
  set.start = end + 4000;
  set.end = end + 4500;
  buffer->Add(set);
  CUpti_ActivitySynchronization2 sync;
  std::memset(&sync, 0, sizeof sync);
  sync.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
  sync.start = end;
  sync.end = end + 500;
  sync.correlationId = 901;
  buffer->Add(sync);
  CUpti_ActivityMemory4 memory;
  std::memset(&memory, 0, sizeof memory);
  memory.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  memory.memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
  memory.bytes = 1 << 20;
  memory.timestamp = 900'000;
  memory.correlationId = 902;
  buffer->Add(memory);
  CUpti_ActivityJit2 jit;
  std::memset(&jit, 0, sizeof jit);
  jit.kind = CUPTI_ACTIVITY_KIND_JIT;
  jit.jitOperationType = CUPTI_ACTIVITY_JIT_OPERATION_COMPILE;
  jit.start = 500'000;
  jit.end = 600'000;
  buffer->Add(jit);
  CUpti_ActivityOverhead3 overhead;
  std::memset(&overhead, 0, sizeof overhead);
  overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  overhead.start = 100;
  overhead.end = 200;
  buffer->Add(overhead);
  if (Number("FAKE_CUPTI_GRAPH", 1) == 0) {
    return;
  }
  CUpti_ActivityGraphTrace2 graph;
  std::memset(&graph, 0, sizeof graph);
  graph.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  graph.start = end + 5000;
  graph.end = end + 9000;
  graph.graphId = 5;
  buffer->Add(graph);
}

void Deliver() {
  Buffer buffer;
  std::size_t most = 0;
  g_request(&buffer.data, &buffer.size, &most);
  CUpti_ActivityDevice5 device;
  std::memset(&device, 0, sizeof device);
  device.kind = CUPTI_ACTIVITY_KIND_DEVICE;
  device.name = "Fake \"GPU\" 9000";
  device.numMultiprocessors = 132;
  device.computeCapabilityMajor = 9;
  buffer.Add(device);
  const unsigned kernels = Number("FAKE_CUPTI_KERNELS", 3);
  for (unsigned i = 0; i < kernels; ++i) {
    const std::uint64_t launch = 995'000 + 10'000ULL * i;
    buffer.Add(Kernel(i));
    buffer.Add(Api(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
                   launch, launch + 4000, 100 + i));
    buffer.Add(Api(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, launch + 500,
                   launch + 3500, 100 + i));
  }
  AddOthers(&buffer, 1'000'000 + 10'000ULL * kernels);
  g_complete(nullptr, 0, buffer.data, buffer.size, buffer.used);
}

std::size_t SizeOf(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return sizeof(CUpti_ActivityMemory4);
    case CUPTI_ACTIVITY_KIND_JIT:
      return sizeof(CUpti_ActivityJit2);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return sizeof(CUpti_ActivityGraphTrace2);
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return sizeof(CUpti_ActivityDevice5);
    default:
      return sizeof(CUpti_ActivityAPI);
  }
}

}  // namespace

extern "C" {

CUptiResult cuptiGetVersion(std::uint32_t* version) {
  *version = Number("FAKE_CUPTI_VERSION", CUPTI_API_VERSION);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  g_request = request;
  g_complete = complete;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  // As the real one does at the first CUDA call.
  Buffer first;
  std::size_t most = 0;
  g_request(&first.data, &first.size, &most);
  g_complete(nullptr, 0, first.data, first.size, 0);
  return Number("FAKE_CUPTI_REFUSE", 0) == static_cast<unsigned>(kind) ? CUPTI_ERROR_INVALID_KIND
                                                                       : CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(std::uint32_t flag) {
  if (!g_delivered.exchange(true)) {
    Deliver();
  }
  if ((flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0) {
    Buffer buffer;
    std::size_t most = 0;
    g_request(&buffer.data, &buffer.size, &most);
    CUpti_ActivityKernel10 unfinished = Kernel(0);
    unfinished.end = 0;
    buffer.Add(unfinished);
    g_complete(nullptr, 0, buffer.data, buffer.size, buffer.used);
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid,
                                       CUpti_Activity** record) {
  std::size_t offset = 0;
  if (*record != nullptr) {
    offset = static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(*record) - buffer) +
             SizeOf((*record)->kind);
  }
  if (offset >= valid) {
    return CUPTI_ERROR_MAX_LIMIT_REACHED;
  }
  *record = reinterpret_cast<CUpti_Activity*>(buffer + offset);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  *dropped = Number("FAKE_CUPTI_DROPPED", 0);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, std::uint32_t, const char** name) {
  *name = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? "cudaLaunchKernel_v7000" : "cuLaunchKernel";
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  *text = "CUPTI_ERROR_OF_THE_FAKE";
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void*) {
  *subscriber = nullptr;
  g_callback = callback;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(std::uint32_t enable, CUpti_SubscriberHandle,
                                CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  g_wants_stop = g_wants_stop || (enable != 0 && domain == CUPTI_CB_DOMAIN_DRIVER_API &&
                                  id == CUPTI_DRIVER_TRACE_CBID_cuProfilerStop);
  return CUPTI_SUCCESS;
}

/// What a program's cudaProfilerStop leads to.
void fake_profiler_stop() {
  if (!g_wants_stop) {
    return;
  }
  CUpti_CallbackData data;
  std::memset(&data, 0, sizeof data);
  for (const CUpti_ApiCallbackSite site : {CUPTI_API_ENTER, CUPTI_API_EXIT}) {
    data.callbackSite = site;
    g_callback(nullptr, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuProfilerStop, &data);
  }
}
}
