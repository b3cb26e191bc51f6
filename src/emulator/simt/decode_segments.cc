// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "emulator/simt/decode.h"

namespace kernelpro::simt {
namespace {

/// Longer runs are cut here, so that a slice of the scheduler ends about where it should.
constexpr std::uint32_t kLongestSegment = 24;

bool EndsSegment(Kind kind) {
  return kind >= Kind::kBranch;
}

}  // namespace

void Decoder::CloseSegment(std::uint32_t block, bool ends_block) {
  Segment segment;
  segment.begin = out_.segments.empty() ? 0 : out_.segments.back().end;
  segment.end = static_cast<std::uint32_t>(out_.code.size());
  if (segment.end == segment.begin && !ends_block) {
    return;
  }
  const bool terminated = segment.end > segment.begin && EndsSegment(out_.code.back().kind);
  segment.body_end = segment.end - (terminated ? 1U : 0U);
  if (segment.end > segment.begin) {
    const Decoded& first = out_.code[segment.begin];
    segment.rendezvous = needs_meeting_[first.instruction];
    if (segment.rendezvous && first.kind == Kind::kOperation) {
      segment.member_mask = first.operands.src[3];
    }
  }
  segment.exit_only =
      terminated && segment.body_end == segment.begin && out_.code.back().guard == kNoSlot &&
      (out_.code.back().kind == Kind::kExit || out_.code.back().kind == Kind::kReturn);
  // Within a block control runs on into the segment that follows; at its end ResolveTargets knows.
  segment.next = ends_block ? kNoSegment : static_cast<std::uint32_t>(out_.segments.size()) + 1;
  out_.segments.push_back(segment);
  out_.block_of_segment.push_back(block);
}

void Decoder::AddBlock(std::uint32_t block) {
  const ptx::BasicBlock& basic = flow_.blocks[block];
  first_segment_of_block_[block] = static_cast<std::uint32_t>(out_.segments.size());
  for (std::uint32_t i = basic.first; i < basic.end; ++i) {
    if (omitted_[i]) {
      continue;
    }
    const std::size_t begin = out_.segments.empty() ? 0 : out_.segments.back().end;
    if (needs_meeting_[i] || out_.code.size() - begin >= kLongestSegment) {
      CloseSegment(block, false);
    }
    out_.code.push_back(decoded_[i]);
    if (EndsSegment(decoded_[i].kind) && i + 1 < basic.end) {
      CloseSegment(block, false);
    }
  }
  CloseSegment(block, true);
}

std::uint32_t Decoder::SegmentAt(std::uint32_t instruction) const {
  return instruction < flow_.block_of.size() ? first_segment_of_block_[flow_.block_of[instruction]]
                                             : static_cast<std::uint32_t>(out_.segments.size()) - 1;
}

void Decoder::ResolveTargets() {
  const std::size_t count = out_.segments.size();
  for (std::size_t s = 0; s + 1 < count; ++s) {
    Segment& segment = out_.segments[s];
    if (segment.next == kNoSegment) {
      segment.next = SegmentAt(flow_.blocks[out_.block_of_segment[s]].end);
    }
  }
  for (Decoded& d : out_.code) {
    if (d.kind == Kind::kBranch) {
      d.target = SegmentAt(d.target);
    }
  }
  for (std::vector<std::uint32_t>& table : out_.branch_tables) {
    for (std::uint32_t& target : table) {
      target = SegmentAt(target);
    }
  }
  for (const ptx::Loop& loop : flow_.loops) {
    if (flow_.blocks[loop.header].reachable) {
      out_.segments[first_segment_of_block_[loop.header]].loop_end =
          loop.end < flow_.blocks.size() ? first_segment_of_block_[loop.end]
                                         : static_cast<std::uint32_t>(count);
    }
  }
}

/// The last segment is an added exit: where control goes that runs off the end of the body.
void Decoder::BuildSegments() {
  flow_ = ptx::BuildControlFlow(function_);
  first_segment_of_block_.assign(flow_.blocks.size(), 0);
  for (std::uint32_t block = 0; block < flow_.blocks.size(); ++block) {
    AddBlock(block);
  }
  Decoded leave;
  leave.kind = function_.is_entry ? Kind::kExit : Kind::kReturn;
  leave.instruction = static_cast<std::uint32_t>(function_.body.size());
  needs_meeting_.push_back(false);
  out_.code.push_back(leave);
  CloseSegment(static_cast<std::uint32_t>(flow_.blocks.size()), true);
  ResolveTargets();
  out_.segment_successors.resize(out_.segments.size());
  for (std::size_t s = 0; s < out_.segments.size(); ++s) {
    std::vector<std::uint32_t>& successors = out_.segment_successors[s];
    const Segment& segment = out_.segments[s];
    const Decoded* last = segment.end > segment.body_end ? &out_.code[segment.body_end] : nullptr;
    if (segment.next != kNoSegment) {
      successors.push_back(segment.next);
    }
    if (last != nullptr && last->kind == Kind::kBranch) {
      if (last->guard == kNoSlot) {
        successors.clear();
      }
      successors.push_back(last->target);
    } else if (last != nullptr && last->kind == Kind::kBranchIndexed) {
      successors = out_.branch_tables[last->extra];
    } else if (last != nullptr && last->guard == kNoSlot &&
               (last->kind == Kind::kExit || last->kind == Kind::kReturn ||
                last->kind == Kind::kTrap)) {
      successors.clear();
    }
  }
}

}  // namespace kernelpro::simt
