// SPDX-License-Identifier: Apache-2.0
//
// for (int c = lane; c < cols; c += 32)        if (cols % 4 == 0 && both rows are 16-byte aligned)
// {
//   y[row * cols + c] = f(x[row * cols + c]);    for (int c = 4 * lane; c < cols; c += 4 * 32) {
//                                          ->      x_vector[0..3] = one 128-bit load
//                                                  four times: y_vector[j] = f(x_vector[j]);
//                                                  one 128-bit store
//                                                }
//                                              } else { the loop as it was }
//
// Only for loops whose iterations may run in any order, shared out among threads, over elements of
// four bytes that lie side by side.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "propose/playbook/edits.h"
#include "propose/playbook/launch_edits.h"
#include "propose/playbook/loop_effects.h"
#include "propose/playbook/rewrite.h"

namespace kernelpro::playbook {
namespace {

/// Accesses of one loop to the same elements.
struct Group {
  const Node* base = nullptr;
  Polynomial index;
  std::vector<const Node*> nodes;
  bool read = false;
  bool written = false;
  std::string type;    ///< float
  std::string vector;  ///< float4
  std::string name;
  std::string element;  ///< text of the subscript, loop-local names followed
};

std::string VectorOf(std::string_view type) {
  if (type == "float" || type == "int") {
    return std::string(type) + "4";
  }
  return type == "unsigned int" ? "uint4" : "";
}

class LoopVectorizer {
 public:
  LoopVectorizer(const SourceModel& model, const Node& kernel, const CountedLoop& loop)
      : model_(model), kernel_(kernel), loop_(loop), effects_(EffectsOf(loop, model)) {}

  bool Check() {
    const std::string place = fmt::format("the loop at line {}", loop_.loop->line);
    if (!effects_.obstacle.empty()) {
      return Fails(effects_.obstacle);
    }
    if (loop_.step == nullptr || !IndexOf(*loop_.start, model_).Mentions("threadIdx.x")) {
      return Fails(place + " is not shared out among threads");
    }
    if (!CoversEveryElement()) {
      return Fails(place + " does not provably visit every element from zero once, one per thread");
    }
    for (const Access& access : effects_.accesses) {
      if (!Add(access)) {
        return false;
      }
    }
    if (groups_.empty()) {
      return Fails(place + " has no access to neighbouring four-byte elements of a tensor");
    }
    return CheckStores();
  }

  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }

  void Emit(Edits& edits) {
    const Node& loop = *loop_.loop;
    const std::string indent = model_.IndentOf(loop.begin);
    const std::string original(
        std::string_view(model_.text()).substr(loop.begin, model_.StatementEnd(loop) - loop.begin));
    edits.Replace(
        loop.begin, model_.StatementEnd(loop),
        fmt::format("if ({}) {{\n{}{}}} else {{\n{}  {}\n{}}}", Condition(indent),
                    VectorLoop(indent + "  "), indent, indent, Indented(original, "  "), indent));
  }

 private:
  bool Fails(std::string why) {
    obstacle_ = std::move(why);
    return false;
  }

  /// start runs over 0 .. step - 1 when the threads of a warp, block or grid are taken together:
  /// only then four elements per thread and round are the same set as one.
  [[nodiscard]] bool CoversEveryElement() const {
    const Node& start_value = ValueOf(*loop_.start);
    const Polynomial start = IndexOf(*loop_.start, model_);
    const Polynomial step = IndexOf(*loop_.step, model_);
    const Polynomial thread = Polynomial::Atom("threadIdx.x");
    if (IsLane(start_value)) {
      return ConstantValue(*loop_.step, model_) == 32 &&
             BlocksAre([](long long threads) { return threads % 32 == 0; });
    }
    if (start == thread) {
      return IsBlockSize(step);
    }
    const auto block = (start - thread).Coefficient("blockIdx.x");
    const auto per_grid = step.Coefficient("gridDim.x");
    return block && per_grid && IsBlockSize(*block) && IsBlockSize(*per_grid) &&
           start == *block * Polynomial::Atom("blockIdx.x") + thread &&
           step == *per_grid * Polynomial::Atom("gridDim.x");
  }

  /// What a name stands for, when that never changes.
  [[nodiscard]] static const Node& ValueOf(const Node& e) {
    const Node* value = &e;
    for (int i = 0; i < 8 && value->Is(NodeKind::kReference) && value->decl != nullptr &&
                    value->decl->Is(NodeKind::kVariable) && IsReadOnly(*value->decl);
         ++i) {
      const Node* next = Initializer(*value->decl);
      if (next == nullptr) {
        break;
      }
      value = next;
    }
    return *value;
  }

  /// threadIdx.x % 32 or threadIdx.x & 31
  [[nodiscard]] bool IsLane(const Node& e) const {
    const bool modulo = e.Is(NodeKind::kBinary, "%") && ConstantValue(e.child(1), model_) == 32;
    const bool mask = e.Is(NodeKind::kBinary, "&") && ConstantValue(e.child(1), model_) == 31;
    return (modulo || mask) && IndexOf(e.child(0), model_) == Polynomial::Atom("threadIdx.x");
  }

  template <class Condition>
  [[nodiscard]] bool BlocksAre(Condition condition) const {
    const auto launches = model_.LaunchesOf(kernel_);
    return !launches.empty() && std::ranges::all_of(launches, [&](const Node* launch) {
      const auto block = BlockShape(*launch, model_);
      return block && condition((*block)[0]);
    });
  }

  [[nodiscard]] bool IsBlockSize(const Polynomial& size) const {
    const auto value = size.AsConstant();
    return size == Polynomial::Atom("blockDim.x") ||
           (value && BlocksAre([&](long long threads) { return threads == *value; }));
  }

  bool Add(const Access& access) {
    if (!IsGlobalMemory(access) || !access.node->Is(NodeKind::kSubscript)) {
      return !access.written || !IsGlobalMemory(access) ||
             Fails(fmt::format("line {} stores through a dereferenced pointer", access.node->line));
    }
    const auto factor = access.index.Coefficient(AtomOf(*loop_.variable));
    const std::string type = ElementType(access.base->type);
    const std::string vector = VectorOf(type);
    if (!factor || !factor->IsOne() || vector.empty()) {
      return !access.written ||
             Fails(fmt::format("line {} does not store neighbouring four-byte elements",
                               access.node->line));
    }
    for (Group& group : groups_) {
      if (group.base == access.base && group.index == access.index) {
        group.nodes.push_back(access.node);
        group.read |= access.read;
        group.written |= access.written;
        return true;
      }
    }
    Group group{
        access.base, access.index, {access.node}, access.read, access.written, type, vector, "",
        ""};
    if (!Follow(*access.node, 0, group.element)) {
      return Fails(
          fmt::format("the index at line {} depends on a variable that changes in the loop",
                      access.node->line));
    }
    group.name = model_.FreshName(access.base->name + "_vector");
    for (const Group& other : groups_) {
      group.name += other.name == group.name ? "_more" : "";
    }
    groups_.push_back(std::move(group));
    return true;
  }

  /// The text with locals of the loop body replaced by what they stand for.
  bool Follow(const Node& node, int depth, std::string& text) const {
    Edits edits;
    bool fine = depth < 8;
    Walk(node, [&](const Node& n) {
      if (!n.Is(NodeKind::kReference) || n.decl == nullptr || !Contains(*loop_.body, *n.decl)) {
        return true;
      }
      const Node* value = Initializer(*n.decl);
      std::string inner;
      fine = fine && value != nullptr && IsReadOnly(*n.decl) && Follow(*value, depth + 1, inner);
      edits.Replace(n, Parenthesized(inner));
      return true;
    });
    text = edits.ApplyWithin(model_.text(), node.begin, node.end);
    return fine;
  }

  /// A store must happen in every iteration, and nobody else may look at what it stored.
  bool CheckStores() {
    for (const Group& group : groups_) {
      if (!group.written) {
        continue;
      }
      for (const Node* node : group.nodes) {
        for (const Node* up = node->parent; up != loop_.loop; up = up->parent) {
          if (up->Is(NodeKind::kIf) || up->Is(NodeKind::kConditional) || up->IsLoop()) {
            return Fails(fmt::format("the access at line {} does not happen in every iteration",
                                     node->line));
          }
        }
      }
      for (const Access& access : AccessesIn(kernel_, model_)) {
        const bool outside = !Contains(*loop_.loop, *access.node);
        if (outside && (access.base == group.base || access.base == nullptr)) {
          return Fails(fmt::format("`{}` is also used at line {}, perhaps by another thread",
                                   group.base->name, access.node->line));
        }
      }
    }
    return true;
  }

  /// The element's address with the loop variable replaced.
  [[nodiscard]] std::string Address(const Group& group, std::string_view value) const {
    std::string text;
    const std::string& name = loop_.variable->name;
    for (std::size_t i = 0; i < group.element.size();) {
      const bool word_start = i == 0 || !IsWord(group.element[i - 1]);
      const std::size_t after = i + name.size();
      const bool hit = word_start && group.element.compare(i, name.size(), name) == 0 &&
                       (after == group.element.size() || !IsWord(group.element[after])) &&
                       (i == 0 || group.element[i - 1] != '.');
      text += hit ? std::string(value) : std::string(1, group.element[i]);
      i += hit ? name.size() : 1;
    }
    return "&" + text;
  }

  static bool IsWord(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  }

  [[nodiscard]] std::string Condition(const std::string& indent) const {
    std::string text = fmt::format("{} % 4 == 0", Parenthesized(model_.Text(*loop_.bound)));
    std::vector<std::string> seen;
    for (const Group& group : groups_) {
      std::string address = Address(group, "0");
      if (std::ranges::find(seen, address) == seen.end()) {
        text += fmt::format(" &&\n{}    reinterpret_cast<unsigned long long>({}) % 16 == 0", indent,
                            address);
        seen.push_back(std::move(address));
      }
    }
    return text;
  }

  [[nodiscard]] std::string VectorLoop(const std::string& indent) const {
    const std::string& c = loop_.variable->name;
    const std::string type = loop_.variable->type;
    std::string text =
        fmt::format("{0}for ({1} {2} = 4 * {3}; {2} < {4}; {2} += 4 * {5}) {{\n", indent, type, c,
                    Parenthesized(model_.Text(*loop_.start)), model_.Text(*loop_.bound),
                    Parenthesized(model_.Text(*loop_.step)));
    std::string stores;
    for (const Group& group : groups_) {
      text += fmt::format("{}  alignas(16) {} {}[4];\n", indent, group.type, group.name);
      if (group.read) {
        text += fmt::format(
            "{0}  *reinterpret_cast<{1}*>({2}) =\n{0}      *reinterpret_cast<const {1}*>({3});\n",
            indent, group.vector, group.name, Address(group, c));
      }
      if (group.written) {
        stores += fmt::format(
            "{0}  *reinterpret_cast<{1}*>({3}) =\n{0}      *reinterpret_cast<const {1}*>({2});\n",
            indent, group.vector, group.name, Address(group, c));
      }
    }
    const std::string j = model_.FreshName("j");
    text += fmt::format("#pragma unroll\n{0}  for (int {1} = 0; {1} < 4; ++{1}) {{\n", indent, j);
    text += Body(indent + "    ", j);
    text += fmt::format("{0}  }}\n{1}{0}}}\n", indent, stores);
    return text;
  }

  [[nodiscard]] std::string Body(const std::string& indent, const std::string& j) const {
    Edits edits;
    for (const Group& group : groups_) {
      for (const Node* node : group.nodes) {
        edits.Replace(*node, fmt::format("{}[{}]", group.name, j));
      }
    }
    Walk(*loop_.body, [&](const Node& n) {
      const bool grouped = std::ranges::any_of(groups_, [&](const Group& group) {
        return std::ranges::find(group.nodes, &n) != group.nodes.end();
      });
      if (n.Is(NodeKind::kReference) && n.decl == loop_.variable) {
        edits.Replace(n, fmt::format("({} + {})", n.name, j));
      }
      return !grouped;
    });
    std::string text;
    for (const Node* statement : Statements(*loop_.body)) {
      text += indent +
              edits.ApplyWithin(model_.text(), statement->begin, model_.StatementEnd(*statement)) +
              "\n";
    }
    return text;
  }

  const SourceModel& model_;
  const Node& kernel_;
  const CountedLoop& loop_;
  LoopEffects effects_;
  std::vector<Group> groups_;
  std::string obstacle_;
};

/// Already one of our two branches.
bool InVectorBranch(const SourceModel& model, const Node& loop) {
  for (const Node* n = loop.parent; n != nullptr; n = n->parent) {
    if (n->Is(NodeKind::kIf) &&
        model.Text(n->child(0)).find("reinterpret_cast<unsigned long long>") !=
            std::string_view::npos) {
      return true;
    }
  }
  return false;
}

class VectorAccess final : public Rewrite {
 public:
  [[nodiscard]] std::string_view id() const override { return "vector_access"; }

  [[nodiscard]] std::vector<std::string_view> answers() const override {
    return {"mem.width", "mem.inflight", "lat.long_scoreboard", "cmp.issue", "lat.throttle"};
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
    std::string action = fmt::format("vector_access({})", kernel.name);
    for (const Node* launch : model.LaunchesOf(kernel)) {
      if (PassesPointerTwice(model, *launch)) {
        outcome.Decline(std::move(action), "a launch passes one buffer twice");
        return;
      }
    }
    Edits edits;
    std::vector<std::uint32_t> lines;
    std::string why = "the kernel has no loop that could take four elements at a time";
    for (const Node* node : FindAll(kernel, NodeKind::kFor)) {
      const auto loop = AsCountedLoop(*node);
      if (!loop) {
        continue;
      }
      if (InVectorBranch(model, *node)) {
        why = fmt::format("the loop at line {} has a vector path already", node->line);
        continue;
      }
      LoopVectorizer vectorizer(model, kernel, *loop);
      if (!vectorizer.Check()) {
        why = vectorizer.obstacle();
        continue;
      }
      vectorizer.Emit(edits);
      lines.push_back(node->line);
    }
    if (edits.empty()) {
      outcome.Decline(std::move(action), why);
      return;
    }
    outcome.proposals.push_back(
        Propose(request, kernel.name, std::move(action), edits.Apply(model.text()),
                fmt::format("{} of {}: loops move 128 bits per access where addresses "
                            "and length allow it: a quarter of the memory instructions",
                            LineList(lines), kernel.name),
                0.35));
  }
};

}  // namespace

std::unique_ptr<Rewrite> MakeVectorAccess() {
  return std::make_unique<VectorAccess>();
}

}  // namespace kernelpro::playbook
