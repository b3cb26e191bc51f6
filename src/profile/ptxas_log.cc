// SPDX-License-Identifier: Apache-2.0
#include "profile/ptxas_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "kernelpro/profile.h"
#include "profile/demangle.h"
#include "profile/file_kind.h"
#include "profile/resource_use.h"
#include "profile/text_file.h"
#include "toolchain/ptxas_figures.h"
#include "toolchain/ptxas_messages.h"

namespace kernelpro {
namespace {

/// Of one kernel; more say the same.
constexpr std::size_t kMostNotes = 100;
/// A function is built for at most this many architectures.
constexpr std::size_t kMostVariants = 16;
constexpr std::size_t kMostNamed = 5;

constexpr std::string_view kEntry = "Compiling entry function '";

struct Entry {
  std::string name, architecture;
  std::size_t begin = 0;  ///< offset of its line in the log
};

/// "Compiling entry function '_Z1kPf' for 'sm_90a'"
std::optional<Entry> ParseEntry(std::string_view line) {
  constexpr std::string_view kFor = "' for '";
  const std::size_t at = line.find(kEntry);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  line.remove_prefix(at + kEntry.size());
  const std::size_t end = line.find('\'');
  if (end == std::string_view::npos || end == 0) {
    return std::nullopt;
  }
  Entry entry;
  entry.name = line.substr(0, end);
  if (line.substr(end).starts_with(kFor)) {
    const std::string_view architecture = line.substr(end + kFor.size());
    entry.architecture = Printable(architecture.substr(0, architecture.find('\'')), 20);
  }
  return entry;
}

/// "8 bytes spill stores" -> 8
std::optional<double> NumberBefore(std::string_view text, std::string_view what) {
  text = text.substr(0, std::min(text.find(what), text.size()));
  long long number = 0;
  if (!ParseInteger(text.substr(text.rfind(' ') + 1), &number) || number < 0) {
    return std::nullopt;
  }
  return static_cast<double>(number);
}

class LogReader {
 public:
  explicit LogReader(std::string_view log) : log_(log) {}

  Profile Read() {
    ReadEntries();
    for (const ResourceUse& use : ParseResourceUse(log_)) {
      AddUse(use);
    }
    AddMessages();
    AddDeviceFunctions();
    Summarise();
    return std::move(profile_);
  }

 private:
  KernelProfile& Kernel(std::string_view name, std::string_view architecture) {
    const auto [found, is_new] = kernels_.try_emplace(
        std::pair(std::string(name), std::string(architecture)), profile_.kernels.size());
    if (is_new) {
      KernelProfile kernel;
      kernel.mangled = Printable(name, 2000);
      kernel.name = KernelName(name);
      kernel.time_provenance = Provenance::kMeasured;
      kernel.time_share = 0;
      if (!architecture.empty()) {
        kernel.texts["build.arch"] = architecture;
      }
      std::vector<std::size_t>& variants = variants_[std::string(name)];
      if (variants.size() < kMostVariants) {
        variants.push_back(profile_.kernels.size());
      }
      profile_.kernels.push_back(std::move(kernel));
    }
    return profile_.kernels[found->second];
  }

  static void Set(KernelProfile& kernel, std::string_view name, double value,
                  std::string_view unit) {
    kernel.metrics[fmt::format("ptxas.{}", name)] = {value, std::string(unit),
                                                     Provenance::kCounted};
  }

  /// Each entry's part of the log runs to the next entry's line: what belongs to it stands there.
  void ReadEntries() {
    std::vector<Entry> entries;
    for (const std::string_view line : Lines(log_)) {
      if (auto entry = ParseEntry(line)) {
        entry->begin = static_cast<std::size_t>(line.data() - log_.data());
        entries.push_back(*std::move(entry));
      }
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::size_t end = i + 1 < entries.size() ? entries[i + 1].begin : log_.size();
      const std::string_view part = log_.substr(entries[i].begin, end - entries[i].begin);
      const auto figures = ParsePtxasFigures(part);
      KernelProfile& kernel = Kernel(entries[i].name, entries[i].architecture);
      if (const auto found = figures.find(entries[i].name); found != figures.end()) {
        AddFigures(found->second, kernel);
      }
    }
    has_entries_ = !entries.empty();
  }

  /// ptxas always prints the registers: none means that -v's lines are not there.
  static void AddFigures(const KernelFigures& figures, KernelProfile& kernel) {
    if (figures.registers == 0) {
      kernel.missing = {"ptxas.registers", "ptxas.spill_store_bytes", "ptxas.spill_load_bytes"};
      return;
    }
    Set(kernel, "registers", figures.registers, "register/thread");
    Set(kernel, "shared_bytes", static_cast<double>(figures.shared_bytes), "byte");
    Set(kernel, "stack_bytes", static_cast<double>(figures.stack_bytes), "byte");
    Set(kernel, "local_bytes_per_thread", static_cast<double>(figures.stack_bytes), "byte");
    Set(kernel, "barriers", figures.barriers, "");
    Set(kernel, "spill_store_bytes", static_cast<double>(figures.spill_store_bytes), "byte");
    Set(kernel, "spill_load_bytes", static_cast<double>(figures.spill_load_bytes), "byte");
  }

  void AddUse(const ResourceUse& use) {
    KernelProfile& kernel = Kernel(use.function, use.architecture);
    const auto set = [&kernel](std::string_view name, std::optional<std::uint64_t> value,
                               std::string_view unit) {
      if (value) {
        Set(kernel, name, static_cast<double>(*value), unit);
      }
    };
    set("registers", use.registers, "register/thread");
    set("stack_bytes", use.stack_bytes, "byte");
    set("shared_bytes", use.shared_bytes, "byte");
    if (use.stack_bytes || use.local_bytes) {
      set("local_bytes_per_thread", use.stack_bytes.value_or(0) + use.local_bytes.value_or(0),
          "byte");
    }
    has_uses_ = true;
  }

  void AddMessages() {
    std::vector<PtxasMessage> loose;
    for (PtxasMessage& message : ParsePtxasMessages(log_)) {
      if (!message.function.empty() && !has_entries_ && !has_uses_) {
        Kernel(message.function, "");
      }
      auto found = variants_.find(message.function);
      if (found == variants_.end()) {
        loose.push_back(std::move(message));
        continue;
      }
      for (const std::size_t i : found->second) {
        AddNote(message.note, profile_.kernels[i]);
      }
    }
    for (PtxasMessage& message : loose) {
      // With one kernel in the log, what names no function is about it or what it calls.
      if (profile_.kernels.size() == 1) {
        AddNote(message.note, profile_.kernels[0]);
      } else {
        loose_[message.note.kind].push_back(std::move(message));
      }
    }
    TellLoose();
  }

  static void AddNote(const CompilerNote& note, KernelProfile& kernel) {
    for (const auto& [kind, metric] : {std::pair{"wgmma_serialized", "wgmma_serialized"},
                                       {"setmaxnreg_ignored", "setmaxnreg_ignored"},
                                       {"double_precision", "double_precision_warnings"}}) {
      if (note.kind == kind) {
        Set(kernel, metric, kernel.Value(fmt::format("ptxas.{}", metric)).value_or(0) + 1, "");
      }
    }
    for (const auto& [what, metric] : {std::pair{" bytes spill stores", "spill_store_bytes"},
                                       {" bytes spill loads", "spill_load_bytes"}}) {
      const auto bytes = note.kind == "spill" ? NumberBefore(note.text, what) : std::nullopt;
      if (bytes && !kernel.Value(fmt::format("ptxas.{}", metric))) {
        Set(kernel, metric, *bytes, "byte");
      }
    }
    if (kernel.notes.size() < kMostNotes) {
      kernel.notes.push_back(note);
    }
  }

  void TellLoose() {
    for (const auto& [kind, messages] : loose_) {
      std::set<std::string> functions;
      for (const PtxasMessage& message : messages) {
        functions.insert(message.function.empty() ? "" : KernelName(message.function));
      }
      functions.erase("");
      std::string names;
      for (const std::string& name : functions) {
        names += (names.empty() ? " (in " : ", ") + name;
        if (names.size() > 300) {
          names += ", ...";
          break;
        }
      }
      const CompilerNote& first = messages.front().note;
      if (kind == "setmaxnreg_ignored") {
        profile_.system["ptxas.setmaxnreg_ignored"] = {static_cast<double>(messages.size()), "",
                                                       Provenance::kCounted};
      }
      profile_.notes.push_back(
          fmt::format("ptxas said {} time(s), without naming one of the {} kernels{}: \"{}{}\".",
                      messages.size(), profile_.kernels.size(), names.empty() ? "" : names + ")",
                      first.code.empty() ? "" : "(" + first.code + ") ", first.text));
    }
  }

  /// "Function properties for dev" with spills, where `dev` is no entry.
  void AddDeviceFunctions() {
    constexpr std::string_view kProperties = "Function properties for ";
    std::string function;
    std::set<std::string> spilling;
    for (const std::string_view line : Lines(log_)) {
      if (const std::size_t at = line.find(kProperties); at != std::string_view::npos) {
        function = Trim(line.substr(at + kProperties.size()));
      } else if (!function.empty() && line.find(" bytes spill stores") != std::string_view::npos) {
        if (!variants_.contains(function) &&
            line.find(" 0 bytes spill stores, 0 bytes spill loads") == std::string_view::npos) {
          spilling.insert(Printable(function, 200));
        }
        function.clear();
      }
    }
    if (spilling.empty()) {
      return;
    }
    std::string names;
    std::size_t named = 0;
    for (const std::string& name : spilling) {
      if (named++ == kMostNamed) {
        names += ", ...";
        break;
      }
      names += (names.empty() ? "" : ", ") + KernelName(name);
    }
    profile_.notes.push_back(
        fmt::format("{} device function(s) that were not inlined spill registers: {}. The log does "
                    "not tell which kernels call them.",
                    spilling.size(), names));
  }

  void Summarise() {
    std::set<std::string> architectures;
    for (const KernelProfile& kernel : profile_.kernels) {
      const auto found = kernel.texts.find("build.arch");
      architectures.insert(found == kernel.texts.end() ? "" : found->second);
    }
    if (architectures.size() != 1 || !architectures.begin()->starts_with("sm_")) {
      return;
    }
    std::string_view number = std::string_view(*architectures.begin()).substr(3);
    const bool accelerated = number.ends_with('a');
    number.remove_suffix(number.ends_with('a') || number.ends_with('f') ? 1 : 0);
    long long value = 0;
    if (ParseInteger(number, &value)) {
      profile_.system["build.arch"] = {static_cast<double>(value), "", Provenance::kCounted};
      profile_.system["build.accelerated"] = {accelerated ? 1.0 : 0.0, "", Provenance::kCounted};
    }
  }

  std::string_view log_;
  bool has_entries_ = false, has_uses_ = false;
  std::map<std::pair<std::string, std::string>, std::size_t> kernels_;
  std::map<std::string, std::vector<std::size_t>> variants_;  ///< by mangled name
  std::map<std::string, std::vector<PtxasMessage>> loose_;    ///< by kind
  Profile profile_;
};

}  // namespace

Result<Profile> ParsePtxasLog(std::string_view text, std::string label) {
  Profile profile = LogReader(text).Read();
  if (profile.kernels.empty()) {
    const FileKind kind = SniffFile(text, label);
    return Fail(ErrorCode::kNotFound,
                fmt::format("{}: this is {}; no kernel of ptxas in it. Build with  nvcc -Xptxas "
                            "-v,--warn-on-spills,--warn-on-local-memory-usage,"
                            "--warn-on-double-precision-use  and keep what it prints",
                            label, Describe(kind)));
  }
  profile.source = std::move(label);
  return profile;
}

Result<Profile> ReadPtxasLog(const std::filesystem::path& path) {
  KP_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  return ParsePtxasLog(text, path.string());
}

}  // namespace kernelpro
