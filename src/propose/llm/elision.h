// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "propose/llm/lexical.h"

namespace kernelpro::agents {

/// Whether a text is a change to a file instead of a file: a unified diff, conflict or edit marks.
[[nodiscard]] bool LooksLikePatch(std::string_view text);

/// The words with which a source leaves something out ("... rest unchanged"); empty: it does not.
/// Comments that only speak of a rest ("the rest of the row") are not meant.
[[nodiscard]] std::string FindElision(const Lexed& source);

}  // namespace kernelpro::agents
