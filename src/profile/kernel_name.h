// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kernelpro {

/// The parts of a kernel's name that can be compared although two tools write it differently
/// (blanks, casts in template arguments, "void", name spaces without a name).
///
///   void ns::scale<(int)4, float>(float *)  ->  "ns::scale<4,float>", "ns::scale", "scale"
struct KernelNameParts {
  std::string templated;  ///< with template arguments; empty when they are unknown or cut
  std::string qualified;  ///< without them
  std::string function;   ///< the last part
};

/// Of a demangled name, with or without parameters, or of a mangled one ("_Z5scaleILi4EEvPf": its
/// arguments then stay unknown). Any bytes are safe; parts that cannot be told are empty.
[[nodiscard]] KernelNameParts PartsOfKernelName(std::string_view name);

/// "void f<a, b>(int)" -> "f<a, b>"; the template arguments may hold anything.
[[nodiscard]] std::string_view WithoutParameters(std::string_view name);

}  // namespace kernelpro
