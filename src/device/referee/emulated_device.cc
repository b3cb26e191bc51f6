// SPDX-License-Identifier: Apache-2.0
#include "device/referee/emulated_device.h"

#include <utility>

#include "device/emulated_launch.h"
#include "device/referee/processes.h"
#include "device/referee/session.h"
#include "emulator/model/model.h"

namespace kernelpro::referee {
namespace {

class EmulatedDevice final : public Device {
 public:
  EmulatedDevice(DeviceInfo info, std::string gpu, Programs programs)
      : info_(std::move(info)), gpu_(std::move(gpu)), programs_(std::move(programs)) {}

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }

  [[nodiscard]] Result<std::unique_ptr<Session>> Open(const SessionRequest& request) override {
    return EmulatedSession::Open(programs_, gpu_, request);
  }

 private:
  DeviceInfo info_;
  std::string gpu_;
  Programs programs_;
};

}  // namespace

Result<std::unique_ptr<Device>> OpenEmulator(const std::string& gpu) {
  KP_ASSIGN_OR_RETURN(const model::GpuSpec spec, model::LoadSpec(gpu));
  KP_ASSIGN_OR_RETURN(Programs programs, Programs::Find());
  return std::unique_ptr<Device>(
      std::make_unique<EmulatedDevice>(EmulatorInfo(spec), gpu, std::move(programs)));
}

}  // namespace kernelpro::referee
