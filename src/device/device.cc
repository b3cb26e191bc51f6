// SPDX-License-Identifier: Apache-2.0
#include "device/device.h"

#include <fmt/format.h>

#include <string>

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
    // This build has no cuda device, so there is no GPU that it could use; the title says
    // "emulated".
    return referee::OpenEmulator(std::string(kDefaultGpu));
  }
  if (Names(choice, kEmulator)) {
    const std::string_view gpu =
        choice == kEmulator ? kDefaultGpu : choice.substr(kEmulator.size() + 1);
    return referee::OpenEmulator(std::string(gpu));
  }
  if (Names(choice, kCuda)) {
    return Fail(ErrorCode::kUnavailable,
                "the cuda device is not part of this build; use --device emulator");
  }
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("no device '{}'; the choices are auto, emulator, emulator:<gpu>, cuda and "
                  "cuda:<n>",
                  choice));
}

}  // namespace kernelpro
