// SPDX-License-Identifier: Apache-2.0
// How fast a 100 MB `ncu --csv` file becomes a Profile, one thread, file in the page cache. The
// target is 200 MB/s. Three forms, made here after what Nsight Compute prints: --metrics over many
// launches (long), --page raw (wide, 475 columns), --page details with rules.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "profile/ncu_csv.h"

namespace {

constexpr std::size_t kBytes = 100'000'000;
constexpr std::string_view kLaunchColumns =
    R"("ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC")";

/// Seven kernels in turn, as the layers of a model would come.
std::string LaunchCells(std::uint64_t id) {
  return fmt::format(
      R"csv("{}","4127","trainer","127.0.0.1","void model::layer_forward<float, (int){}>(const float *, float *, int)","1","7","({}, 1, 1)","({}, 4, 1)","0","9.0")csv",
      id, id % 7, 128 << (id % 3), 132 * (1 + id % 7));
}

/// A count with thousands separators, as the "C" locale of ncu prints it.
std::string Grouped(std::uint64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string CellOf(std::uint64_t i, std::uint64_t id) {
  const std::uint64_t random = (i * 2654435761U + id * 40503U) * 0x9e3779b97f4a7c15U >> 24U;
  switch (i % 4) {
    case 0:
      return fmt::format("{}.{:02}", random % 100, random / 100 % 100);
    case 1:
      return Grouped(random % 2'000'000'000);
    case 2:
      return Grouped(random % 100'000);
    default:
      return "0";
  }
}

std::string LongForm() {
  std::vector<std::pair<std::string, std::string>> metrics = {{"gpu__time_duration.sum", "ns"}};
  for (int i = 0; i < 8; ++i) {
    metrics.emplace_back(fmt::format("l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum", i),
                         "sector");
    metrics.emplace_back(fmt::format("lts__t_sectors_op_{}.sum", i), "sector");
    metrics.emplace_back(
        fmt::format("smsp__warp_issue_stalled_{}.avg.pct_of_peak_sustained_active", i), "%");
  }
  std::string text = "==PROF== Connected to process 4127\n";
  text += fmt::format("{},\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n",
                      kLaunchColumns);
  for (std::uint64_t id = 0; text.size() < kBytes; ++id) {
    const std::string cells = LaunchCells(id);
    for (std::size_t i = 0; i < metrics.size(); ++i) {
      text += fmt::format("{},\"Command line profiler metrics\",\"{}\",\"{}\",\"{}\"\n", cells,
                          metrics[i].first, metrics[i].second, CellOf(i, id));
    }
  }
  return text;
}

std::string WideForm() {
  constexpr std::array<std::string_view, 4> kUnits = {"%", "byte", "inst", ""};
  std::string text(kLaunchColumns);
  std::string units = R"("","","","","","","","","","","")";
  constexpr int kMetrics = 464;
  for (int i = 0; i < kMetrics; ++i) {
    text += i < 160 ? fmt::format(",\"device__attribute_number_{:03}\"", i)
                    : fmt::format(",\"sm__inst_executed_pipe_{:03}.avg.pct_of_peak_sustained\"", i);
    units += fmt::format(",\"{}\"", i < 160 ? "" : kUnits[static_cast<std::size_t>(i % 4)]);
  }
  text += "\n" + units + "\n";
  for (std::uint64_t id = 0; text.size() < kBytes; ++id) {
    text += LaunchCells(id);
    for (std::uint64_t i = 0; i < kMetrics; ++i) {
      text +=
          i < 160 ? fmt::format(",\"{}\"", i * i % 65536) : fmt::format(",\"{}\"", CellOf(i, id));
    }
    text += "\n";
  }
  return text;
}

std::string DetailsForm() {
  constexpr std::array<std::string_view, 4> kUnits = {"%", "Gbyte/s", "inst", "cycle"};
  std::string text = fmt::format(
      "{},\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\",\"Rule Name\",\"Rule "
      "Type\",\"Rule Description\",\"Estimated Speedup Type\",\"Estimated Speedup\"\n",
      kLaunchColumns);
  for (std::uint64_t id = 0; text.size() < kBytes; ++id) {
    const std::string cells = LaunchCells(id);
    for (std::uint64_t i = 0; i < 80; ++i) {
      text += fmt::format("{},\"Section Number {}\",\"Some Display Name {}\",\"{}\",\"{}\",\n",
                          cells, i / 9, i, kUnits[i % 4], CellOf(i, id));
      if (i % 8 == 7) {
        text += fmt::format(
            "{},\"SectionNumber{}\",\"\",\"\",\"\",\"SomeRule\",\"OPT\",\"Memory is used more "
            "than compute: look at the \"\"Memory Workload Analysis\"\" section, {} "
            "{}\",\"global\","
            "\"12.5\"\n",
            cells, i / 9, std::string(id % 300, 'x'), i);
      }
    }
  }
  return text;
}

void FromFile(benchmark::State& state, std::string (*make)()) {
  const auto folder = kernelpro::TemporaryFolder::Create("ncu-csv");
  const std::string text = make();
  const auto path = folder.value().path() / "big.csv";
  if (!kernelpro::WriteFileAtomically(path, text)) {
    state.SkipWithError("cannot write the file");
    return;
  }
  std::size_t metrics = 0;
  for (auto _ : state) {
    kernelpro::Result<kernelpro::Profile> profile = kernelpro::ReadNcuCsv(path);
    if (!profile) {
      state.SkipWithError(profile.error().message.c_str());
      return;
    }
    state.PauseTiming();  // what the reader's caller does with it is not reading
    for (const kernelpro::KernelProfile& kernel : profile->kernels) {
      metrics += kernel.metrics.size();
    }
    {
      const kernelpro::Profile gone = std::move(profile).value();
    }
    state.ResumeTiming();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
  state.counters["metrics"] =
      benchmark::Counter(static_cast<double>(metrics), benchmark::Counter::kAvgIterations);
}

BENCHMARK_CAPTURE(FromFile, long_form, LongForm)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(FromFile, details_form, DetailsForm)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(FromFile, wide_form, WideForm)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
