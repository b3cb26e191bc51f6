// SPDX-License-Identifier: Apache-2.0
// Loaded by the CUDA driver into the traced program when CUDA_INJECTION64_PATH names this library.
#include <cupti.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "cupti_library.h"
#include "log.h"
#include "record.h"

namespace kernelpro::activity {
namespace {

constexpr std::size_t kBufferBytes = 2U << 20U;
constexpr std::uint64_t kDefaultLimit = 1'000'000;
/// A program that calls _exit or is killed loses at most this much of its trace.
constexpr std::chrono::milliseconds kFlushPeriod{200};
constexpr std::chrono::seconds kPatience{2};

/// Lives as long as the process: CUPTI's threads may call back after static destructors ran.
struct Tracer {
  Cupti cupti;
  pid_t pid = 0;  ///< of the process that is traced; a forked child has another and does nothing
  std::mutex log_mutex;
  Log log;
  std::uint64_t incomplete = 0, cupti_dropped = 0;
  bool told_limit = false;

  std::mutex thread_mutex;
  std::condition_variable wake, ended;
  bool stop = false, thread_runs = false;
  /// Until the first record CUDA is still starting, and nobody should disturb it.
  std::atomic<bool> has_records{false};
};

std::atomic<Tracer*> g_tracer{nullptr};

Tracer* Ours() {
  Tracer* const tracer = g_tracer.load();
  return tracer != nullptr && tracer->pid == ::getpid() ? tracer : nullptr;
}

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

void CUPTIAPI BufferRequested(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *max_records = 0;  // as many as fit
  if (Tracer* const tracer = g_tracer.load(); tracer != nullptr) {
    tracer->has_records.store(true);
  }
}

void WriteBuffer(Tracer* tracer, CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                 std::size_t valid) {
  // Before our lock is taken: CUPTI may hold one of its own in another thread's callback.
  std::size_t lost = 0;
  if (tracer->cupti.dropped_records == nullptr ||
      tracer->cupti.dropped_records(context, stream, &lost) != CUPTI_SUCCESS) {
    lost = 0;
  }
  const std::lock_guard lock(tracer->log_mutex);
  tracer->cupti_dropped += lost;
  CUpti_Activity* record = nullptr;
  while (tracer->cupti.next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (!WriteRecord(*record, tracer->cupti, &tracer->log)) {
      ++tracer->incomplete;
    }
  }
  if (tracer->log.dropped() > 0 && !std::exchange(tracer->told_limit, true)) {
    tracer->log.Meta(std::move(Line("limit").Number("records", tracer->log.records())));
  }
  tracer->log.Write();
}

void CUPTIAPI BufferCompleted(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                              std::size_t /*size*/, std::size_t valid) {
  try {
    if (Tracer* const tracer = Ours(); tracer != nullptr && buffer != nullptr && valid > 0) {
      WriteBuffer(tracer, context, stream, buffer, valid);
    }
  } catch (...) {  // out of memory: the traced program must not notice
  }
  std::free(buffer);
}

/// cudaProfilerStop and cudaDeviceReset: what was traced until now is delivered first.
void CUPTIAPI OnCall(void* /*user*/, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                     const void* data) {
  const Tracer* const tracer = Ours();
  const auto* const call = static_cast<const CUpti_CallbackData*>(data);
  if (tracer == nullptr || call == nullptr) {
    return;
  }
  const bool stop =
      domain == CUPTI_CB_DOMAIN_DRIVER_API && id == CUPTI_DRIVER_TRACE_CBID_cuProfilerStop;
  const auto site = stop ? CUPTI_API_EXIT : CUPTI_API_ENTER;
  if (call->callbackSite == site) {
    (void)tracer->cupti.flush_all(0);
  }
}

void FlushNowAndThen(Tracer* tracer) {
  std::unique_lock lock(tracer->thread_mutex);
  while (!tracer->wake.wait_for(lock, kFlushPeriod, [&] { return tracer->stop; })) {
    if (!tracer->has_records.load()) {
      continue;
    }
    lock.unlock();
    (void)tracer->cupti.flush_all(0);
    lock.lock();
  }
  tracer->thread_runs = false;
  tracer->ended.notify_all();
}

void StartThread(Tracer* tracer) {
  // The program's signals are for the program's threads.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    tracer->thread_runs = true;
    std::thread(FlushNowAndThen, tracer).detach();
  } catch (...) {  // no thread to be had: flushed at exit only
    tracer->thread_runs = false;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void AtExit() {
  try {
    Tracer* const tracer = Ours();
    if (tracer == nullptr) {
      return;
    }
    {
      std::unique_lock lock(tracer->thread_mutex);
      tracer->stop = true;
      tracer->wake.notify_all();
      tracer->ended.wait_for(lock, kPatience, [&] { return !tracer->thread_runs; });
    }
    (void)tracer->cupti.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    const std::lock_guard lock(tracer->log_mutex);
    tracer->log.Meta(std::move(Line("end")
                                   .Number("records", tracer->log.records())
                                   .Number("dropped", tracer->log.dropped())
                                   .Number("cupti_dropped", tracer->cupti_dropped)
                                   .Number("incomplete", tracer->incomplete)));
    tracer->log.Write();
  } catch (...) {
  }
}

/// The kinds that CUPTI refuses, with why; `required`: the one without which there is no trace.
std::string Enable(const Cupti& cupti, std::string* required) {
  struct Kind {
    CUpti_ActivityKind kind;
    const char* name;
    bool needed;
  };

  constexpr Kind kKinds[] = {{CUPTI_ACTIVITY_KIND_DEVICE, "DEVICE", false},
                             {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "CONCURRENT_KERNEL", true},
                             {CUPTI_ACTIVITY_KIND_MEMCPY, "MEMCPY", false},
                             {CUPTI_ACTIVITY_KIND_MEMSET, "MEMSET", false},
                             {CUPTI_ACTIVITY_KIND_RUNTIME, "RUNTIME", false},
                             {CUPTI_ACTIVITY_KIND_DRIVER, "DRIVER", false},
                             {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, "SYNCHRONIZATION", false},
                             {CUPTI_ACTIVITY_KIND_OVERHEAD, "OVERHEAD", false},
                             {CUPTI_ACTIVITY_KIND_MEMORY2, "MEMORY2", false},
                             {CUPTI_ACTIVITY_KIND_JIT, "JIT", false},
                             {CUPTI_ACTIVITY_KIND_GRAPH_TRACE, "GRAPH_TRACE", false}};
  const bool whole_graphs = Environment("KERNELPRO_ACTIVITY_GRAPHS") == "whole";
  std::string refused;
  for (const Kind& kind : kKinds) {
    // With whole graphs CUPTI no longer reports the kernels in them.
    if (kind.kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE && !whole_graphs) {
      continue;
    }
    if (const CUptiResult result = cupti.enable(kind.kind); result != CUPTI_SUCCESS) {
      const std::string what = std::string(kind.name) + ": " + cupti.Describe(result);
      refused += (refused.empty() ? "" : "; ") + what;
      if (kind.needed) {
        *required = what;
      }
    }
  }
  return refused;
}

/// What went wrong; empty when the program is traced.
std::string Start(const Cupti& cupti, std::string* refused) {
  if (const CUptiResult result = cupti.register_callbacks(BufferRequested, BufferCompleted);
      result != CUPTI_SUCCESS) {
    return "CUPTI takes no buffers: " + cupti.Describe(result);
  }
  std::string required;
  *refused = Enable(cupti, &required);
  if (!required.empty()) {
    return "CUPTI does not trace kernels (" + required +
           "): another profiler is attached, or the driver does not fit this CUPTI";
  }
  CUpti_SubscriberHandle subscriber = nullptr;
  if (cupti.subscribe != nullptr && cupti.enable_callback != nullptr &&
      cupti.subscribe(&subscriber, OnCall, nullptr) == CUPTI_SUCCESS) {
    (void)cupti.enable_callback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                                CUPTI_DRIVER_TRACE_CBID_cuProfilerStop);
    (void)cupti.enable_callback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                                CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020);
  }
  return "";
}

std::uint64_t Limit() {
  const std::string text = Environment("KERNELPRO_ACTIVITY_LIMIT");
  char* end = nullptr;
  const unsigned long long limit = std::strtoull(text.c_str(), &end, 10);
  return text.empty() || *end != '\0' ? kDefaultLimit : limit;
}

void Tell(Tracer* tracer, Line line) {
  const std::lock_guard lock(tracer->log_mutex);
  tracer->log.Meta(std::move(line));
  tracer->log.Write();
}

void Initialize() {
  const std::string path = Environment("KERNELPRO_ACTIVITY_FILE");
  if (path.empty() || g_tracer.load() != nullptr) {
    return;
  }
  auto* const tracer = new Tracer;  // NOLINT(cppcoreguidelines-owning-memory): see Tracer
  tracer->pid = ::getpid();
  if (!tracer->log.Open(path, Limit())) {
    return;  // nobody to tell it to; the reader finds no file
  }
  Line header("kernelpro_activity");
  header.Number("version", 1).Number("pid", static_cast<std::uint64_t>(tracer->pid));
  if (const std::string why = OpenCupti(&tracer->cupti); !why.empty()) {
    Tell(tracer, std::move(header.Text("error", why)));
    return;
  }
  Tell(
      tracer,
      std::move(header.Number("cupti", tracer->cupti.version).Text("library", tracer->cupti.path)));
  g_tracer.store(tracer);
  std::string refused;
  // Without our lock: CUPTI may wait for its own thread, which may be delivering a buffer.
  if (const std::string why = Start(tracer->cupti, &refused); !why.empty()) {
    Tell(tracer, std::move(Line("error").Text("message", why)));
    return;
  }
  if (!refused.empty()) {
    Tell(tracer, std::move(Line("refused").Text("message", refused)));
  }
  (void)std::atexit(AtExit);
  StartThread(tracer);
}

}  // namespace
}  // namespace kernelpro::activity

/// The driver's entry point; 1 always: a program must run the same when it cannot be traced.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  try {
    kernelpro::activity::Initialize();
  } catch (...) {
  }
  return 1;
}
