// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "propose/playbook/source_model.h"

namespace kernelpro::playbook {

/// The text of `after` without the file-level constants that `before` used and `after` does not.
[[nodiscard]] std::string WithoutUnusedConstants(const SourceModel& before,
                                                 const SourceModel& after);

/// A limit of a launch that constants in the source exceed: threads per block, static shared
/// memory. Empty when none is.
[[nodiscard]] std::string ExceededLimit(const SourceModel& model);

}  // namespace kernelpro::playbook
