// SPDX-License-Identifier: Apache-2.0
//
// (const float* x, float* y)   ->   (const float* __restrict__ x, float* __restrict__ y)
//
// Tells the compiler that a store to y does not change x: loads may be hoisted, kept in registers
// and go through the read-only path.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "propose/playbook/analysis.h"
#include "propose/playbook/edits.h"
#include "propose/playbook/launch_edits.h"
#include "propose/playbook/rewrite.h"

namespace kernelpro::playbook {
namespace {

class RestrictPointers final : public Rewrite {
 public:
  [[nodiscard]] std::string_view id() const override { return "restrict_pointers"; }

  [[nodiscard]] std::vector<std::string_view> answers() const override {
    return {"mem.redundant", "lat.long_scoreboard", "mem.inflight", "lat.ilp"};
  }

  void Apply(const SourceModel& model, const ProposalRequest& request,
             Outcome& outcome) const override {
    for (const Node* kernel : model.kernels()) {
      Kernel(model, request, *kernel, outcome);
    }
  }

 private:
  void Kernel(const SourceModel& model, const ProposalRequest& request, const Node& kernel,
              Outcome& outcome) const {
    std::string action = fmt::format("restrict_pointers({})", kernel.name);
    const auto launches = model.LaunchesOf(kernel);
    if (launches.empty()) {
      outcome.Decline(std::move(action), "its launch is not in this file");
      return;
    }
    for (const Node* launch : launches) {
      const std::string obstacle = Obstacle(model, *launch);
      if (!obstacle.empty()) {
        outcome.Decline(std::move(action), obstacle);
        return;
      }
    }
    Edits edits;
    std::string names;
    for (const Node* parameter : Parameters(kernel)) {
      const std::string_view text = model.Text(*parameter);
      if (!IsPointer(parameter->type) || text.find("restrict") != std::string_view::npos ||
          parameter->name.empty() || text.find('(') != std::string_view::npos) {
        continue;
      }
      edits.Insert(parameter->name_begin, "__restrict__ ");
      names += fmt::format("{}{}", names.empty() ? "" : ", ", parameter->name);
    }
    if (edits.empty()) {
      outcome.Decline(std::move(action), "every pointer parameter is __restrict__ already");
      return;
    }
    outcome.proposals.push_back(
        Propose(request, kernel.name, std::move(action), edits.Apply(model.text()),
                fmt::format("{} of {} promise not to overlap, so that loads can move across stores",
                            names, kernel.name),
                0.25));
  }

  /// Each pointer argument must be another field of TaskArgs: those are separate buffers.
  static std::string Obstacle(const SourceModel& model, const Node& launch) {
    if (PassesPointerTwice(model, launch)) {
      return fmt::format("the launch at line {} passes one buffer twice", launch.line);
    }
    for (std::size_t i = 4; i < launch.children.size(); ++i) {
      const Node& argument = launch.child(i);
      if (!IsPointer(argument.type)) {
        continue;
      }
      const bool field = argument.Is(NodeKind::kMember) && argument.children.size() == 1 &&
                         argument.child(0).type.find("TaskArgs") != std::string::npos;
      if (!field) {
        return fmt::format(
            "`{}` at line {} is not a tensor of TaskArgs; it may overlap another "
            "argument",
            model.Text(argument), argument.line);
      }
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Rewrite> MakeRestrictPointers() {
  return std::make_unique<RestrictPointers>();
}

}  // namespace kernelpro::playbook
