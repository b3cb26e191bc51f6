// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cupti.h>

#include <cstdint>
#include <string>

namespace kernelpro::activity {

/// The functions of CUPTI that are used, found at run time: the traced machine may have none.
struct Cupti {
  decltype(&::cuptiGetVersion) get_version = nullptr;
  decltype(&::cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&::cuptiActivityEnable) enable = nullptr;
  decltype(&::cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&::cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&::cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
  decltype(&::cuptiGetCallbackName) callback_name = nullptr;
  decltype(&::cuptiGetResultString) result_string = nullptr;
  /// These three may be absent: then nothing is flushed at cudaProfilerStop.
  decltype(&::cuptiSubscribe) subscribe = nullptr;
  decltype(&::cuptiEnableCallback) enable_callback = nullptr;

  std::uint32_t version = 0;  ///< 130001
  std::string path;           ///< what was opened

  [[nodiscard]] std::string Describe(CUptiResult result) const;
};

/// Opens $KERNELPRO_CUPTI if that is set, else libcupti as the loader finds it, else in the CUDA
/// toolkit's usual folders. Only the major version that this library was built for is accepted:
/// records have another layout in the next. Returns why not, empty when `cupti` is ready.
[[nodiscard]] std::string OpenCupti(Cupti* cupti);

}  // namespace kernelpro::activity
