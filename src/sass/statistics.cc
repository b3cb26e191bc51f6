// SPDX-License-Identifier: Apache-2.0
#include "sass/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "sass/listing_parts.h"
#include "sass/loop_figures.h"
#include "sass/opcode.h"

namespace kernelpro::sass {
namespace {

constexpr std::uint32_t kInstructionBytes = 16;
/// Above this, only counts: no generated kernel comes near, and loops would take long to find.
constexpr std::size_t kLargestFunction = 300'000;

using Counts = std::array<std::uint64_t, kFigures>;

void Count(const Instruction& instruction, Counts* counts) {
  FigureSet set = FiguresOf(Opcode(instruction.opcode), instruction.operands);
  for (std::size_t f = 0; set != 0; ++f, set >>= 1U) {
    (*counts)[f] += set & 1U;
  }
}

/// Whole-function figures that no loop has: they say how a kernel is built, not how it spends time.
bool OfLoop(Figure figure) {
  return figure != Figure::kHmmaK8 && figure != Figure::kNanosleep &&
         figure != Figure::kSetmaxnreg && figure != Figure::kPdl &&
         figure != Figure::kClusterBarrier && figure != Figure::kBranches;
}

class Writer {
 public:
  Writer(std::string prefix, std::map<std::string, Metric>* metrics)
      : prefix_(std::move(prefix)), metrics_(*metrics) {}

  void Put(std::string_view name, double value, std::string_view unit = "inst",
           Provenance provenance = Provenance::kCounted) {
    metrics_[prefix_ + std::string(name)] = {value, std::string(unit), provenance};
  }

  void PutAll(const Counts& counts, bool loop) {
    for (std::size_t f = 0; f < kFigures; ++f) {
      if (!loop || OfLoop(static_cast<Figure>(f))) {
        Put(FigureName(static_cast<Figure>(f)), static_cast<double>(counts[f]));
      }
    }
    const auto at = [&counts](Figure figure) { return counts[static_cast<std::size_t>(figure)]; };
    Put("mma", static_cast<double>(at(Figure::kMmaWarp) + at(Figure::kMmaWarpgroup) +
                                   at(Figure::kMmaTcgen05)));
  }

 private:
  std::string prefix_;
  std::map<std::string, Metric>& metrics_;
};

class LoopWriter {
 public:
  LoopWriter(const Function& function, const ControlFlow& flow, const std::vector<bool>& fusible,
             std::uint32_t loop, const Executed* executed, Statistics* out)
      : function_(function),
        flow_(flow),
        fusible_(fusible),
        loop_(loop),
        executed_(executed),
        out_(*out) {}

  void Write() {
    std::vector<std::uint32_t> body = flow_.InstructionsOf(loop_);
    std::erase_if(body, [this](std::uint32_t i) { return NeverRan(i); });
    Writer put("sass.loop.", &out_.metrics);
    Counts counts = {};
    std::uint64_t fusible = 0, divisions = 0, wide = 0, conflicts = 0;
    for (const std::uint32_t i : body) {
      const Instruction& instruction = function_.instructions[i];
      Count(instruction, &counts);
      fusible += fusible_[i] ? 1U : 0U;
      divisions += IsDivision(instruction) ? 1U : 0U;
      wide += IsWideInteger(instruction) ? 1U : 0U;
      conflicts += HasBankConflict(instruction, flow_.access[i]) ? 1U : 0U;
    }
    const auto size = static_cast<double>(body.size());
    put.Put("instructions", size);
    put.Put("code_bytes", size * kInstructionBytes, "byte");
    put.PutAll(counts, true);
    put.Put("fusible", static_cast<double>(fusible));
    put.Put("divisions", static_cast<double>(divisions));
    put.Put("wide_integer", static_cast<double>(wide));
    put.Put("bank_conflicts", static_cast<double>(conflicts));
    put.Put("depth", flow_.loops[loop_].depth, "");
    Loads(body, &put);
    Around(&put);
    const ChainFigures chain = ChainFiguresOf(function_, flow_, body);
    put.Put("critical_path", chain.critical_path, "cycle", Provenance::kModelled);
    put.Put("recurrence", chain.recurrence, "cycle", Provenance::kModelled);
    Place(body);
  }

 private:
  /// By measured counts: a remainder loop or a slow path that this run never took.
  [[nodiscard]] bool NeverRan(std::uint32_t instruction) const {
    if (executed_ == nullptr) {
      return false;
    }
    const auto found = executed_->find(function_.instructions[instruction].address);
    return found != executed_->end() && found->second <= 0;
  }

  void Loads(const std::vector<std::uint32_t>& body, Writer* put) {
    const LoadFigures loads = LoadFiguresOf(function_, flow_, body);
    put->Put("ldg_bytes", static_cast<double>(loads.ldg_bytes), "byte");
    put->Put("lds_bytes", static_cast<double>(loads.lds_bytes), "byte");
    put->Put("narrow_runs", loads.narrow_runs);
    put->Put("duplicate_loads", loads.duplicate_loads);
    put->Put("invariant_loads", loads.invariant_loads);
    if (loads.ldg_batch) {
      put->Put("ldg_batch", *loads.ldg_batch);
    }
    if (loads.ldg_use_distance) {
      put->Put("ldg_use_distance", *loads.ldg_use_distance);
    }
  }

  /// The copy into shared memory often stands in the loop around the one that computes.
  void Around(Writer* put) {
    bool staged = false;
    std::optional<std::uint64_t> depth;
    std::uint32_t loop = loop_;
    for (int level = 0; level < 4 && loop != kNone; ++level, loop = flow_.loops[loop].parent) {
      const std::vector<std::uint32_t> body = flow_.InstructionsOf(loop);
      staged = staged || IsStagedCopy(function_, flow_, body);
      for (const std::uint32_t i : body) {
        const Instruction& instruction = function_.instructions[i];
        if (const auto left = StagesLeft(instruction)) {
          depth = std::max(depth.value_or(0), *left);
        }
      }
    }
    put->Put("staged_copy", staged ? 1 : 0, "");
    if (depth) {
      put->Put("wait_depth", static_cast<double>(*depth), "");
    }
  }

  /// N of "DEPBAR.LE SB0, 0xN": copies that cp.async.wait_group leaves in flight.
  static std::optional<std::uint64_t> StagesLeft(const Instruction& instruction) {
    const Opcode op(instruction.opcode);
    const std::vector<std::string_view> parts = SplitOperands(instruction.operands);
    if (!op.Is("DEPBAR") || !op.Has("LE") || parts.size() < 2 || parts[0] != "SB0") {
      return std::nullopt;
    }
    return ParseHex(parts[1]);
  }

  void Place(const std::vector<std::uint32_t>& body) {
    HotLoop place;
    place.first = function_.instructions[body.front()].address;
    place.last = function_.instructions[body.back()].address;
    for (const std::uint32_t i : body) {
      const Instruction& instruction = function_.instructions[i];
      const bool own = !IsToolkitHeader(function_.FileOf(instruction));
      if (instruction.line > 0 && (own || place.line == 0)) {
        place.file = function_.FileOf(instruction);
        place.line = instruction.line;
        if (own) {
          break;
        }
      }
    }
    out_.hot_loop = std::move(place);
  }

  const Function& function_;
  const ControlFlow& flow_;
  const std::vector<bool>& fusible_;
  std::uint32_t loop_;
  const Executed* executed_;
  Statistics& out_;
};

/// 2: matrix instructions; 1: other math or memory; 0: neither.
int WorkIn(const Function& function, const std::vector<std::uint32_t>& body) {
  constexpr FigureSet kWork = Bit(Figure::kFfma) | Bit(Figure::kFadd) | Bit(Figure::kFmul) |
                              Bit(Figure::kFp64) | Bit(Figure::kFp16) | Bit(Figure::kMufu) |
                              Bit(Figure::kLdg) | Bit(Figure::kStg) | Bit(Figure::kLds) |
                              Bit(Figure::kSts) | Bit(Figure::kLdgsts) | Bit(Figure::kTma) |
                              Bit(Figure::kAtom) | Bit(Figure::kRed) | Bit(Figure::kAtoms);
  int work = 0;
  for (const std::uint32_t i : body) {
    const Opcode op(function.instructions[i].opcode);
    work = IsMma(op) ? 2 : std::max(work, (FiguresOf(op, "") & kWork) != 0 ? 1 : 0);
    if (work == 2) {
      break;
    }
  }
  return work;
}

}  // namespace

namespace {

/// Executed instructions of a loop, those of the real loops inside left to these.
double RanIn(const Function& function, const ControlFlow& flow, std::uint32_t loop,
             const Executed& executed) {
  double ran = 0;
  const auto add = [&](std::uint32_t i) {
    const auto found = executed.find(function.instructions[i].address);
    ran += found == executed.end() ? 0 : found->second;
  };
  for (const std::uint32_t block : flow.loops[loop].own) {
    for (std::uint32_t i = flow.blocks[block].first; i < flow.blocks[block].end; ++i) {
      add(i);
    }
  }
  for (const std::uint32_t inner : flow.loops[loop].inner) {
    if (!flow.loops[inner].IsReal()) {
      std::ranges::for_each(flow.InstructionsOf(inner), add);
    }
  }
  return ran;
}

std::uint32_t ByCounts(const Function& function, const ControlFlow& flow,
                       const Executed& executed) {
  // A loop in which less than a tenth of the instructions ran is not where the time goes.
  constexpr double kLeastShare = 0.1;
  double most = 0, total = 0;
  for (const auto& [address, count] : executed) {
    total += count;
  }
  std::uint32_t best = kNone;
  for (std::uint32_t l = 0; l < flow.loops.size(); ++l) {
    const double ran = flow.loops[l].IsReal() ? RanIn(function, flow, l, executed) : 0;
    if (ran > most && ran >= kLeastShare * total) {
      best = l;
      most = ran;
    }
  }
  return best;
}

}  // namespace

std::uint32_t ChooseHotLoop(const Function& function, const ControlFlow& flow,
                            const Executed* executed) {
  if (executed != nullptr) {
    return ByCounts(function, flow, *executed);
  }
  std::uint32_t best = kNone;
  std::pair<int, double> best_weight;
  for (std::uint32_t l = 0; l < flow.loops.size(); ++l) {
    const Loop& loop = flow.loops[l];
    const bool innermost = std::ranges::all_of(
        loop.inner, [&flow](std::uint32_t inner) { return !flow.loops[inner].IsReal(); });
    if (!loop.IsReal() || !innermost) {
      continue;
    }
    const std::vector<std::uint32_t> body = flow.InstructionsOf(l);
    const double size =
        std::pow(10.0, std::min(loop.depth, 30U)) * static_cast<double>(body.size());
    const std::pair weight = {WorkIn(function, body), size};
    if (best == kNone || weight > best_weight) {
      best = l;
      best_weight = weight;
    }
  }
  return best;
}

Statistics Analyze(const Function& function, const Executed* executed) {
  Statistics out;
  const bool large = function.instructions.size() > kLargestFunction;
  const ControlFlow flow = large ? ControlFlow() : AnalyzeControlFlow(function);
  const std::size_t size = large ? function.instructions.size() : flow.size;
  Writer put("sass.", &out.metrics);
  Counts counts = {};
  std::uint64_t unknown = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const Instruction& instruction = function.instructions[i];
    Count(instruction, &counts);
    unknown += IsKnown(Opcode(instruction.opcode)) ? 0U : 1U;
    ++out.opcodes[instruction.opcode];
  }
  const auto total = static_cast<double>(size);
  put.Put("instructions", total);
  put.Put("code_bytes", total * kInstructionBytes, "byte");
  put.PutAll(counts, false);
  put.Put("unknown.pct", size == 0 ? 0 : 100.0 * static_cast<double>(unknown) / total, "%");
  if (const int arch = function.Architecture(); arch > 0) {
    put.Put("arch", arch, "");
  }
  if (large) {
    return out;
  }
  const std::vector<bool> fusible = FusibleMultiplies(function, flow);
  put.Put("fusible", static_cast<double>(std::ranges::count(fusible, true)));
  const auto polls = std::ranges::count(flow.loops, true, &Loop::poll);
  put.Put("polls", static_cast<double>(polls), "");
  put.Put("loops", static_cast<double>(std::ranges::count_if(flow.loops, &Loop::IsReal)), "");
  if (const std::uint32_t hot = ChooseHotLoop(function, flow, executed); hot != kNone) {
    LoopWriter(function, flow, fusible, hot, executed, &out).Write();
  }
  return out;
}

}  // namespace kernelpro::sass
