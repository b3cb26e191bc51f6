// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kernelpro {

/// "void ns::f<int>(float *)" -> "ns::f<int>", at most 400 bytes, fit for a terminal.
[[nodiscard]] std::string ReadableName(std::string_view demangled);

/// "_ZN2ns1fIiEEvPf" -> "ns::f<int>"; a name that is not mangled stays what it is. A mangled name
/// may grow exponentially when it is expanded, and names come from strangers: one with many
/// back references loses its template arguments instead ("ns::f").
[[nodiscard]] std::string KernelName(std::string_view mangled);

}  // namespace kernelpro
