// SPDX-License-Identifier: Apache-2.0
#include "runner/threads.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstring>
#include <new>

namespace kernelpro::runner {
namespace {

using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

std::atomic<std::uint32_t> running{0};

struct Start {
  void* (*routine)(void*);
  void* argument;
};

/// Also counts down when the thread is cancelled or leaves by pthread_exit.
struct Count {
  ~Count() { running.fetch_sub(1); }
};

void* Run(void* argument) {
  const Count count;
  const Start start = *static_cast<Start*>(argument);
  delete static_cast<Start*>(argument);
  return start.routine(start.argument);
}

bool IsOfNvidia(const void* address) {
  Dl_info info{};
  return ::dladdr(address, &info) != 0 && info.dli_fname != nullptr &&
         (std::strstr(info.dli_fname, "/libcuda") != nullptr ||
          std::strstr(info.dli_fname, "/libnvidia") != nullptr);
}

}  // namespace

std::uint32_t CandidateThreads() {
  return running.load();
}

}  // namespace kernelpro::runner

/// Every library that is loaded later finds this one first.
extern "C" __attribute__((visibility("default"))) int pthread_create(
    pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
    void* argument) noexcept {
  using namespace kernelpro::runner;  // NOLINT(google-build-using-namespace): one function
  static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (IsOfNvidia(__builtin_return_address(0))) {
    return create(thread, attributes, routine, argument);
  }
  auto* const start = new (std::nothrow) Start{routine, argument};
  if (start == nullptr) {
    return 11;  // EAGAIN
  }
  running.fetch_add(1);
  const int error = create(thread, attributes, Run, start);
  if (error != 0) {
    running.fetch_sub(1);
    delete start;
  }
  return error;
}
