// SPDX-License-Identifier: Apache-2.0
// A "CUDA program" for activity_test: loads the injection library as the driver would, then ends
// in the way that its argument names.
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

int main(int argc, char** argv) {
  const std::string_view end = argc > 1 ? argv[1] : "exit";
  if (const char* path = std::getenv("CUDA_INJECTION64_PATH"); path != nullptr && end != "host") {
    void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    auto* const start = library == nullptr
                            ? nullptr
                            : reinterpret_cast<int (*)()>(::dlsym(library, "InitializeInjection"));
    if (start == nullptr || start() != 1) {
      std::puts("no injection");
      return 9;
    }
  }
  if (end == "fork") {  // a child that ends with the parent's exit handlers
    const pid_t child = ::fork();
    if (child == 0) {
      std::exit(0);
    }
    ::waitpid(child, nullptr, 0);
  } else if (end == "daemon") {  // closes every descriptor, and opens files of its own
    for (int fd = 3; fd < 64; ++fd) {
      ::close(fd);
    }
    if (std::FILE* const own = std::tmpfile(); own != nullptr) {
      ::usleep(500'000);
      std::fseek(own, 0, SEEK_END);
      std::printf("size of its own file: %ld\n", std::ftell(own));
    }
  } else if (end == "again") {  // a traced program that starts another
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/proc/self/exe", argv[0], "exit", nullptr);
      ::_exit(8);
    }
    ::waitpid(child, nullptr, 0);
  } else if (end == "profiler") {  // cudaProfilerStop, and gone
    void* const cupti = ::dlopen(std::getenv("KERNELPRO_CUPTI"), RTLD_NOW | RTLD_NOLOAD);
    auto* const stop = cupti == nullptr
                           ? nullptr
                           : reinterpret_cast<void (*)()>(::dlsym(cupti, "fake_profiler_stop"));
    if (stop != nullptr) {
      stop();
    }
    ::_exit(stop == nullptr ? 7 : 0);
  } else if (end == "_exit" || end == "kill") {
    ::usleep(700'000);  // the library writes every 0.2 s
    if (end == "kill") {
      ::kill(::getpid(), SIGKILL);
    }
    ::_exit(0);
  } else if (end == "hang") {
    ::sleep(600);
  }
  return end == "fail" ? 3 : 0;
}
