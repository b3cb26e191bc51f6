// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "propose/proposer.h"

namespace kernelpro {

struct PlaybookOptions {
  /// Of the CUDA toolkit that compiles the candidates.
  std::filesystem::path cuda_include_folder = "/usr/local/cuda/include";
  /// Where the host compiler has the C++ library's headers; empty: where clang finds them itself.
  std::vector<std::filesystem::path> cpp_include_folders;
  /// The folder that holds clang's own include/, in a bundle that carries them; empty: where
  /// libclang looks.
  std::filesystem::path clang_resource_folder;
};

/// The built-in proposer: source rewrites and tunables keyed to findings; no model, no network.
/// The same request gives the same answer. Safe to call from several threads (one at a time gets
/// in). A candidate that clang cannot parse is one Declined entry with clang's first error, not a
/// failure. Propose fails only when libclang or the CUDA headers are not there (kNotFound) or the
/// temporary folder cannot be written (kIo).
[[nodiscard]] std::unique_ptr<Proposer> MakePlaybook(PlaybookOptions options);

}  // namespace kernelpro
