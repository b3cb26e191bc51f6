// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "process/confine.h"

namespace kernelpro {

/// One message of nvcc, ptxas or the host compiler.
struct Diagnostic {
  enum class Severity : std::uint8_t { kError, kWarning, kNote };
  Severity severity = Severity::kError;
  std::string file;
  std::uint32_t line = 0;  ///< 0 when the tool gave none
  std::string text;
};

/// `ptxas -v` of one kernel (mangled name).
struct KernelFigures {
  std::uint32_t registers = 0;
  std::uint64_t shared_bytes = 0;  ///< static
  std::uint64_t stack_bytes = 0;   ///< of the kernel and what it calls where ptxas says so
  std::uint64_t spill_store_bytes = 0, spill_load_bytes = 0;
  std::uint64_t constant_bytes = 0;
  std::uint32_t barriers = 0;
};

/// What the compiler made of a candidate. Files live in the build cache and stay valid while the
/// cache folder does.
struct Build {
  std::string key;                ///< content hash: source, headers, flags, toolchain version, arch
  std::filesystem::path library;  ///< .so with SASS and PTX embedded, needs libcudart.so.13
  std::filesystem::path ptx;      ///< with -lineinfo
  std::filesystem::path cubin;
  std::map<std::string, KernelFigures> kernels;
  std::vector<Diagnostic> diagnostics;   ///< warnings
  std::chrono::milliseconds elapsed{0};  ///< of the compilation, also when it was an earlier one
  bool from_cache = false;
};

/// A candidate that does not compile is data, not an error of ours.
struct CompileFailure {
  enum class Kind : std::uint8_t { kErrors, kTimeout, kMemory, kForbiddenFlag, kCrash };
  Kind kind = Kind::kErrors;
  std::vector<Diagnostic> diagnostics;  ///< first error first
  std::string log;                      ///< what the tools printed, at most 64 KiB
};

struct BuildOutcome {
  std::optional<Build> build;
  std::optional<CompileFailure> failure;
  std::vector<ConfinementReport> sandbox;  ///< what the compiler ran in; empty: nothing was run
};

struct BuildRequest {
  std::string source;
  std::string file_name = "candidate.cu";      ///< shown in diagnostics and line information
  std::map<std::string, std::string> headers;  ///< name -> text, e.g. kernelpro_task.h
  std::vector<std::string> flags;
  std::vector<std::string> libraries;  ///< CUDA libraries that flags may link, e.g. "cublas"
  std::string arch = "sm_90";
};

struct ToolchainLimits {
  /// CPU time of each of the compiler's processes: what a source costs, however busy the machine.
  std::chrono::seconds cpu{60};
  std::chrono::milliseconds wall{600'000};   ///< of the whole, for a compiler that waits
  std::uint64_t memory_bytes = 6ULL << 30U;  ///< address space of each compiler process
  /// Above this the least recently used entries go, when a Toolchain is made and every 256 builds;
  /// entries used within the last day stay, so the builds of a running search do.
  std::uint64_t cache_bytes = 4ULL << 30U;
};

/// nvcc behind a content-hash cache. Safe to use from several threads and processes on one cache.
class Toolchain {
 public:
  /// Looks for nvcc on PATH, in $CUDA_HOME and /usr/local/cuda. kUnavailable says where it looked.
  [[nodiscard]] static Result<std::unique_ptr<Toolchain>> Find(std::filesystem::path cache_folder,
                                                               ToolchainLimits limits = {});
  virtual ~Toolchain() = default;
  /// An Error only when our own operation failed (disk, nvcc gone) or `stop` was requested.
  [[nodiscard]] virtual Result<BuildOutcome> Compile(const BuildRequest& request,
                                                     const std::stop_token& stop) = 0;
  [[nodiscard]] virtual std::string version() const = 0;  ///< "nvcc 13.0.88"
  [[nodiscard]] virtual std::filesystem::path nvcc() const = 0;
  /// The CUDA toolkit that this nvcc belongs to: the folder that holds include/.
  [[nodiscard]] virtual std::filesystem::path toolkit() const = 0;
  /// Where the host compiler has the headers of the C++ library, in its order.
  [[nodiscard]] virtual std::vector<std::filesystem::path> cpp_include_folders() const = 0;
};

/// What a compiler's sandbox consists of on this machine.
[[nodiscard]] std::vector<ConfinementReport> CompilerSandbox();

/// The trusted side: a task's reference.cc, for the referee to load.
struct ReferenceRequest {
  std::string source;
  std::string header;                      ///< text of kernelpro_reference.h
  std::string file_name = "reference.cc";  ///< shown in diagnostics
};

/// Compiles a reference with g++ from PATH into a shared library, through the same kind of cache.
/// Of the Build only key, library, diagnostics, elapsed and from_cache are set.
[[nodiscard]] Result<BuildOutcome> CompileReference(const ReferenceRequest& request,
                                                    const std::filesystem::path& cache_folder,
                                                    const ToolchainLimits& limits,
                                                    const std::stop_token& stop);

}  // namespace kernelpro
