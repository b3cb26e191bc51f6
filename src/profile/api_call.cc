// SPDX-License-Identifier: Apache-2.0
#include "profile/api_call.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace kernelpro {
namespace {

using Kind = TimelineEvent::Kind;

/// Calls about memory that reserve or release it; "cuMem" alone also begins copies and queries.
constexpr std::array<std::string_view, 17> kAllocationPrefixes = {"cudaMalloc",
                                                                  "cudaFree",
                                                                  "cudaHostAlloc",
                                                                  "cudaHostRegister",
                                                                  "cudaHostUnregister",
                                                                  "cuMemAlloc",
                                                                  "cuMemFree",
                                                                  "cuMemHostAlloc",
                                                                  "cuMemHostRegister",
                                                                  "cuMemHostUnregister",
                                                                  "cuMemCreate",
                                                                  "cuMemRelease",
                                                                  "cuMemMap",
                                                                  "cuMemUnmap",
                                                                  "cuMemAddressReserve",
                                                                  "cuArrayCreate",
                                                                  "cuMemAddressFree"};

constexpr std::array<std::string_view, 9> kCompilePrefixes = {
    "cuModuleLoad",      "cuLibraryLoad",           "cuLink",
    "cudaLibraryLoad",   "cuModuleUnload",          "cuLibraryUnload",
    "cudaLibraryUnload", "__cudaRegisterFatBinary", "cuModuleLoadFatBinary"};

template <std::size_t kSize>
bool StartsWithAny(std::string_view name, const std::array<std::string_view, kSize>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool AllDigits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string_view PlainApiName(std::string_view name) {
  if (const std::size_t at = name.rfind("_v");
      at != std::string_view::npos && AllDigits(name.substr(at + 2))) {
    name = name.substr(0, at);
  }
  for (const std::string_view suffix : {"_ptsz", "_ptds"}) {
    if (name.ends_with(suffix)) {
      name.remove_suffix(suffix.size());
    }
  }
  // The driver's cuMemAlloc_v2 and the runtime's cudaLaunchKernel_ptsz_v7000 are done above.
  return name;
}

bool IsGraphLaunch(std::string_view name) {
  return name == "cudaGraphLaunch" || name == "cuGraphLaunch";
}

Kind ApiKind(std::string_view name) {
  if (IsGraphLaunch(name)) {
    return Kind::kLaunch;
  }
  if (name.starts_with("cudaLaunch") || name.starts_with("cuLaunch")) {
    return name.find("HostFunc") == std::string_view::npos ? Kind::kLaunch : Kind::kApi;
  }
  if (name.ends_with("Synchronize")) {
    return Kind::kSync;
  }
  if (StartsWithAny(name, kAllocationPrefixes)) {
    return Kind::kAllocation;
  }
  return StartsWithAny(name, kCompilePrefixes) ? Kind::kCompile : Kind::kApi;
}

bool IsBlockingCopy(std::string_view name) {
  return (name.starts_with("cudaMemcpy") || name.starts_with("cuMemcpy")) &&
         name.find("Async") == std::string_view::npos;
}

}  // namespace kernelpro
