// SPDX-License-Identifier: Apache-2.0
#include "toolchain/disassemble.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "process/process.h"

namespace kernelpro {

namespace fs = std::filesystem;

fs::path FindDisassembler(const fs::path& toolkit) {
  for (const char* name : {"cuobjdump", "nvdisasm"}) {
    std::error_code error;
    if (const fs::path tool = toolkit / "bin" / name; fs::is_regular_file(tool, error)) {
      return tool;
    }
    if (fs::path tool = FindOnPath(name); !tool.empty()) {
      return tool;
    }
  }
  return {};
}

Result<std::string> Disassemble(const fs::path& cubin, const fs::path& disassembler,
                                const std::stop_token& stop) {
  ProcessSpec spec;
  spec.argv = {disassembler.string()};
  if (disassembler.filename() == "cuobjdump") {
    spec.argv.emplace_back("-sass");
  }
  spec.argv.push_back(cubin.string());
  spec.limits.wall = std::chrono::seconds(30);
  spec.limits.address_space_bytes = 4ULL << 30U;
  spec.limits.output_bytes = 64ULL << 20U;
  KP_ASSIGN_OR_RETURN(ProcessResult ran, RunProcess(spec, stop));
  if (!ran.Succeeded() || ran.output_cut) {
    return Fail(
        ran.end == ProcessResult::End::kCancelled ? ErrorCode::kCancelled : ErrorCode::kToolFailed,
        fmt::format("{} {}", disassembler.filename().string(),
                    ran.output_cut ? "prints more than 64 MiB"
                                   : "failed: " + Printable(Trim(ran.err), 500)));
  }
  return std::move(ran.out);
}

}  // namespace kernelpro
