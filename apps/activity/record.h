// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cupti.h>

#include "cupti_library.h"
#include "log.h"

namespace kernelpro::activity {

/// Writes one CUPTI record as one line; README.md says what each line holds. True unless the record
/// has no end yet (a forced flush delivers those too): such a record is not written.
[[nodiscard]] bool WriteRecord(const CUpti_Activity& record, const Cupti& cupti, Log* log);

}  // namespace kernelpro::activity
