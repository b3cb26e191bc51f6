// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kernelpro::codesearch {

/// The C++ and CUDA sources under a folder: *.h *.hpp *.cuh *.cu *.cc *.cpp *.inl. Everything is
/// opened beneath the folder's descriptor, component by component and without following links, so
/// no path leads out, whatever happens to the tree meanwhile. Left out: hidden names, names that
/// cannot be shown, files of more than 4 MiB, binary files, what may not be read. Thread safe.
class SourceTree {
 public:
  /// kNotFound, kInvalidArgument when it is no folder, kIo otherwise.
  [[nodiscard]] static Result<SourceTree> Open(const std::filesystem::path& root);
  SourceTree(SourceTree&& other) noexcept;
  SourceTree& operator=(SourceTree&&) = delete;
  SourceTree(const SourceTree&) = delete;
  SourceTree& operator=(const SourceTree&) = delete;
  ~SourceTree();

  /// Paths relative to the root, sorted by their bytes. kInvalidArgument when the tree is too
  /// large: a search that silently looks at a part of it would mislead.
  [[nodiscard]] Result<std::vector<std::string>> List() const;
  /// kInvalidArgument for a path that is absolute, has "..", or passes a symbolic link; kNotFound
  /// for what the tree does not hold.
  [[nodiscard]] Result<std::string> Read(std::string_view path) const;

  static constexpr std::size_t kMostFiles = 20000;
  static constexpr std::size_t kMostEntries = 1000000;  ///< of any kind, seen while listing
  static constexpr std::size_t kDeepest = 64;
  static constexpr std::size_t kLargestFile = 4U << 20U;

 private:
  explicit SourceTree(int root) : root_(root) {}

  int root_;
};

}  // namespace kernelpro::codesearch
