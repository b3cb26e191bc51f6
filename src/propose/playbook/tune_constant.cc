// SPDX-License-Identifier: Apache-2.0
//
// constexpr int kThreads = 256;      ->   constexpr int kThreads = 512;
// #define TILE 16                    ->   #define TILE 32
// dim3 block(kX, kY) with 32, 8      ->   64, 4 (both constants at once)
//
// Only constants that shape a launch, a shared array or a loop of a kernel, and only powers of two:
// those are the ones that kernels are written to allow.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <map>
#include <string>
#include <utility>

#include "propose/playbook/analysis.h"
#include "propose/playbook/edits.h"
#include "propose/playbook/rewrite.h"

namespace kernelpro::playbook {
namespace {

struct Tunable {
  std::string name;
  long long value = 0;
  std::uint32_t begin = 0;  ///< of the number in the text
  std::uint32_t end = 0;
};

bool IsWarpSize(std::string_view name, long long value) {
  std::string lower;
  for (const char c : name) {
    lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return value == 32 &&
         (lower.find("warp") != std::string::npos || lower.find("lane") != std::string::npos);
}

bool Tunes(std::string_view name, long long value) {
  return value >= 2 && value <= 1 << 20 && std::has_single_bit(static_cast<unsigned>(value)) &&
         !IsWarpSize(name, value);
}

/// The name occurs where it shapes something: in a launch, a shared array, a loop's head.
bool Shapes(const SourceModel& model, std::string_view name) {
  const auto within = [&](const Node& node) {
    for (std::size_t i = model.TokenAt(node.begin);
         i < model.tokens().size() && model.tokens()[i].end <= node.end; ++i) {
      if (model.Text(model.tokens()[i]) == name) {
        return true;
      }
    }
    return false;
  };
  bool shapes = false;
  Walk(model.root(), [&](const Node& n) {
    if (n.Is(NodeKind::kLaunch)) {
      shapes |= within(n.child(0)) || within(n.child(1));
    } else if (n.Is(NodeKind::kVariable)) {
      shapes |= (n.is_shared || n.type.find("dim3") != std::string::npos ||
                 n.type.find('[') != std::string::npos || n.is_const) &&
                n.name != name && within(n);
    } else if (n.Is(NodeKind::kFor)) {
      shapes |= within(n.child(0)) || within(n.child(1)) || within(n.child(2));
    }
    return true;
  });
  return shapes;
}

std::vector<Tunable> FindTunables(const SourceModel& model) {
  std::vector<Tunable> tunables;
  for (const Node* variable : FindAll(model.root(), NodeKind::kVariable)) {
    const Node* value = Initializer(*variable);
    if (!variable->is_const || value == nullptr || !value->Is(NodeKind::kInteger) ||
        value->in_macro) {
      continue;
    }
    const auto number = ConstantValue(*value, model);
    if (number && Tunes(variable->name, *number) && Shapes(model, variable->name)) {
      tunables.push_back({variable->name, *number, value->begin, value->end});
    }
  }
  const std::vector<Token>& tokens = model.tokens();
  for (std::size_t i = 0; i + 3 < tokens.size(); ++i) {
    const bool define = model.Text(tokens[i]) == "#" && model.Text(tokens[i + 1]) == "define" &&
                        tokens[i + 3].kind == Token::Kind::kLiteral &&
                        tokens[i + 3].line == tokens[i].line &&
                        (i + 4 == tokens.size() || tokens[i + 4].line != tokens[i].line);
    if (!define) {
      continue;
    }
    const std::string name(model.Text(tokens[i + 2]));
    const std::string digits(model.Text(tokens[i + 3]));
    const bool plain = std::ranges::all_of(
        digits, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
    const long long value = plain && digits.size() < 8 ? std::stoll(digits) : 0;
    if (Tunes(name, value) && Shapes(model, name)) {
      tunables.push_back({name, value, tokens[i + 3].begin, tokens[i + 3].end});
    }
  }
  return tunables;
}

/// Number literals in dim3 block(16, 16), when the grid is computed from block.x and block.y and
/// nothing in the kernel is sized by hand.
std::vector<Tunable> FindBlockLiterals(const SourceModel& model) {
  std::vector<Tunable> tunables;
  for (const Node* launch : model.launches()) {
    const Node& block = launch->child(1);
    const std::vector<const Node*> parts = LaunchComponents(*launch, 1);
    const bool named = block.Is(NodeKind::kReference) && parts.size() == 2;
    if (!named) {
      continue;
    }
    bool by_hand = false;
    for (const Node* part : LaunchComponents(*launch, 0)) {
      Walk(*part, [&](const Node& n) {
        by_hand |= n.Is(NodeKind::kInteger) && model.Text(n) != "1";
        return true;
      });
    }
    for (const Node* kernel : model.kernels()) {
      Walk(*kernel, [&](const Node& n) {
        by_hand |= n.Is(NodeKind::kVariable) && n.is_shared;
        return true;
      });
    }
    for (std::size_t i = 0; i < parts.size() && !by_hand; ++i) {
      const auto value = ConstantValue(*parts[i], model);
      if (parts[i]->Is(NodeKind::kInteger) && !parts[i]->in_macro && value && *value >= 2) {
        tunables.push_back({fmt::format("{}.{}", block.name, i == 0 ? "x" : "y"), *value,
                            parts[i]->begin, parts[i]->end});
      }
    }
  }
  return tunables;
}

class TuneConstant final : public Rewrite {
 public:
  [[nodiscard]] std::string_view id() const override { return "tune_constant"; }

  [[nodiscard]] std::vector<std::string_view> answers() const override {
    return {"par.block_size", "par.small_grid", "par.tail",     "par.cta_rate", "occ.shape",
            "occ.registers",  "occ.smem",       "occ.achieved", "mem.inflight"};
  }

  void Apply(const SourceModel& model, const ProposalRequest& request,
             Outcome& outcome) const override {
    std::vector<Tunable> tunables = FindTunables(model);
    std::ranges::move(FindBlockLiterals(model), std::back_inserter(tunables));
    if (tunables.empty()) {
      outcome.Decline("tune_constant",
                      "no named power-of-two constant shapes a launch, a shared array or a loop");
      return;
    }
    for (const Tunable& tunable : tunables) {
      One(model, request, tunable, tunable.value * 2, outcome);
      if (tunable.value >= 4) {
        One(model, request, tunable, tunable.value / 2, outcome);
      }
    }
    for (const Node* launch : model.launches()) {
      Pair(model, request, *launch, tunables, outcome);
    }
  }

 private:
  void One(const SourceModel& model, const ProposalRequest& request, const Tunable& tunable,
           long long value, Outcome& outcome) const {
    Edits edits;
    edits.Replace(tunable.begin, tunable.end, std::to_string(value));
    outcome.proposals.push_back(
        Propose(request, "", fmt::format("tune_constant({}={})", tunable.name, value),
                edits.Apply(model.text()),
                fmt::format("{} is {} instead of {}, which changes how the work is cut into blocks",
                            tunable.name, value, tunable.value),
                0.15));
  }

  /// Two constants that are the x and y of one block: one doubled, the other halved.
  void Pair(const SourceModel& model, const ProposalRequest& request, const Node& launch,
            const std::vector<Tunable>& tunables, Outcome& outcome) const {
    const std::vector<const Node*> parts = LaunchComponents(launch, 1);
    if (parts.size() < 2) {
      return;
    }
    const auto find = [&](std::size_t i) -> const Tunable* {
      for (const Tunable& tunable : tunables) {
        const bool literal = tunable.begin == parts[i]->begin;
        if (literal || model.Text(*parts[i]) == tunable.name) {
          return &tunable;
        }
      }
      return nullptr;
    };
    const Tunable* x = find(0);
    const Tunable* y = find(1);
    if (x == nullptr || y == nullptr || x == y) {
      return;
    }
    for (const bool wider : {true, false}) {
      const long long new_x = wider ? x->value * 2 : x->value / 2;
      const long long new_y = wider ? y->value / 2 : y->value * 2;
      if (new_x < 1 || new_y < 1) {
        continue;
      }
      Edits edits;
      edits.Replace(x->begin, x->end, std::to_string(new_x));
      edits.Replace(y->begin, y->end, std::to_string(new_y));
      outcome.proposals.push_back(Propose(
          request, "", fmt::format("tune_constant({}={},{}={})", x->name, new_x, y->name, new_y),
          edits.Apply(model.text()),
          fmt::format("the block is {} x {} instead of {} x {}, with the same number of threads",
                      new_x, new_y, x->value, y->value),
          0.2));
    }
  }
};

}  // namespace

std::unique_ptr<Rewrite> MakeTuneConstant() {
  return std::make_unique<TuneConstant>();
}

}  // namespace kernelpro::playbook
