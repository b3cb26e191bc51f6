// SPDX-License-Identifier: Apache-2.0
#include "report/format.h"

#include <fmt/format.h>

namespace kernelpro::report {

std::string FormatTime(double microseconds) {
  struct Unit {
    double us;
    const char* name;
  };

  constexpr Unit kUnits[] = {{1e6, "s"}, {1e3, "ms"}, {1, "us"}};
  for (const Unit& unit : kUnits) {
    const double value = microseconds / unit.us;
    if (value >= 0.9995 || unit.us == 1) {
      const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
      return fmt::format("{:.{}f} {}", value, digits, unit.name);
    }
  }
  return {};
}

}  // namespace kernelpro::report
