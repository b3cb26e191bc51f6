// SPDX-License-Identifier: Apache-2.0
#include "cupti_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

namespace kernelpro::activity {
namespace {

constexpr std::uint32_t kMajor = CUPTI_API_VERSION / 10000;

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

std::vector<std::string> Places() {
  if (const std::string chosen = Environment("KERNELPRO_CUPTI"); !chosen.empty()) {
    return {chosen};
  }
  const std::string name = "libcupti.so." + std::to_string(kMajor);
  std::vector<std::string> places = {name};
  for (const std::string& root :
       {Environment("CUDA_HOME"), Environment("CUDA_PATH"), std::string("/usr/local/cuda"),
        "/usr/local/cuda-" + std::to_string(kMajor)}) {
    if (!root.empty()) {
      places.push_back(root + "/extras/CUPTI/lib64/" + name);
      places.push_back(root + "/lib64/" + name);
    }
  }
  return places;
}

}  // namespace

std::string Cupti::Describe(CUptiResult result) const {
  const char* text = nullptr;
  if (result_string != nullptr && result_string(result, &text) == CUPTI_SUCCESS &&
      text != nullptr) {
    return text;
  }
  return "CUPTI error " + std::to_string(static_cast<int>(result));
}

std::string OpenCupti(Cupti* cupti) {
  void* library = nullptr;
  std::string tried;
  for (const std::string& place : Places()) {
    library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) {
      cupti->path = place;
      break;
    }
    tried += (tried.empty() ? "" : ", ") + place;
  }
  if (library == nullptr) {
    return "CUPTI is not there: none of " + tried +
           " can be loaded; install the CUDA toolkit's CUPTI or name the file in KERNELPRO_CUPTI";
  }
  std::string missing;
  const auto find = [&](auto& pointer, const char* name, bool needed) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(::dlsym(library, name));
    if (pointer == nullptr && needed && missing.empty()) {
      missing = name;
    }
  };
  find(cupti->get_version, "cuptiGetVersion", true);
  find(cupti->register_callbacks, "cuptiActivityRegisterCallbacks", true);
  find(cupti->enable, "cuptiActivityEnable", true);
  find(cupti->flush_all, "cuptiActivityFlushAll", true);
  find(cupti->next_record, "cuptiActivityGetNextRecord", true);
  find(cupti->dropped_records, "cuptiActivityGetNumDroppedRecords", false);
  find(cupti->callback_name, "cuptiGetCallbackName", false);
  find(cupti->result_string, "cuptiGetResultString", false);
  find(cupti->subscribe, "cuptiSubscribe", false);
  find(cupti->enable_callback, "cuptiEnableCallback", false);
  if (!missing.empty()) {
    return cupti->path + " has no " + missing + ": it is not a CUPTI that can be used";
  }
  if (cupti->get_version(&cupti->version) != CUPTI_SUCCESS) {
    return cupti->path + " does not tell its version";
  }
  if (cupti->version / 10000 != kMajor) {
    return cupti->path + " is of another major version (" + std::to_string(cupti->version) +
           ", needed: " + std::to_string(kMajor) + "xxxx, of CUDA " + std::to_string(kMajor) +
           "); name the right one in KERNELPRO_CUPTI";
  }
  return "";
}

}  // namespace kernelpro::activity
