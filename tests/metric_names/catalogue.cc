// SPDX-License-Identifier: Apache-2.0
#include "catalogue.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#ifndef KP_NO_CUPTI
#include <cupti_profiler_host.h>
#include <cupti_result.h>
#endif

namespace kernelpro {

#ifdef KP_NO_CUPTI

std::unique_ptr<Catalogue> Catalogue::Open(std::string chip, std::string* why) {
  *why = KP_NO_CUPTI ", so " + chip + "'s catalogue is not at hand";
  return nullptr;
}

bool Catalogue::Knows(const std::string& /*metric*/) const {
  return false;
}

int Catalogue::Passes(const std::vector<std::string>& /*metrics*/) const {
  return -1;
}

#else

namespace {

/// A configuration under construction; metrics can be added and never taken out.
class Host {
 public:
  explicit Host(const std::string& chip) {
    CUpti_Profiler_Host_Initialize_Params params{};
    params.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE;
    params.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    params.pChipName = chip.c_str();
    result_ = cuptiProfilerHostInitialize(&params);
    host_ = params.pHostObject;
  }

  ~Host() {
    if (host_ != nullptr) {
      CUpti_Profiler_Host_Deinitialize_Params params{};
      params.structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE;
      params.pHostObject = host_;
      cuptiProfilerHostDeinitialize(&params);
    }
  }

  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  [[nodiscard]] CUptiResult result() const { return result_; }

  [[nodiscard]] bool Describes(const std::string& metric) {
    CUpti_Profiler_Host_GetMetricProperties_Params params{};
    params.structSize = CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE;
    params.pHostObject = host_;
    params.pMetricName = metric.c_str();
    return cuptiProfilerHostGetMetricProperties(&params) == CUPTI_SUCCESS;
  }

  [[nodiscard]] bool Add(const std::vector<std::string>& metrics) {
    std::vector<const char*> names;
    names.reserve(metrics.size());
    for (const std::string& metric : metrics) {
      names.push_back(metric.c_str());
    }
    CUpti_Profiler_Host_ConfigAddMetrics_Params params{};
    params.structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE;
    params.pHostObject = host_;
    params.ppMetricNames = names.data();
    params.numMetrics = names.size();
    return cuptiProfilerHostConfigAddMetrics(&params) == CUPTI_SUCCESS;
  }

  [[nodiscard]] int Passes() {
    CUpti_Profiler_Host_GetConfigImageSize_Params size{};
    size.structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE;
    size.pHostObject = host_;
    if (cuptiProfilerHostGetConfigImageSize(&size) != CUPTI_SUCCESS) {
      return -1;
    }
    std::vector<std::uint8_t> image(size.configImageSize);
    CUpti_Profiler_Host_GetConfigImage_Params get{};
    get.structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE;
    get.pHostObject = host_;
    get.configImageSize = image.size();
    get.pConfigImage = image.data();
    if (cuptiProfilerHostGetConfigImage(&get) != CUPTI_SUCCESS) {
      return -1;
    }
    CUpti_Profiler_Host_GetNumOfPasses_Params count{};
    count.structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE;
    count.configImageSize = image.size();
    count.pConfigImage = image.data();
    return cuptiProfilerHostGetNumOfPasses(&count) == CUPTI_SUCCESS
               ? static_cast<int>(count.numOfPasses)
               : -1;
  }

 private:
  CUpti_Profiler_Host_Object* host_ = nullptr;
  CUptiResult result_ = CUPTI_SUCCESS;
};

}  // namespace

std::unique_ptr<Catalogue> Catalogue::Open(std::string chip, std::string* why) {
  const Host host(chip);
  if (host.result() != CUPTI_SUCCESS) {
    *why = "CUPTI's host library does not start for " + chip + " (result " +
           std::to_string(static_cast<int>(host.result())) + ")";
    return nullptr;
  }
  return std::unique_ptr<Catalogue>(new Catalogue(std::move(chip)));
}

bool Catalogue::Knows(const std::string& metric) const {
  // One that is described may still not be collectable, and a failed Add spoils the configuration.
  Host host(chip_);
  return host.Describes(metric) && host.Add({metric});
}

int Catalogue::Passes(const std::vector<std::string>& metrics) const {
  Host host(chip_);
  return host.Add(metrics) ? host.Passes() : -1;
}

#endif

}  // namespace kernelpro
