// SPDX-License-Identifier: Apache-2.0
// h200_model_report <source folder> <date>: writes docs/measurements/h200_model.md.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "compile_suite.h"
#include "emulator/model/model.h"
#include "measurements.h"
#include "report.h"
#include "suite.h"

namespace kernelpro::golden {
namespace {

Status WriteReport(const std::filesystem::path& root, const std::string& date) {
  const std::filesystem::path data = root / "tests/data/h200";
  KP_ASSIGN_OR_RETURN(const std::vector<Variant> variants, ReadMeasurements(data));
  KP_ASSIGN_OR_RETURN(const CompiledSuite suite, CompileSuite(data / "suite.cu"));
  KP_ASSIGN_OR_RETURN(const model::GpuSpec spec, model::LoadSpec("h200"));
  KP_ASSIGN_OR_RETURN(const std::vector<Row> rows, RunSuite(suite, variants, spec));
  return WriteFileAtomically(root / "docs/measurements/h200_model.md",
                             MarkdownReport(rows, spec, date));
}

}  // namespace
}  // namespace kernelpro::golden

int main(int argc, char** argv) {
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  if (arguments.size() != 3) {
    fmt::print(stderr, "usage: h200_model_report <source folder> <date of this run>\n");
    return 2;
  }
  const kernelpro::Status status = kernelpro::golden::WriteReport(arguments[1], arguments[2]);
  if (!status) {
    fmt::print(stderr, "{}\n", status.error().message);
    return 1;
  }
  return 0;
}
