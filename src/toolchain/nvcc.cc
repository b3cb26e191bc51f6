// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "process/process.h"
#include "toolchain/build_cache.h"
#include "toolchain/compile_run.h"
#include "toolchain/compile_sandbox.h"
#include "toolchain/flags.h"
#include "toolchain/includes.h"
#include "toolchain/ptxas_figures.h"
#include "toolchain/toolchain.h"

namespace kernelpro {
namespace {

namespace fs = std::filesystem;
using Kind = CompileFailure::Kind;

/// Part of every key: raise it when the command line or the entry changes.
constexpr std::string_view kFormat = "nvcc-build-1";
constexpr std::size_t kMaxSource = 8U << 20U;
constexpr std::uint64_t kMaxPreprocessed = 512ULL << 20U;
constexpr std::chrono::milliseconds kProbeLimit{20'000};

bool IsPlainName(std::string_view name) {
  return !name.empty() && name.size() <= 100 && name[0] != '.' && name[0] != '-' &&
         std::ranges::all_of(name, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '_' || c == '-' || c == '.';
         });
}

/// sm_90, sm_90a, sm_100f.
bool IsArch(std::string_view arch) {
  if (!arch.starts_with("sm_")) {
    return false;
  }
  arch.remove_prefix(3);
  if (arch.ends_with('a') || arch.ends_with('f')) {
    arch.remove_suffix(1);
  }
  return arch.size() >= 2 && arch.size() <= 3 &&
         std::ranges::all_of(arch, [](char c) { return c >= '0' && c <= '9'; });
}

Status CheckRequest(const BuildRequest& request) {
  if (!IsArch(request.arch)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\" is not an architecture such as sm_90 or sm_90a",
                            Printable(request.arch, 40)));
  }
  if (!IsPlainName(request.file_name) || !request.file_name.ends_with(".cu")) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is not the name of a .cu file",
                                                         Printable(request.file_name, 100)));
  }
  for (const auto& [name, text] : request.headers) {
    const std::string extension = fs::path(name).extension().string();
    if (!IsPlainName(name) || (extension != ".h" && extension != ".cuh" && extension != ".hpp")) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("\"{}\" is not the name of a .h, .cuh or .hpp file", Printable(name, 100)));
    }
  }
  return Ok();
}

/// Runs a tool for what it prints about itself.
Result<std::string> Probe(const std::vector<std::string>& argv) {
  ProcessSpec spec;
  spec.argv = argv;
  spec.limits.wall = kProbeLimit;
  KP_ASSIGN_OR_RETURN(const ProcessResult result, RunProcess(spec));
  if (!result.Succeeded()) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("{} {}: {}", fmt::join(argv, " "), DescribeEnd(result, spec.limits),
                            Printable(result.err, 300)));
  }
  return result.out + result.err;
}

/// "... release 13.0, V13.0.88" -> "13.0.88".
std::string VersionIn(std::string_view text) {
  const std::size_t at = text.find(", V");
  if (at == std::string_view::npos) {
    return {};
  }
  const std::string_view rest = text.substr(at + 3);
  return std::string(rest.substr(0, rest.find_first_not_of("0123456789.")));
}

Result<fs::path> FindNvcc() {
  const char* home = std::getenv("CUDA_HOME");  // NOLINT(concurrency-mt-unsafe): never set by us
  const fs::path in_home = home == nullptr ? fs::path() : fs::path(home) / "bin" / "nvcc";
  std::error_code ignored;
  for (const fs::path& path : {FindOnPath("nvcc"), in_home, fs::path("/usr/local/cuda/bin/nvcc")}) {
    if (!path.empty() && fs::is_regular_file(path, ignored)) {
      return path;
    }
  }
  return Fail(ErrorCode::kUnavailable,
              fmt::format("nvcc was not found: not on $PATH, not in {}, not in "
                          "/usr/local/cuda/bin; install the CUDA toolkit or set $CUDA_HOME",
                          in_home.empty() ? "$CUDA_HOME (not set)" : in_home.string()));
}

class Nvcc final : public Toolchain {
 public:
  Nvcc(fs::path nvcc, fs::path toolkit, std::string version, std::string host,
       std::vector<fs::path> roots, std::vector<fs::path> readable, BuildCache cache,
       ToolchainLimits limits)
      : nvcc_(std::move(nvcc)),
        toolkit_(std::move(toolkit)),
        version_(std::move(version)),
        host_(std::move(host)),
        roots_(std::move(roots)),
        readable_(std::move(readable)),
        cache_(std::move(cache)),
        limits_(limits) {}

  [[nodiscard]] std::string version() const override { return "nvcc " + version_; }

  [[nodiscard]] fs::path nvcc() const override { return nvcc_; }

  [[nodiscard]] fs::path toolkit() const override { return toolkit_; }

  [[nodiscard]] std::vector<fs::path> cpp_include_folders() const override {
    std::vector<fs::path> folders;
    std::ranges::copy_if(roots_, std::back_inserter(folders), [](const fs::path& root) {
      return root.string().find("/c++/") != std::string::npos;
    });
    return folders;
  }

  Result<BuildOutcome> Compile(const BuildRequest& request, const std::stop_token& stop) override {
    KP_RETURN_IF_ERROR(CheckRequest(request));
    BuildOutcome outcome;
    if (std::string why = WhyForbidden(request.flags, request.libraries); !why.empty()) {
      outcome.failure = OurFailure(Kind::kForbiddenFlag, std::move(why));
      return outcome;
    }
    if (request.source.size() > kMaxSource) {
      outcome.failure = OurFailure(
          Kind::kErrors, fmt::format("the source is larger than {} MiB", kMaxSource >> 20U));
      return outcome;
    }
    const std::string key = Key(request);
    outcome.build = cache_.Find(key);
    if (outcome.build) {
      return outcome;
    }
    KP_ASSIGN_OR_RETURN(const KeyLock lock, cache_.Lock(key, stop));
    outcome.build = cache_.Find(key);
    if (outcome.build) {
      return outcome;
    }
    return CompileNew(request, key, stop);
  }

 private:
  [[nodiscard]] std::string Key(const BuildRequest& request) const {
    const std::string compiler = nvcc_.string();
    std::vector<std::string_view> parts = {kFormat,        compiler,          version_,    host_,
                                           request.source, request.file_name, request.arch};
    for (const auto& [name, text] : request.headers) {
      parts.insert(parts.end(), {"header", name, text});
    }
    for (const std::string& flag : request.flags) {
      parts.insert(parts.end(), {"flag", flag});
    }
    return ContentHash(parts);
  }

  [[nodiscard]] std::vector<std::string> CommandLine(const BuildRequest& request,
                                                     const std::string& library) const {
    const std::string number = request.arch.substr(3);
    std::vector<std::string> argv = {
        nvcc_.string(), "-shared", "-cudart", "shared", "-no-compress", "-lineinfo", "-Xptxas",
        "-v", "-gencode", fmt::format("arch=compute_{0},code=[compute_{0},sm_{0}]", number),
        "--keep", "--keep-dir", "keep",
        // Carets would show lines of whatever file a #line directive names. With "-z defs" a
        // missing function is an error here and not a library that does not load.
        "-Xcompiler", "-fPIC,-fno-diagnostics-show-caret", "-Xlinker", "-z,defs", "-o", library};
    const auto starts = [&](std::string_view prefix) {
      return std::ranges::any_of(request.flags,
                                 [&](const auto& flag) { return flag.starts_with(prefix); });
    };
    if (!starts("-O") && !starts("--O")) {
      argv.emplace_back("-O3");
    }
    if (!starts("-std") && !starts("--std")) {
      argv.emplace_back("-std=c++17");
    }
    for (const std::string& flag : request.flags) {
      if (flag != "-lineinfo" && flag != "--lineinfo") {
        argv.push_back(flag);
      }
    }
    argv.push_back(request.file_name);
    return argv;
  }

  /// The compiler sees each file under the name that it will have in the published entry, so that
  /// line information leads to a file that exists.
  static Status WriteSources(const BuildRequest& request, const fs::path& work,
                             const fs::path& entry, const fs::path& published) {
    const auto write = [&](const std::string& name, const std::string& text) -> Status {
      const std::string marker = fmt::format("#line 1 \"{}\"\n", (published / name).string());
      KP_RETURN_IF_ERROR(WriteFileAtomically(work / name, marker + text));
      return WriteFileAtomically(entry / name, text);
    };
    for (const auto& [name, text] : request.headers) {
      KP_RETURN_IF_ERROR(write(name, text));
    }
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    const bool marked = request.source.starts_with(kByteOrderMark);
    return write(request.file_name,
                 marked ? request.source.substr(kByteOrderMark.size()) : request.source);
  }

  Result<BuildOutcome> CompileNew(const BuildRequest& request, const std::string& key,
                                  const std::stop_token& stop) {
    KP_ASSIGN_OR_RETURN(const WorkFolder folder, cache_.NewWork());
    const fs::path& work = folder.path();
    const fs::path entry = work / "entry";
    const fs::path published = cache_.EntryFolder(key);
    std::error_code error;
    fs::create_directories(work / "keep", error);
    KP_RETURN_IF_ERROR(WriteSources(request, work, entry, published));
    const std::string stem = fs::path(request.file_name).stem().string();
    KP_ASSIGN_OR_RETURN(CompileRun run,
                        RunCompiler({.argv = CommandLine(request, "entry/" + stem + ".so"),
                                     .folder = work,
                                     .shown = published,
                                     .tools = nvcc_.parent_path(),
                                     .readable = readable_},
                                    limits_, stop));
    KP_ASSIGN_OR_RETURN(std::string foreign, FindForeignInclude(work, published));
    if (foreign.empty() && run.failure) {
      foreign = UnreadableInclude(run.log);
    }
    BuildOutcome outcome;
    outcome.sandbox = std::move(run.sandbox);
    if (!foreign.empty()) {
      // What was printed may quote the file: none of it is passed on.
      outcome.failure =
          OurFailure(Kind::kErrors,
                     fmt::format("{} includes \"{}\", which belongs neither to the candidate nor "
                                 "to the CUDA toolkit or the host compiler",
                                 request.file_name, Printable(foreign, 200)));
      return outcome;
    }
    if (run.failure) {
      outcome.failure = std::move(run.failure);
      return outcome;
    }
    Build build;
    build.key = key;
    build.library = stem + ".so";
    KP_ASSIGN_OR_RETURN(build.ptx, Collect(work / "keep", ".ptx", entry, stem));
    KP_ASSIGN_OR_RETURN(build.cubin, Collect(work / "keep", ".cubin", entry, stem));
    build.kernels = ParsePtxasFigures(run.log);
    build.diagnostics = std::move(run.diagnostics);
    build.elapsed = run.elapsed;
    KP_ASSIGN_OR_RETURN(outcome.build, cache_.Publish(entry, std::move(build)));
    if (++builds_ % 256 == 0) {
      cache_.Evict(limits_.cache_bytes);
    }
    return outcome;
  }

  [[nodiscard]] Result<std::string> FindForeignInclude(const fs::path& work,
                                                       const fs::path& published) const {
    std::vector<fs::path> roots = roots_;
    roots.push_back(work);
    roots.push_back(published);
    std::error_code error;
    for (const auto& file : fs::directory_iterator(work / "keep", error)) {
      if (file.path().extension() != ".ii") {
        continue;
      }
      KP_ASSIGN_OR_RETURN(const std::string text, ReadFile(file.path(), kMaxPreprocessed));
      if (std::string foreign = ForeignInclude(text, roots); !foreign.empty()) {
        return foreign;
      }
    }
    return std::string();
  }

  /// Moves the kept intermediate of this kind into the entry; the name of the file there.
  static Result<fs::path> Collect(const fs::path& keep, std::string_view extension,
                                  const fs::path& entry, const std::string& stem) {
    std::error_code error;
    for (const auto& file : fs::directory_iterator(keep, error)) {
      const std::string name = file.path().filename().string();
      // x_dlink.sm_90.cubin is the (empty) result of device linking.
      if (name.ends_with(extension) && name.find("_dlink.") == std::string::npos) {
        const std::string target = stem + std::string(extension);
        fs::rename(file.path(), entry / target, error);
        if (!error) {
          return fs::path(target);
        }
      }
    }
    return Fail(ErrorCode::kToolFailed,
                fmt::format("nvcc succeeded and left no {} file in its --keep-dir", extension));
  }

  fs::path nvcc_;
  fs::path toolkit_;
  std::string version_;
  std::string host_;                ///< version of the host compiler
  std::vector<fs::path> roots_;     ///< folders that headers may come from
  std::vector<fs::path> readable_;  ///< what the compiler reads besides the system's folders
  BuildCache cache_;
  ToolchainLimits limits_;
  std::atomic<std::uint64_t> builds_ = 0;
};

}  // namespace

Result<std::unique_ptr<Toolchain>> Toolchain::Find(fs::path cache_folder, ToolchainLimits limits) {
  KP_ASSIGN_OR_RETURN(fs::path nvcc, FindNvcc());
  KP_ASSIGN_OR_RETURN(const std::string about, Probe({nvcc.string(), "--version"}));
  std::string version = VersionIn(about);
  if (version.empty()) {
    return Fail(ErrorCode::kUnavailable, fmt::format("{} --version printed no version: {}",
                                                     nvcc.string(), Printable(about, 200)));
  }
  auto host = Probe({"g++", "-E", "-v", "-x", "c++", "/dev/null"});
  if (!host) {
    return std::move(host).error().Wrap("nvcc needs a working g++ on $PATH");
  }
  // nvcc itself says where its toolkit lies: the file on $PATH may be a link or a wrapper script.
  KP_ASSIGN_OR_RETURN(const std::string dry,
                      Probe({nvcc.string(), "--dryrun", "-E", "-x", "cu", "/dev/null"}));
  fs::path toolkit = ToolkitFolder(dry);
  if (toolkit.empty()) {
    toolkit = nvcc.parent_path().parent_path();
  }
  std::vector<fs::path> roots = SearchFolders(*host);
  std::error_code error;
  for (const fs::path& folder : {toolkit, fs::canonical(toolkit, error)}) {
    roots.push_back(folder / "include");
    roots.push_back(folder / "targets");
  }
  const std::size_t named = host->find("gcc version ");
  std::vector<fs::path> readable = CompilerFiles(nvcc);
  for (const fs::path& file : CompilerFiles(FindOnPath("g++"))) {
    readable.push_back(file);
  }
  // Beside a wrapper in ~/bin there would be the home folder.
  if (fs::exists(toolkit / "nvvm", error) ||
      fs::exists(toolkit / "include/cuda_runtime.h", error)) {
    readable.push_back(toolkit);
  }
  readable.insert(readable.end(), roots.begin(), roots.end());
  std::string host_version =
      named == std::string::npos ? *host : host->substr(named, host->find('\n', named) - named);
  KP_ASSIGN_OR_RETURN(BuildCache cache, BuildCache::Open(cache_folder, limits.cache_bytes));
  return std::unique_ptr<Toolchain>(std::make_unique<Nvcc>(
      std::move(nvcc), std::move(toolkit), std::move(version), std::move(host_version),
      std::move(roots), std::move(readable), std::move(cache), limits));
}

}  // namespace kernelpro
