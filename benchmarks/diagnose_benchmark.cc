// SPDX-License-Identifier: Apache-2.0
// What one diagnosis costs: classes, every tool, suppression, ranking and the text, on the stored
// profiles of real kernels.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "../tests/experts/cases.h"
#include "diagnose/diagnose.h"

namespace kernelpro::experts {
namespace {

std::vector<Profile> Stored() {
  std::vector<Profile> profiles;
  Profiles stored(std::string(KP_SOURCE_DIR) + "/tests/data/experts");
  const auto pairs = ReadPairs(std::string(KP_SOURCE_DIR) + "/tests/gpu/experts/pairs.toml");
  for (const PairCase& pair : pairs ? *pairs : std::vector<PairCase>()) {
    if (auto profile = stored.Kernel(pair.program, pair.name + "__bad")) {
      profiles.push_back(*std::move(profile));
    }
  }
  return profiles;
}

void BM_Diagnosis(benchmark::State& state) {
  const std::vector<Profile> profiles = Stored();
  const Hardware hardware = H200();
  std::size_t i = 0;
  for (auto _ : state) {
    const Profile& profile = profiles[i++ % profiles.size()];
    const Diagnosis diagnosis = Diagnose(profile, hardware);
    benchmark::DoNotOptimize(FeedbackText(diagnosis, profile));
  }
}

BENCHMARK(BM_Diagnosis)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kernelpro::experts

BENCHMARK_MAIN();
