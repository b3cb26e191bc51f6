// SPDX-License-Identifier: Apache-2.0
#include "toolchain/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace kernelpro {
namespace {

constexpr std::size_t kMaxFlags = 64;
constexpr std::size_t kMaxFlagLength = 256;

constexpr std::string_view kPlain[] = {"O0",
                                       "O1",
                                       "O2",
                                       "O3",
                                       "std=c++17",
                                       "std=c++20",
                                       "restrict",
                                       "lineinfo",
                                       "use_fast_math",
                                       "ftz=true",
                                       "ftz=false",
                                       "fmad=true",
                                       "fmad=false",
                                       "prec-div=true",
                                       "prec-div=false",
                                       "prec-sqrt=true",
                                       "prec-sqrt=false",
                                       "extra-device-vectorization",
                                       "expt-relaxed-constexpr",
                                       "expt-extended-lambda",
                                       "extended-lambda"};

constexpr std::string_view kLibraries[] = {"cublas", "cublasLt", "cudnn",   "cufft",
                                           "curand", "cusolver", "cusparse"};

constexpr std::string_view kPtxas[] = {"O0",
                                       "O1",
                                       "O2",
                                       "O3",
                                       "dlcm=ca",
                                       "dlcm=cg",
                                       "dlcm=cv",
                                       "dlcm=cs",
                                       "dscm=wb",
                                       "dscm=cg",
                                       "dscm=cs",
                                       "dscm=wt",
                                       "warn-spills",
                                       "allow-expensive-optimizations=true",
                                       "allow-expensive-optimizations=false",
                                       "disable-optimizer-constants"};

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool IsWordCharacter(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Without its one or two dashes; empty when it has none.
std::string_view Undashed(std::string_view flag) {
  if (!flag.starts_with('-')) {
    return {};
  }
  flag.remove_prefix(flag.starts_with("--") ? 2 : 1);
  return flag;
}

/// NAME or NAME=VALUE. Names with a leading underscore are the compiler's own.
bool IsDefinition(std::string_view text) {
  const std::string_view name = text.substr(0, text.find('='));
  const std::string_view value = name.size() < text.size() ? text.substr(name.size() + 1) : "";
  const auto in_value = [](char c) {
    return IsWordCharacter(c) || c == '.' || c == '+' || c == '-';
  };
  return !name.empty() && !IsDigit(name[0]) && name[0] != '_' &&
         std::ranges::all_of(name, IsWordCharacter) && std::ranges::all_of(value, in_value);
}

bool IsAllowed(std::string_view flag) {
  const std::string_view name = Undashed(flag);
  if (std::ranges::find(kPlain, name) != std::end(kPlain)) {
    return true;
  }
  if (flag.starts_with("-D")) {
    return IsDefinition(flag.substr(2));
  }
  if (name.starts_with("maxrregcount=")) {
    long long registers = 0;
    return ParseInteger(name.substr(name.find('=') + 1), &registers) && registers >= 16 &&
           registers <= 255;
  }
  if (name.starts_with("Xptxas=")) {
    const std::string_view option = Undashed(name.substr(name.find('=') + 1));
    return std::ranges::find(kPtxas, option) != std::end(kPtxas);
  }
  return false;
}

/// "cublasLt" of "-lcublasLt"; empty when the flag links no CUDA library.
std::string_view LinkedLibrary(std::string_view flag) {
  std::string_view name = Undashed(flag);
  if (!name.starts_with('l')) {
    return {};
  }
  name.remove_prefix(1);
  return std::ranges::find(kLibraries, name) != std::end(kLibraries) ? name : std::string_view();
}

/// Tasks write the names of libraries in small letters.
bool IsNamed(std::string_view library, const std::vector<std::string>& allowed) {
  const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  const auto same = [&](const std::string& name) {
    return std::ranges::equal(library, name, {}, small, small);
  };
  return std::ranges::any_of(allowed, same);
}

}  // namespace

std::string WhyForbidden(const std::vector<std::string>& flags,
                         const std::vector<std::string>& libraries) {
  if (flags.size() > kMaxFlags) {
    return fmt::format("more than {} flags", kMaxFlags);
  }
  for (const std::string& flag : flags) {
    if (const std::string_view library = LinkedLibrary(flag); !library.empty()) {
      if (IsNamed(library, libraries)) {
        continue;
      }
      return fmt::format("the flag \"{}\" links {}, which the task's policy does not allow", flag,
                         library);
    }
    if (flag.size() > kMaxFlagLength || !IsAllowed(flag)) {
      return fmt::format(
          "the flag \"{}\" is not allowed; allowed are -O0..-O3, -std=c++17|c++20, "
          "-maxrregcount=16..255, -use_fast_math, -DNAME[=VALUE], -restrict, -ftz=, -fmad=, "
          "-prec-div=, -prec-sqrt=, -extra-device-vectorization, -expt-relaxed-constexpr, "
          "-extended-lambda, CUDA libraries that the task allows, and -Xptxas= with -O0..-O3, "
          "-dlcm=, "
          "-dscm=, -warn-spills or -allow-expensive-optimizations=",
          Printable(flag, 80));
    }
  }
  return {};
}

}  // namespace kernelpro
