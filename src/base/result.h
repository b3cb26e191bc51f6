// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace kernelpro {

enum class ErrorCode : std::uint8_t {
  kInvalidArgument,
  kNotFound,
  kUnavailable,
  kTimeout,
  kCancelled,
  kIo,
  kParse,
  kToolFailed,
  kBudget,  ///< a cap that the user set on money, tokens or time is reached
  kInternal,
};

/// Why an operation failed, for a person (message) and for the caller's branch (code).
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::source_location where;

  /// Prefixes what the caller was doing: "compile k3.cu: nvcc exited with 1".
  [[nodiscard]] Error Wrap(std::string_view doing) && {
    message = std::string(doing) + ": " + message;
    return std::move(*this);
  }
};

[[nodiscard]] inline Error Fail(ErrorCode code, std::string message,
                                std::source_location where = std::source_location::current()) {
  return Error{code, std::move(message), where};
}

/// Either a T or an Error. Dropping one is a compiler warning (class-level [[nodiscard]]).
template <class T>
class [[nodiscard]] Result {
 public:
  // A value or an error converts by itself, so that `return value;` and `return Fail(...);` work.
  Result(T value)  // NOLINT(google-explicit-constructor)
      : state_(std::in_place_index<0>, std::move(value)) {}

  Result(Error error)  // NOLINT(google-explicit-constructor)
      : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }

  explicit operator bool() const { return ok(); }

  [[nodiscard]] T& value() & { return std::get<0>(state_); }

  [[nodiscard]] const T& value() const& { return std::get<0>(state_); }

  [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }

  [[nodiscard]] const Error& error() const& { return std::get<1>(state_); }

  [[nodiscard]] Error&& error() && { return std::get<1>(std::move(state_)); }

  T& operator*() & { return value(); }

  const T& operator*() const& { return value(); }

  T* operator->() { return &value(); }

  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Error> state_;
};

using Status = Result<std::monostate>;

inline Status Ok() {
  return std::monostate{};
}

}  // namespace kernelpro

// NOLINTBEGIN(bugprone-macro-parentheses): names and declarations cannot be put in parentheses.
#define KP_CONCAT_(a, b) a##b
#define KP_CONCAT(a, b) KP_CONCAT_(a, b)
// __COUNTER__, not __LINE__: a lambda inside the expression may use these macros again.
#define KP_RETURN_IF_ERROR_(tmp, expr) \
  do {                                 \
    if (auto tmp = (expr); !tmp) {     \
      return std::move(tmp).error();   \
    }                                  \
  } while (false)
#define KP_RETURN_IF_ERROR(expr) KP_RETURN_IF_ERROR_(KP_CONCAT(kp_status_, __COUNTER__), expr)
#define KP_ASSIGN_OR_RETURN_(tmp, lhs, expr) \
  auto tmp = (expr);                         \
  if (!tmp) {                                \
    return std::move(tmp).error();           \
  }                                          \
  lhs = std::move(tmp).value()
#define KP_ASSIGN_OR_RETURN(lhs, expr) \
  KP_ASSIGN_OR_RETURN_(KP_CONCAT(kp_result_, __COUNTER__), lhs, expr)
// NOLINTEND(bugprone-macro-parentheses)
