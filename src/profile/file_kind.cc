// SPDX-License-Identifier: Apache-2.0
#include "profile/file_kind.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "base/text.h"
#include "profile/ncu_text.h"

namespace kernelpro {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

struct Sign {
  FileKind kind;
  std::string_view text;
  bool at_start;  ///< of the line, else anywhere in it
};

/// Words that one tool writes and others do not.
constexpr Sign kSigns[] = {
    {FileKind::kNcuCsv, "\"ID\",", true},
    {FileKind::kNcuLog, "==PROF== ", true},
    {FileKind::kNcuLog, "==ERROR== ", true},
    {FileKind::kNsysStats, "' stats report", false},
    {FileKind::kNsysStats, "Total Time (ns)", false},
    {FileKind::kNsysStats, "Start (ns)", false},
    {FileKind::kNsysStats, "CUDA Kernel Statistics", false},
    {FileKind::kSanitizerLog, "========= COMPUTE-SANITIZER", true},
    {FileKind::kSanitizerLog, "========= CUDA-MEMCHECK", true},
    {FileKind::kSanitizerLog, "========= ERROR SUMMARY:", true},
    {FileKind::kSanitizerLog, "========= RACECHECK SUMMARY:", true},
    {FileKind::kPtxasLog, "ptxas info ", false},
    {FileKind::kPtxasLog, "ptxas warning ", false},
    {FileKind::kPtxasLog, "Potential Performance Loss: ", false},
    {FileKind::kResourceUse, "Resource usage:", true},
    {FileKind::kDisassembly, "code for sm_", false},
    {FileKind::kDisassembly, "\t.headerflags", false},
};

/// Those that may stand in a log beside another one's words come last.
constexpr FileKind kPrecedence[] = {
    FileKind::kNcuCsv,       FileKind::kNcuText,     FileKind::kNcuLog,      FileKind::kNsysStats,
    FileKind::kSanitizerLog, FileKind::kResourceUse, FileKind::kDisassembly, FileKind::kPtxasLog,
};

FileKind SniffText(std::string_view text) {
  bool seen[static_cast<std::size_t>(FileKind::kText) + 1] = {};
  const auto mark = [&seen](FileKind kind) { seen[static_cast<std::size_t>(kind)] = true; };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with(kByteOrderMark)) {
      line.remove_prefix(kByteOrderMark.size());
    }
    for (const Sign& sign : kSigns) {
      if (sign.at_start ? line.starts_with(sign.text)
                        : line.find(sign.text) != std::string_view::npos) {
        if (sign.kind == kPrecedence[0]) {
          return sign.kind;
        }
        mark(sign.kind);
      }
    }
    if (IsLaunchHeading(line)) {
      mark(FileKind::kNcuText);
    }
  }
  for (const FileKind kind : kPrecedence) {
    if (seen[static_cast<std::size_t>(kind)]) {
      return kind;
    }
  }
  return FileKind::kText;
}

}  // namespace

FileKind SniffFile(std::string_view bytes, std::string_view file_name) {
  using namespace std::string_view_literals;
  if (file_name.ends_with(".ncu-rep") || file_name.ends_with(".ncu-repz") ||
      bytes.starts_with("NVR\0"sv)) {
    return FileKind::kNcuReport;
  }
  if (bytes.starts_with("SQLite format 3\0"sv)) {
    return FileKind::kSqlite;
  }
  if (file_name.ends_with(".nsys-rep") || file_name.ends_with(".qdrep")) {
    return FileKind::kNsysReport;
  }
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF")) {
    return FileKind::kWideText;
  }
  if (Trim(bytes).empty()) {
    return FileKind::kEmpty;
  }
  if (bytes.substr(0, 4096).find('\0') != std::string_view::npos) {
    return FileKind::kBinary;
  }
  return SniffText(bytes);
}

std::string_view Describe(FileKind kind) {
  switch (kind) {
    case FileKind::kEmpty:
      return "an empty file";
    case FileKind::kNcuReport:
      return "a report file of Nsight Compute";
    case FileKind::kNcuCsv:
      return "the CSV output of Nsight Compute";
    case FileKind::kNcuText:
      return "the text output of Nsight Compute";
    case FileKind::kNcuLog:
      return "a log of Nsight Compute without a profile";
    case FileKind::kNsysReport:
      return "a report file of Nsight Systems";
    case FileKind::kNsysStats:
      return "the statistics that nsys stats prints";
    case FileKind::kSqlite:
      return "an SQLite database, such as nsys exports";
    case FileKind::kPtxasLog:
      return "a build log with messages of ptxas";
    case FileKind::kResourceUse:
      return "the output of cuobjdump -res-usage";
    case FileKind::kDisassembly:
      return "a disassembly (SASS)";
    case FileKind::kSanitizerLog:
      return "a compute-sanitizer log";
    case FileKind::kBinary:
      return "a binary file of unknown kind";
    case FileKind::kWideText:
      return "text in UTF-16";
    case FileKind::kText:
      return "text that none of NVIDIA's tools is known to write";
  }
  return "unknown";
}

}  // namespace kernelpro
