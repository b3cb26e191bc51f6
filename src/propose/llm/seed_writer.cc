// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/seed_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace kernelpro::agents {
namespace {

constexpr std::string_view kAction = "seed_";

/// 3 of "seed_3(temperature=0.6)"; 0 when it is something else.
std::size_t NumberIn(std::string_view action) {
  long long number = 0;
  const bool is_seed =
      action.starts_with(kAction) &&
      ParseInteger(action.substr(kAction.size(), action.find('(') - kAction.size()), &number);
  return is_seed && number > 0 ? static_cast<std::size_t>(number) : 0;
}

}  // namespace

std::size_t SeedWriter::Attempts() const {
  return setting_.options.seed_temperatures.size() * setting_.options.seed_rounds;
}

// An attempt that came to nothing counts too: at its temperature a model may never do better, and
// the same question again and again would use up the search's patience.
std::size_t SeedWriter::Made(const ProposalRequest& request) {
  std::size_t made = request.tried.size();
  for (const NodeBrief& child : request.tried) {
    made = std::max(made, NumberIn(child.action));
  }
  for (const Declined& declined : request.declined) {
    made = std::max(made, NumberIn(declined.action));
  }
  return made;
}

double SeedWriter::Temperature(const ProposalRequest& request) const {
  const auto& all = setting_.options.seed_temperatures;
  return all[Made(request) % all.size()];
}

bool SeedWriter::WantsOne(const ProposalRequest& request) const {
  return request.path.size() == 1 && Made(request) < Attempts();
}

std::string SeedWriter::Action(const ProposalRequest& request) const {
  const std::size_t number = Made(request) + 1;
  return setting_.options.temperatures
             ? fmt::format("{}{}(temperature={})", kAction, number, Temperature(request))
             : fmt::format("{}{}", kAction, number);
}

Result<Attempt<WrittenKernel>> SeedWriter::Write(const Turn& turn) const {
  // The number keeps two attempts at one temperature two different questions.
  const PromptValues values = {{"attempt", std::to_string(Made(turn.request) + 1)},
                               {"attempts", std::to_string(Attempts())}};
  return WriteKernel(setting_, turn,
                     MakeRequest(setting_, turn, "seed", setting_.prompts.Render("seed.md", values),
                                 Temperature(turn.request)));
}

}  // namespace kernelpro::agents
