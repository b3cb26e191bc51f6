// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>

namespace kernelpro {

/// Collects the message of a failed KP_CHECK and aborts when destroyed. A failed check is our bug,
/// never the user's input or a candidate's fault: those are a Result and a Verdict.
class CheckFailure {
 public:
  CheckFailure(const char* condition, const char* file, int line);
  [[noreturn]] ~CheckFailure();
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;

  template <class T>
  CheckFailure& operator<<(const T& part) {
    message_ << part;
    return *this;
  }

 private:
  std::ostringstream message_;
};

}  // namespace kernelpro

#define KP_CHECK(condition) \
  while (!(condition))      \
  ::kernelpro::CheckFailure(#condition, __FILE__, __LINE__)
