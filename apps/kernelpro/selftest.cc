// SPDX-License-Identifier: Apache-2.0
// selftest: the exploits of tests/exploits against this build, on this machine.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "commands.h"
#include "search/record.h"
#include "selftest/fixture.h"
#include "selftest/suite.h"
#include "selftest/tally.h"
#include "setup.h"

namespace kernelpro::app {
namespace {

using selftest::Fixture;
using selftest::FixtureResult;

struct Outcome {
  std::string device;
  std::vector<FixtureResult> results;
};

Result<std::vector<Fixture>> Selected(const SelftestOptions& options,
                                      const std::filesystem::path& suite) {
  KP_ASSIGN_OR_RETURN(const std::vector<Fixture> all, selftest::LoadFixtures(suite));
  std::vector<Fixture> selected = selftest::Select(all, options.only, options.quick);
  if (selected.empty()) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("none of the {} fixtures in {} is selected", all.size(), suite.string()));
  }
  return selected;
}

/// Rows as they come; on a terminal also which fixture is next.
class Display {
 public:
  Display(const std::vector<Fixture>& fixtures, bool json)
      : total_(fixtures.size()), json_(json), terminal_(::isatty(STDERR_FILENO) != 0) {
    for (const Fixture& fixture : fixtures) {
      width_ = std::max(width_, fixture.name.size());
    }
    if (!json_) {
      fmt::print("{}", selftest::TableHead(width_));
    }
    Progress(0);
  }

  void Show(const FixtureResult& result, std::size_t done) const {
    Clear();
    if (!json_) {
      fmt::print("{}", selftest::TableRow(result, width_));
      std::fflush(stdout);
    }
    Progress(done);
  }

 private:
  void Clear() const {
    if (terminal_) {
      fmt::print(stderr, "\r\x1b[K");
    }
  }

  void Progress(std::size_t done) const {
    if (terminal_ && done < total_) {
      fmt::print(stderr, "{}/{} fixtures", done, total_);
    }
  }

  std::size_t width_ = 7;  ///< of "fixture"
  std::size_t total_;
  bool json_, terminal_;
};

Result<Outcome> Run(const SelftestOptions& options, const std::stop_token& stop) {
  selftest::SuiteOptions suite;
  KP_ASSIGN_OR_RETURN(suite.suite, selftest::FindSuite(options.fixtures));
  KP_ASSIGN_OR_RETURN(const std::vector<Fixture> fixtures, Selected(options, suite.suite));
  KP_ASSIGN_OR_RETURN(const std::unique_ptr<Toolchain> toolchain, FindToolchain());
  KP_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, OpenDevice(options.device));
  suite.cache_folder = CacheFolder();
  if (!device->info().emulated) {
    // A GPU is quick, so a hang need not take long; but filling 4 GiB of host memory may take 5 s.
    suite.call_limit = std::chrono::seconds(8);
  }
  suite.jobs = options.jobs != 0 ? options.jobs : std::max(1U, std::thread::hardware_concurrency());
  const Display display(fixtures, options.json);
  Outcome outcome;
  outcome.device = device->info().id;
  KP_ASSIGN_OR_RETURN(
      outcome.results,
      selftest::RunSuite(
          fixtures, *device, *toolchain, suite,
          [&display](const FixtureResult& result, std::size_t done) { display.Show(result, done); },
          stop));
  return outcome;
}

}  // namespace

int Selftest(const SelftestOptions& options) {
  const Interrupt interrupt;
  const Result<Outcome> outcome = Run(options, interrupt.token());
  if (!outcome) {
    return Complain(outcome.error(), options.json);
  }
  const selftest::Tally tally = selftest::Count(outcome->results);
  if (options.json) {
    fmt::print("{}\n", search::Dump(selftest::ResultsJson(outcome->device, outcome->results)));
  } else {
    fmt::print("{}\n", selftest::Summary(tally));
  }
  return tally.AllRight() ? 0 : 1;
}

}  // namespace kernelpro::app
