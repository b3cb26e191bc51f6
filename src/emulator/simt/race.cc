// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/race.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "emulator/simt/faults.h"
#include "emulator/simt/machine.h"

namespace kernelpro::simt {

RaceDetector::RaceDetector(std::uint32_t warps, std::uint64_t shared_bytes, std::uint32_t granule)
    : warps_(warps), granule_(granule), cells_((shared_bytes + granule - 1) / granule) {}

void RaceDetector::StartCta() {
  std::fill(cells_.begin(), cells_.end(), Cell{});
  read_clocks_.clear();
  words_.clear();
  phases_ = {};
  clocks_ = {};
  for (std::uint32_t w = 0; w < warps_; ++w) {
    clocks_[w][w] = 1;
  }
}

namespace {

template <class Clock>
void Join(Clock& into, const Clock& from) {
  for (std::size_t i = 0; i < into.size(); ++i) {
    into[i] = std::max(into[i], from[i]);
  }
}

}  // namespace

void RaceDetector::Arrive(std::uint32_t barrier, std::uint32_t warp, bool waits) {
  Phase& phase = phases_[barrier];
  Join(phase.joined, clocks_[warp]);
  phase.arrived |= 1U << warp;
  phase.waiting |= waits ? 1U << warp : 0U;
}

void RaceDetector::Release(std::uint32_t barrier) {
  Phase& phase = phases_[barrier];
  for (std::uint32_t w = 0; w < warps_; ++w) {
    if ((phase.waiting >> w & 1U) != 0) {
      Join(clocks_[w], phase.joined);
    }
    if ((phase.arrived >> w & 1U) != 0) {
      ++clocks_[w][w];
    }
  }
  phase = Phase{};
}

void RaceDetector::NoteRead(Cell& cell, std::uint32_t warp, std::uint32_t instruction) {
  const std::uint32_t now = clocks_[warp][warp];
  cell.read_instruction = instruction;
  if (cell.shared_readers != 0) {
    read_clocks_[cell.shared_readers - 1][warp] = now;
    return;
  }
  if (cell.read_clock == 0 || cell.read_warp == warp ||
      Ordered(warp, cell.read_warp, cell.read_clock)) {
    cell.read_clock = now;
    cell.read_warp = static_cast<std::uint8_t>(warp);
    return;
  }
  Clock clock{};
  clock[cell.read_warp] = cell.read_clock;
  clock[warp] = now;
  read_clocks_.push_back(clock);
  cell.shared_readers = static_cast<std::uint32_t>(read_clocks_.size());
}

void RaceDetector::Read(Context& context, const Decoded& d, const std::uint32_t* offsets,
                        LaneMask on, std::uint32_t bytes) {
  const std::uint32_t warp = context.warp->index;
  bool reported = false;
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint32_t end = (offsets[lane] + bytes - 1) / granule_;
    for (std::uint32_t i = offsets[lane] / granule_; i <= end; ++i) {
      Cell& cell = cells_[i];
      if (cell.copying && !reported) {
        ReportCopy(context, d, lane, i * granule_, false, cell);
        reported = true;
      } else if (cell.write_clock == 0 && !reported) {
        ReportUninitialised(context, d, lane, i * granule_);
        reported = true;
      } else if (!Ordered(warp, cell.write_warp, cell.write_clock) && !reported) {
        Report(context, d, lane, i * granule_, false, "wrote", cell.write_instruction,
               cell.write_warp);
        reported = true;
      }
      NoteRead(cell, warp, d.instruction);
    }
  }
}

void RaceDetector::Write(Context& context, const Decoded& d, const std::uint32_t* offsets,
                         LaneMask on, std::uint32_t bytes) {
  const std::uint32_t warp = context.warp->index;
  bool reported = false;
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint32_t end = (offsets[lane] + bytes - 1) / granule_;
    for (std::uint32_t i = offsets[lane] / granule_; i <= end; ++i) {
      Cell& cell = cells_[i];
      if (!reported && cell.copying) {
        ReportCopy(context, d, lane, i * granule_, true, cell);
        reported = true;
      }
      if (!reported && !Ordered(warp, cell.write_warp, cell.write_clock)) {
        Report(context, d, lane, i * granule_, true, "wrote", cell.write_instruction,
               cell.write_warp);
        reported = true;
      }
      for (std::uint32_t w = 0; cell.shared_readers != 0 && w < warps_ && !reported; ++w) {
        if (!Ordered(warp, w, read_clocks_[cell.shared_readers - 1][w])) {
          Report(context, d, lane, i * granule_, true, "read", cell.read_instruction, w);
          reported = true;
        }
      }
      if (!reported && cell.shared_readers == 0 &&
          !Ordered(warp, cell.read_warp, cell.read_clock)) {
        Report(context, d, lane, i * granule_, true, "read", cell.read_instruction, cell.read_warp);
        reported = true;
      }
      cell = Cell{.write_clock = clocks_[warp][warp],
                  .write_instruction = d.instruction,
                  .write_warp = static_cast<std::uint8_t>(warp)};
    }
  }
}

void RaceDetector::StartCopy(Context& context, const Decoded& d, const std::uint32_t* offsets,
                             LaneMask on, std::uint32_t bytes) {
  // All lanes first: those of one instruction are not set against each other.
  Write(context, d, offsets, on, bytes);
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const std::uint32_t offset = offsets[std::countr_zero(rest)];
    for (std::uint32_t i = offset / granule_; i <= (offset + bytes - 1) / granule_; ++i) {
      cells_[i].copying = true;
    }
  }
}

void RaceDetector::FinishCopy(const std::uint32_t* offsets, LaneMask on, std::uint32_t bytes,
                              const Warp* waited) {
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const std::uint32_t offset = offsets[std::countr_zero(rest)];
    for (std::uint32_t i = offset / granule_; i <= (offset + bytes - 1) / granule_; ++i) {
      cells_[i].copying = false;
      if (waited != nullptr) {
        cells_[i].write_clock = clocks_[waited->index][waited->index];
        cells_[i].write_warp = static_cast<std::uint8_t>(waited->index);
      }
    }
  }
}

void RaceDetector::Acquire(const Context& context, const std::uint32_t* offsets, LaneMask on) {
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const auto it = words_.find(offsets[std::countr_zero(rest)] / 4);
    if (it != words_.end()) {
      Join(clocks_[context.warp->index], it->second);
    }
  }
}

void RaceDetector::ReleaseTo(const Context& context, const std::uint32_t* offsets, LaneMask on) {
  Clock& mine = clocks_[context.warp->index];
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    Join(words_[offsets[std::countr_zero(rest)] / 4], mine);
  }
  ++mine[context.warp->index];
}

void RaceDetector::Report(Context& context, const Decoded& d, int lane, std::uint32_t offset,
                          bool store, const char* earlier, std::uint32_t instruction,
                          std::uint32_t other) {
  Fault fault;
  fault.kind = FaultKind::kRace;
  fault.fatal = false;
  fault.address = offset;
  const std::vector<ptx::Instruction>& body = context.code->function->body;
  const std::string where = instruction < body.size()
                                ? At(context.machine->program->module(), body[instruction].where)
                                : std::string();
  fault.message =
      fmt::format("{} offset {} of shared memory, which warp {} {}{} with no barrier in between",
                  store ? "wrote" : "read", offset, other, earlier, where);
  context.machine->Report(context, d, lane, std::move(fault));
}

void RaceDetector::ReportCopy(Context& context, const Decoded& d, int lane, std::uint32_t offset,
                              bool store, const Cell& cell) {
  Fault fault;
  fault.kind = FaultKind::kRace;
  fault.fatal = false;
  fault.address = offset;
  const std::vector<ptx::Instruction>& body = context.code->function->body;
  const std::string where =
      cell.write_instruction < body.size()
          ? At(context.machine->program->module(), body[cell.write_instruction].where)
          : std::string();
  fault.message = fmt::format(
      "{} offset {} of shared memory while the asynchronous copy to it by warp {}{} was in flight: "
      "the copying thread had not waited for its group",
      store ? "wrote" : "read", offset, cell.write_warp, where);
  context.machine->Report(context, d, lane, std::move(fault));
}

void RaceDetector::ReportUninitialised(Context& context, const Decoded& d, int lane,
                                       std::uint32_t offset) {
  Fault fault;
  fault.kind = FaultKind::kUninitialized;
  fault.fatal = false;
  fault.address = offset;
  fault.message = fmt::format("read offset {} of shared memory, which nobody has written", offset);
  context.machine->Report(context, d, lane, std::move(fault));
}

}  // namespace kernelpro::simt
