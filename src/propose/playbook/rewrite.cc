// SPDX-License-Identifier: Apache-2.0
#include "propose/playbook/rewrite.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpro::playbook {
namespace {

/// The name without namespaces, template arguments and parameters.
std::string_view PlainName(std::string_view name) {
  name = name.substr(0, name.find_first_of("<("));
  const std::size_t colon = name.rfind(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

const Finding* AnsweredFinding(const Diagnosis& diagnosis,
                               const std::vector<std::string_view>& answers,
                               std::string_view kernel) {
  for (const Finding& finding : diagnosis.findings) {  // ranked: the first is the worst
    const bool wanted = std::ranges::find(answers, finding.id) != answers.end();
    const bool here =
        kernel.empty() || finding.kernel.empty() || PlainName(finding.kernel) == kernel;
    if (wanted && here) {
      return &finding;
    }
  }
  return nullptr;
}

}  // namespace

Proposal Rewrite::Propose(const ProposalRequest& request, std::string_view kernel,
                          std::string action, std::string source, std::string_view change,
                          double unasked) const {
  Proposal proposal;
  proposal.candidate = request.parent;
  proposal.candidate.source = std::move(source);
  proposal.action = std::move(action);
  const Finding* finding = AnsweredFinding(request.diagnosis, answers(), kernel);
  if (finding == nullptr) {
    proposal.prior = unasked;
    proposal.reason = fmt::format("No finding asks for it, a try: {}.", change);
    return proposal;
  }
  const auto rank = finding - request.diagnosis.findings.data();
  const double weight = 0.3 + 0.3 * finding->severity + 0.4 * finding->bound;
  proposal.prior =
      std::clamp(std::max(weight / (1.0 + 0.15 * static_cast<double>(rank)), unasked), 0.0, 1.0);
  proposal.finding = finding->id;
  proposal.reason = fmt::format("{} [{}]{}{}: {}.", finding->title, finding->id,
                                finding->seen.empty() ? "" : ", ", finding->seen, change);
  return proposal;
}

std::string LineList(const std::vector<std::uint32_t>& lines) {
  std::string text = lines.size() == 1 ? "line " : "lines ";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool last = i + 1 == lines.size();
    text += fmt::format("{}{}", i == 0 ? "" : (last ? " and " : ", "), lines[i]);
  }
  return text;
}

std::vector<std::unique_ptr<Rewrite>> AllRewrites() {
  std::vector<std::unique_ptr<Rewrite>> rewrites;
  rewrites.push_back(MakeWarpPerRow());
  rewrites.push_back(MakeTileThroughShared());
  rewrites.push_back(MakeTileMatmul());
  rewrites.push_back(MakeSwapThreadRoles());
  rewrites.push_back(MakeDeferReduction());
  rewrites.push_back(MakeShuffleReduction());
  rewrites.push_back(MakeFloatLiterals());
  rewrites.push_back(MakeVectorAccess());
  rewrites.push_back(MakePadShared());
  rewrites.push_back(MakeGridStride());
  rewrites.push_back(MakeRestrictPointers());
  rewrites.push_back(MakeUnroll());
  rewrites.push_back(MakeFastMath());
  rewrites.push_back(MakeTuneConstant());
  return rewrites;
}

}  // namespace kernelpro::playbook
