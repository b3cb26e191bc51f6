// SPDX-License-Identifier: Apache-2.0
#include "device/device.h"

#include <fmt/format.h>

#include <charconv>
#include <string>

#include "device/cuda/cuda_device.h"
#include "device/referee/emulated_device.h"

namespace kernelpro {
namespace {

constexpr std::string_view kEmulator = "emulator";
constexpr std::string_view kDefaultGpu = "h200";
constexpr std::string_view kCuda = "cuda";

bool Names(std::string_view choice, std::string_view kind) {
  return choice == kind ||
         (choice.starts_with(kind) && choice.size() > kind.size() && choice[kind.size()] == ':');
}

}  // namespace

Result<std::unique_ptr<Device>> OpenDevice(std::string_view choice) {
  if (choice == "auto") {
    return cuda::CountGpus() > 0 ? cuda::OpenCuda(0)
                                 : referee::OpenEmulator(std::string(kDefaultGpu));
  }
  if (Names(choice, kEmulator)) {
    const std::string_view gpu =
        choice == kEmulator ? kDefaultGpu : choice.substr(kEmulator.size() + 1);
    return referee::OpenEmulator(std::string(gpu));
  }
  if (Names(choice, kCuda)) {
    int index = 0;
    const std::string_view number = choice == kCuda ? "0" : choice.substr(kCuda.size() + 1);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
    if (error != std::errc() || end != number.data() + number.size()) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("'{}' does not name a GPU: write cuda or cuda:<n>", choice));
    }
    return cuda::OpenCuda(index);
  }
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("no device '{}'; the choices are auto, emulator, emulator:<gpu>, cuda and "
                  "cuda:<n>",
                  choice));
}

}  // namespace kernelpro
