// SPDX-License-Identifier: Apache-2.0
#include "sass/control_flow.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>

#include "sass/dominators.h"
#include "sass/opcode.h"

namespace kernelpro::sass {
namespace {

constexpr std::uint32_t kLongestPoll = 6;

bool IsJump(const Opcode& op) {
  return op.Is("BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU");
}

bool EndsFlow(const Opcode& op) {
  return op.Is("EXIT", "RET", "KILL", "BPT") || IsJump(op);
}

/// Whether control never goes on to the next instruction: no guard, and no condition among the
/// operands ("BRA.U UP0, 0x40").
bool Leaves(const Instruction& instruction, const Access& access) {
  const Opcode op(instruction.opcode);
  if (!EndsFlow(op) || access.guarded) {
    return false;
  }
  if (!op.Is("BRA", "JMP")) {
    return !op.Is("BPT");
  }
  return SplitOperands(instruction.operands).size() < 2;
}

/// The compiler pads every function with NOPs behind a branch to itself.
std::uint32_t SizeWithoutPadding(const std::vector<Instruction>& list) {
  std::size_t size = list.size();
  const auto skip_nops = [&] {
    while (size > 0 && Opcode(list[size - 1].opcode).Is("NOP")) {
      --size;
    }
  };
  skip_nops();
  while (size > 1 && IsJump(Opcode(list[size - 1].opcode)) && list[size - 1].predicate.empty() &&
         list[size - 1].targets == std::vector{list[size - 1].address}) {
    --size;
    skip_nops();
  }
  return static_cast<std::uint32_t>(size);
}

class Builder {
 public:
  explicit Builder(const Function& function) : list_(function.instructions) {}

  ControlFlow Build() {
    flow_.size = SizeWithoutPadding(list_);
    flow_.access.reserve(flow_.size);
    for (std::uint32_t i = 0; i < flow_.size; ++i) {
      flow_.access.push_back(AccessOf(list_[i]));
    }
    if (flow_.size > 0) {
      MakeBlocks();
      const std::vector<std::uint32_t> order = FindDominators(&flow_);
      FindLoops(order);
    }
    return std::move(flow_);
  }

 private:
  /// Number of the instruction at an address.
  [[nodiscard]] std::optional<std::uint32_t> At(std::uint64_t address) const {
    const auto end = list_.begin() + flow_.size;
    const auto found = std::lower_bound(
        list_.begin(), end, address,
        [](const Instruction& i, std::uint64_t value) { return i.address < value; });
    if (found == end || found->address != address) {
      return std::nullopt;
    }
    return static_cast<std::uint32_t>(found - list_.begin());
  }

  void MakeBlocks() {
    std::vector<bool> leader(flow_.size + 1U, false);
    leader[0] = true;
    for (std::uint32_t i = 0; i < flow_.size; ++i) {
      for (const std::uint64_t target : list_[i].targets) {
        if (const auto at = At(target)) {
          leader[*at] = true;
        }
      }
      if (EndsFlow(Opcode(list_[i].opcode))) {
        leader[i + 1] = true;
      }
    }
    flow_.block_of.resize(flow_.size);
    for (std::uint32_t i = 0; i < flow_.size; ++i) {
      if (leader[i]) {
        flow_.blocks.push_back({.first = i, .end = i});
      }
      flow_.blocks.back().end = i + 1;
      flow_.block_of[i] = static_cast<std::uint32_t>(flow_.blocks.size() - 1);
    }
    std::uint32_t indirect = kNone;
    for (std::uint32_t b = 0; b < flow_.blocks.size(); ++b) {
      Connect(b);
      const Instruction& last = list_[flow_.blocks[b].end - 1];
      if (Opcode(last.opcode).Is("BRX", "BRXU", "JMX", "JMXU") && last.targets.empty()) {
        indirect = std::min(indirect, b);
      }
    }
    // An indirect branch whose targets are not printed can only go where nothing else leads to.
    for (std::uint32_t b = 1; indirect != kNone && b < flow_.blocks.size(); ++b) {
      if (flow_.blocks[b].previous.empty()) {
        Edge(indirect, b);
      }
    }
  }

  void Connect(std::uint32_t from) {
    const std::uint32_t last = flow_.blocks[from].end - 1;
    if (IsJump(Opcode(list_[last].opcode)) && list_[last].predicate != "@!PT") {
      for (const std::uint64_t target : list_[last].targets) {
        if (const auto at = At(target)) {
          Edge(from, flow_.block_of[*at]);
        }
      }
    }
    if (from + 1 < flow_.blocks.size() && !Leaves(list_[last], flow_.access[last])) {
      Edge(from, from + 1);
    }
  }

  void Edge(std::uint32_t from, std::uint32_t to) {
    std::vector<std::uint32_t>& next = flow_.blocks[from].next;
    // A list of branch targets can be long; edges need not be unique for it.
    if (next.size() < 8 && std::ranges::find(next, to) != next.end()) {
      return;
    }
    next.push_back(to);
    flow_.blocks[to].previous.push_back(from);
  }

  /// Innermost first: a header is worked on after all headers that a walk meets behind it; what
  /// belongs to a finished loop is one vertex from then on (union-find), so that every block is
  /// taken into a loop once.
  void FindLoops(const std::vector<std::uint32_t>& order) {
    representative_.resize(flow_.blocks.size());
    std::iota(representative_.begin(), representative_.end(), 0U);
    std::vector<std::uint32_t> loop_of_header(flow_.blocks.size(), kNone);
    for (auto header = order.rbegin(); header != order.rend(); ++header) {
      std::vector<std::uint32_t> body = Body(*header);
      if (!is_header_) {
        continue;
      }
      const auto number = static_cast<std::uint32_t>(flow_.loops.size());
      Loop loop;
      loop.header = *header;
      loop_of_header[*header] = number;
      Take(*header, number, &loop);
      for (const std::uint32_t block : body) {
        representative_[block] = *header;
        if (const std::uint32_t inner = loop_of_header[block]; inner != kNone) {
          loop.inner.push_back(inner);
          flow_.loops[inner].parent = number;
          loop.instructions += flow_.loops[inner].instructions;
        } else {
          Take(block, number, &loop);
        }
      }
      std::ranges::sort(loop.own);
      flow_.loops.push_back(std::move(loop));
    }
    for (auto loop = flow_.loops.rbegin(); loop != flow_.loops.rend(); ++loop) {
      loop->depth = loop->parent == kNone ? 1 : flow_.loops[loop->parent].depth + 1;
      loop->poll = IsPoll(*loop);
      loop->by_lane = !loop->poll && IsByLane(*loop);
      loop->reduction = IsReduction(*loop);
    }
  }

  void Take(std::uint32_t block, std::uint32_t number, Loop* loop) {
    loop->own.push_back(block);
    loop->instructions += flow_.blocks[block].end - flow_.blocks[block].first;
    flow_.blocks[block].loop = number;
  }

  /// Vertices of the loop of a header, itself left out; sets is_header_ when there is a back edge.
  std::vector<std::uint32_t> Body(std::uint32_t header) {
    is_header_ = false;
    std::vector<std::uint32_t> body, work;
    const auto add = [&](std::uint32_t block) {
      const std::uint32_t vertex = Find(block);
      if (vertex != header && marked_by_.Insert(vertex, header)) {
        body.push_back(vertex);
        work.push_back(vertex);
      }
    };
    marked_by_.resize(flow_.blocks.size());
    for (const std::uint32_t source : flow_.blocks[header].previous) {
      if (flow_.blocks[source].reachable && flow_.Dominates(header, source)) {
        is_header_ = true;
        add(source);
      }
    }
    while (!work.empty()) {
      const std::uint32_t vertex = work.back();
      work.pop_back();
      for (const std::uint32_t previous : flow_.blocks[vertex].previous) {
        if (flow_.blocks[previous].reachable) {
          add(previous);
        }
      }
    }
    return body;
  }

  std::uint32_t Find(std::uint32_t block) {
    while (representative_[block] != block) {
      representative_[block] = representative_[representative_[block]];
      block = representative_[block];
    }
    return block;
  }

  template <class Visit>
  void EachOwn(const Loop& loop, const Visit& visit) const {
    for (const std::uint32_t block : loop.own) {
      for (std::uint32_t i = flow_.blocks[block].first; i < flow_.blocks[block].end; ++i) {
        visit(i, Opcode(list_[i].opcode));
      }
    }
  }

  [[nodiscard]] bool IsPoll(const Loop& loop) const {
    if (loop.instructions > kLongestPoll || !loop.inner.empty()) {
      return false;
    }
    // Registers that change from one round to the next; a move of what does not change is no
    // change.
    std::set<Slot> changed;
    EachOwn(loop, [&](std::uint32_t i, const Opcode& op) {
      const Access& access = flow_.access[i];
      const bool move =
          FiguresOf(op, list_[i].operands) == Bit(Figure::kMoves) &&
          std::ranges::none_of(access.reads, [&](Slot slot) { return changed.contains(slot); });
      if (!move) {
        changed.insert(access.writes.begin(), access.writes.end());
      }
    });
    bool waits = false, works = false;
    EachOwn(loop, [&](std::uint32_t i, const Opcode& op) {
      const bool loads = op.Is("LDG", "LD", "LDS", "ATOMG", "ATOM", "ATOMS");
      // With an address of its own each time it follows pointers or walks an array.
      works = works || IsArithmetic(op, list_[i].operands) ||
              (loads && std::ranges::any_of(flow_.access[i].address,
                                            [&](Slot slot) { return changed.contains(slot); }));
      waits = waits || loads || op.Is("NANOSLEEP", "USETMAXREG") ||
              (op.Is("SYNCS") && op.Modifier(0) == "PHASECHK");
    });
    return waits && !works;
  }

  [[nodiscard]] bool IsByLane(const Loop& loop) const {
    if (!loop.inner.empty()) {
      return false;
    }
    bool elects = false, repeats = false;
    EachOwn(loop, [&](std::uint32_t, const Opcode& op) {
      elects = elects || op.Is("ELECT");
      repeats = repeats || (op.Is("BRA") && op.Has("U") && op.Has("ANY"));
    });
    return elects && repeats;
  }

  [[nodiscard]] bool IsReduction(const Loop& loop) const {
    constexpr std::uint32_t kLongest = 20;
    if (!loop.inner.empty() || loop.instructions > kLongest) {
      return false;
    }
    int loads = 0, stores = 0, products = 0, rest = 0;
    EachOwn(loop, [&](std::uint32_t i, const Opcode& op) {
      loads += op.Is("LDG") && op.Has("CONSTANT") ? 1 : 0;
      stores += op.Is("STL") ? 1 : 0;
      products += op.Is("IMAD") && op.Has("WIDE") && op.Has("U32") ? 1 : 0;
      const FigureSet figures = FiguresOf(op, list_[i].operands);
      constexpr FigureSet kFloat =
          Bit(Figure::kFfma) | Bit(Figure::kFadd) | Bit(Figure::kFmul) | Bit(Figure::kStg);
      rest += (figures & kFloat) != 0 ? 1 : 0;
    });
    return loads == 1 && stores == 1 && products == 1 && rest == 0;
  }

  static bool IsArithmetic(const Opcode& op, std::string_view operands) {
    constexpr FigureSet kWork = Bit(Figure::kFfma) | Bit(Figure::kFadd) | Bit(Figure::kFmul) |
                                Bit(Figure::kFp64) | Bit(Figure::kFp16) | Bit(Figure::kMufu) |
                                Bit(Figure::kConversion) | Bit(Figure::kStg) | Bit(Figure::kSts) |
                                Bit(Figure::kRed) | Bit(Figure::kTma) | Bit(Figure::kBar);
    const FigureSet figures = FiguresOf(op, operands);
    if (figures == Bit(Figure::kInteger)) {
      return !op.Is("ISETP", "LOP3", "PLOP3", "SEL", "PRMT");  // What a test is made of.
    }
    return IsMma(op) || (figures & kWork) != 0;
  }

  /// Which header last saw a vertex: a set that empties itself.
  struct Marks {
    std::vector<std::uint32_t> by;

    void resize(std::size_t size) { by.resize(size, kNone); }

    bool Insert(std::uint32_t vertex, std::uint32_t header) {
      const bool fresh = by[vertex] != header;
      by[vertex] = header;
      return fresh;
    }
  };

  const std::vector<Instruction>& list_;
  ControlFlow flow_;
  std::vector<std::uint32_t> representative_;
  Marks marked_by_;
  bool is_header_ = false;
};

}  // namespace

bool ControlFlow::Dominates(std::uint32_t a, std::uint32_t b) const {
  return blocks[a].reachable && blocks[b].reachable && dominator_in[a] <= dominator_in[b] &&
         dominator_out[b] <= dominator_out[a];
}

std::vector<std::uint32_t> ControlFlow::InstructionsOf(std::uint32_t loop) const {
  std::vector<std::uint32_t> found;
  std::vector<std::uint32_t> work = {loop};
  while (!work.empty()) {
    const Loop& current = loops[work.back()];
    work.pop_back();
    for (const std::uint32_t block : current.own) {
      for (std::uint32_t i = blocks[block].first; i < blocks[block].end; ++i) {
        found.push_back(i);
      }
    }
    work.insert(work.end(), current.inner.begin(), current.inner.end());
  }
  std::ranges::sort(found);
  return found;
}

ControlFlow AnalyzeControlFlow(const Function& function) {
  return Builder(function).Build();
}

}  // namespace kernelpro::sass
