// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// Text that strangers wrote (compilers quoting a candidate, comments, file names, other people's
/// sources) on its way into a prompt. It is data; these functions keep it from passing for anything
/// else.
namespace kernelpro::agents {

/// Valid UTF-8 without control, bidirectional and invisible characters, and with everything that a
/// chat template or our own blocks use as a mark (code fences, "<|im_start|>", "[INST]", "Human:"
/// at the start of a line, ...) broken by a space. The spaces stand only where C++ allows one, so a
/// source that is neutralised means what it meant. Line ends stay, so line numbers stay right.
///
/// More than `limit` bytes are cut: three quarters of the limit from the start, one quarter from
/// the end (a compiler says what is wrong first and how much of it there is last), whole lines
/// where possible, with a note of how much is missing between them.
[[nodiscard]] std::string Neutralise(std::string_view text, std::size_t limit);

/// The same on one line, for table cells and names.
[[nodiscard]] std::string NeutraliseLine(std::string_view text, std::size_t limit);

/// Neutralised text between <data-HASH kind="..."> and </data-HASH>, which the system text declares
/// to be data. The hash is of the content, so no content can hold its own end mark. `kind` is ours.
[[nodiscard]] std::string DataBlock(std::string_view kind, std::string_view text,
                                    std::size_t limit);

/// The first `most` words, with a note when there are more.
[[nodiscard]] std::string FirstWords(std::string_view text, std::size_t most);

}  // namespace kernelpro::agents
