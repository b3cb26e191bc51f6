// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/seed_writer.h"

#include <fmt/format.h>

namespace kernelpro::agents {

std::size_t SeedWriter::Attempts() const {
  return setting_.options.seed_temperatures.size() * setting_.options.seed_rounds;
}

double SeedWriter::Temperature(const ProposalRequest& request) const {
  const auto& all = setting_.options.seed_temperatures;
  return all[request.tried.size() % all.size()];
}

bool SeedWriter::WantsOne(const ProposalRequest& request) const {
  return request.path.size() == 1 && request.tried.size() < Attempts();
}

std::string SeedWriter::Action(const ProposalRequest& request) const {
  const std::size_t number = request.tried.size() + 1;
  return setting_.options.temperatures
             ? fmt::format("seed_{}(temperature={})", number, Temperature(request))
             : fmt::format("seed_{}", number);
}

Result<Attempt<WrittenKernel>> SeedWriter::Write(const Turn& turn) const {
  // The number keeps two attempts at one temperature two different questions.
  const PromptValues values = {{"attempt", std::to_string(turn.request.tried.size() + 1)},
                               {"attempts", std::to_string(Attempts())}};
  return WriteKernel(setting_, turn,
                     MakeRequest(setting_, turn, "seed", setting_.prompts.Render("seed.md", values),
                                 Temperature(turn.request)));
}

}  // namespace kernelpro::agents
