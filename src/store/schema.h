// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.h"
#include "store/database.h"

namespace kernelpro::store {

/// The format of run.db that this program writes; kept as the fact "format".
inline constexpr std::string_view kRunFormat = "2";

/// Tables of the current format in an empty database; the fact "format" is set.
[[nodiscard]] Status CreateTables(const Database& database);

/// Brings a database of an older format up to date, all or nothing. kInvalidArgument for a format
/// that is not known; `shown` names the run in the message.
[[nodiscard]] Status BringUpToDate(const Database& database, std::string_view shown);

}  // namespace kernelpro::store
