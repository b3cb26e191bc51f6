// SPDX-License-Identifier: Apache-2.0
#include "task/task_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "task/expression.h"

namespace kernelpro {
namespace {

constexpr std::size_t kMaxName = 64;

constexpr std::string_view kKeywords[] = {"alignas",       "alignof",     "and",
                                          "and_eq",        "asm",         "auto",
                                          "bitand",        "bitor",       "bool",
                                          "break",         "case",        "catch",
                                          "char",          "char8_t",     "char16_t",
                                          "char32_t",      "class",       "compl",
                                          "concept",       "const",       "consteval",
                                          "constexpr",     "constinit",   "const_cast",
                                          "continue",      "co_await",    "co_return",
                                          "co_yield",      "decltype",    "default",
                                          "delete",        "do",          "double",
                                          "dynamic_cast",  "else",        "enum",
                                          "explicit",      "export",      "extern",
                                          "false",         "float",       "for",
                                          "friend",        "goto",        "if",
                                          "inline",        "int",         "long",
                                          "mutable",       "namespace",   "new",
                                          "noexcept",      "not",         "not_eq",
                                          "nullptr",       "operator",    "or",
                                          "or_eq",         "private",     "protected",
                                          "public",        "register",    "reinterpret_cast",
                                          "requires",      "return",      "short",
                                          "signed",        "sizeof",      "static",
                                          "static_assert", "static_cast", "struct",
                                          "switch",        "template",    "this",
                                          "thread_local",  "throw",       "true",
                                          "try",           "typedef",     "typeid",
                                          "typename",      "union",       "unsigned",
                                          "using",         "virtual",     "void",
                                          "volatile",      "wchar_t",     "while",
                                          "xor",           "xor_eq",      "restrict",
                                          "import",        "module",      "final",
                                          "override"};

/// Types of the generated headers, functions of expressions, and common macros.
constexpr std::string_view kTaken[] = {
    "int64_t",  "int32_t",       "int8_t",       "uint32_t", "uint8_t", "cudaError_t",
    "TaskArgs", "ReferenceArgs", "cudaStream_t", "min",      "max",     "ceil_div",
    "NULL",     "EOF",           "NAN",          "INFINITY", "errno",   "assert",
    "stdin",    "stdout",        "stderr",       "linux",    "unix",    "M_PI"};

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// The same error with the line of the file in front.
Error Located(const TomlSource& source, std::uint32_t line, const Error& error,
              const Workload& workload) {
  return source.At(
      error.code == ErrorCode::kParse ? ErrorCode::kParse : ErrorCode::kInvalidArgument, line,
      error.message, fmt::format("under workload \"{}\"", workload.name));
}

Status CheckWorkload(const Task& task, const Workload& workload, const TaskLines& lines,
                     const TomlSource& source) {
  for (std::size_t i = 0; i < task.tensors.size(); ++i) {
    if (const auto count = ElementCount(task.tensors[i], workload.axes); !count) {
      return Located(source, lines.tensors[i], count.error(), workload);
    }
  }
  if (const auto flops = FlopCount(task, workload.axes); !flops) {
    return Located(source, lines.flops, flops.error(), workload);
  }
  if (const auto bytes = CompulsoryBytes(task, workload.axes); !bytes) {
    return Located(source, lines.compulsory_bytes, bytes.error(), workload);
  }
  return Ok();
}

}  // namespace

std::string_view WhyNotAFieldName(std::string_view name) {
  if (name.empty() || name.size() > kMaxName) {
    return "a name has 1 to 64 characters";
  }
  const auto in_name = [](char c) { return IsLetter(c) || IsDigit(c) || c == '_'; };
  if (!IsLetter(name[0]) || !std::ranges::all_of(name, in_name)) {
    return "it becomes a C++ field: letters, digits and _, starting with a letter";
  }
  if (name.find("__") != std::string_view::npos) {
    return "two underscores in a row are reserved in C++";
  }
  if (std::ranges::find(kKeywords, name) != std::end(kKeywords)) {
    return "it is a C++ keyword";
  }
  if (std::ranges::find(kTaken, name) != std::end(kTaken)) {
    return "it is a type, function or macro that the generated headers need";
  }
  return {};
}

std::string_view WhyNotALabel(std::string_view name) {
  const auto in_label = [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '_' || c == '-' || c == '.';
  };
  if (name.empty() || name.size() > kMaxName || !(IsLetter(name[0]) || IsDigit(name[0])) ||
      !std::ranges::all_of(name, in_label)) {
    return "allowed: 1 to 64 letters, digits, \"_\", \"-\", \".\", starting with a letter or digit";
  }
  return {};
}

Status CheckExpression(const std::string& text, const std::vector<std::string>& axes) {
  auto parsed = Expression::Parse(text);
  if (!parsed) {
    return std::move(parsed).error().Wrap(fmt::format("\"{}\"", Printable(text, 100)));
  }
  for (const std::string& used : parsed->axes()) {
    if (std::ranges::find(axes, used) == axes.end()) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("\"{}\" uses \"{}\", which is not an axis", text, used));
    }
  }
  return Ok();
}

Status CheckTask(const Task& task, const TaskLines& lines, const TomlSource& source) {
  const auto is_output = [](const TensorSpec& t) { return t.role == Role::kOutput; };
  if (std::ranges::none_of(task.tensors, is_output)) {
    return source.At(ErrorCode::kInvalidArgument, lines.tensors.empty() ? 1 : lines.tensors[0],
                     "the task has no output tensor", "give one tensor role = \"output\"");
  }
  for (std::size_t i = 0; i < task.workloads.size(); ++i) {
    KP_RETURN_IF_ERROR(CheckWorkload(task, task.workloads[i], lines, source));
  }
  const auto is_timed = [](const Workload& w) { return w.kind == Workload::Kind::kTimed; };
  if (std::ranges::none_of(task.workloads, is_timed)) {
    return source.At(ErrorCode::kInvalidArgument, lines.workloads.empty() ? 1 : lines.workloads[0],
                     "the task has no timed workload", "give one workload kind = \"timed\"");
  }
  return Ok();
}

}  // namespace kernelpro
