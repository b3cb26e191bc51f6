// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace kernelpro::fake {

/// Ends the program when a test hangs: a thread that waits forever cannot be ended otherwise.
class Watchdog {
 public:
  explicit Watchdog(std::chrono::seconds limit)
      : thread_([this, limit](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          if (!ended_.wait_for(lock, stop, limit, [&stop] { return stop.stop_requested(); })) {
            std::fputs("a question hangs: the watchdog ends the test\n", stderr);
            std::abort();
          }
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;
};

}  // namespace kernelpro::fake
