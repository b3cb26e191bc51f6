// SPDX-License-Identifier: Apache-2.0
#include "kernelpro/profile.h"

#include <optional>
#include <string>
#include <string_view>

namespace kernelpro {

std::string_view Name(Provenance provenance) {
  switch (provenance) {
    case Provenance::kMeasured:
      return "measured";
    case Provenance::kCounted:
      return "counted";
    case Provenance::kModelled:
      return "modelled";
  }
  return "unknown";
}

std::optional<double> KernelProfile::Value(std::string_view metric) const {
  const auto found = metrics.find(std::string(metric));
  if (found == metrics.end()) {
    return std::nullopt;
  }
  return found->second.value;
}

}  // namespace kernelpro
