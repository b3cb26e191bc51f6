// SPDX-License-Identifier: Apache-2.0
#include "propose/playbook/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "propose/playbook/analysis.h"
#include "propose/playbook/edits.h"

namespace kernelpro::playbook {
namespace {

// Of every GPU since compute capability 2.0; more shared memory has to be asked for at run time.
constexpr long long kMaxThreads = 1024;
constexpr long long kWarp = 32;
constexpr long long kMaxStaticShared = 48LL * 1024;

bool IsFileConstant(const Node& variable) {
  return variable.is_const && EnclosingFunction(variable) == nullptr;
}

bool IsUsed(const SourceModel& model, std::string_view name) {
  return std::ranges::count_if(model.tokens(), [&](const Token& token) {
           return token.kind == Token::Kind::kIdentifier && model.Text(token) == name;
         }) > 1;
}

}  // namespace

std::string WithoutUnusedConstants(const SourceModel& before, const SourceModel& after) {
  Edits edits;
  const std::string& text = after.text();
  for (const Node* variable : FindAll(after.root(), NodeKind::kVariable)) {
    if (!IsFileConstant(*variable) || IsUsed(after, variable->name) ||
        !IsUsed(before, variable->name)) {
      continue;
    }
    // Only when the declaration has its line to itself.
    const std::size_t line_start = text.rfind('\n', variable->begin) + 1;
    const std::uint32_t end = after.StatementEnd(*variable);
    const std::size_t line_end = text.find('\n', end);
    const bool alone =
        line_end != std::string::npos && text[end - 1] == ';' &&
        text.find_first_not_of(" \t", line_start) == variable->begin &&
        text.substr(end, line_end - end).find_first_not_of(" \t\r") == std::string::npos;
    if (alone) {
      edits.Replace(static_cast<std::uint32_t>(line_start),
                    static_cast<std::uint32_t>(line_end + 1), "");
    }
  }
  std::string result = edits.Apply(text);
  // Where such lines stood between blank ones, one blank line is enough.
  const bool had_gaps = text.find("\n\n\n") != std::string::npos;
  for (std::size_t gap = result.find("\n\n\n"); !had_gaps && gap != std::string::npos;
       gap = result.find("\n\n\n", gap)) {
    result.erase(gap, 1);
  }
  return result;
}

std::string ExceededLimit(const SourceModel& model) {
  for (const Node* launch : model.launches()) {
    const auto block = BlockShape(*launch, model);
    const long long threads = block ? (*block)[0] * (*block)[1] * (*block)[2] : kWarp;
    if (threads > kMaxThreads || threads < kWarp) {
      return fmt::format("a block of {} would have {} threads; {} to {} make sense", launch->name,
                         threads, kWarp, kMaxThreads);
    }
  }
  for (const Node* kernel : model.kernels()) {
    long long bytes = 0;
    for (const Node* variable : FindAll(*kernel, NodeKind::kVariable)) {
      bytes += variable->is_shared ? variable->bytes : 0;
    }
    if (bytes > kMaxStaticShared) {
      return fmt::format("{} would need {} bytes of static shared memory; {} are allowed",
                         kernel->name, bytes, kMaxStaticShared);
    }
  }
  return {};
}

}  // namespace kernelpro::playbook
