// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "propose/playbook/polynomial.h"
#include "propose/playbook/source_model.h"

namespace kernelpro::playbook {

/// The atom of a variable in index polynomials; two variables of one name have two atoms.
[[nodiscard]] std::string AtomOf(const Node& variable);

/// The initializer of a scalar, pointer or class variable; nothing when it has none.
[[nodiscard]] const Node* Initializer(const Node& variable);

/// References to a declaration below `scope`.
[[nodiscard]] std::vector<const Node*> ReferencesTo(const Node& variable, const Node& scope);

/// Only ever read after its initialization. Scalars and pointers.
[[nodiscard]] bool IsReadOnly(const Node& variable);

/// Value of an integer constant expression: literals, constants with such an initializer, + - * /.
[[nodiscard]] std::optional<long long> ConstantValue(const Node& expression,
                                                     const SourceModel& model);

/// An index expression as a polynomial; constants and locals that never change are followed.
[[nodiscard]] Polynomial IndexOf(const Node& expression, const SourceModel& model);

/// One access through a pointer or an array: base[index].
struct Access {
  const Node* node = nullptr;  ///< the subscript or dereference
  const Node* base = nullptr;  ///< parameter or array that the pointer goes back to
  Polynomial index;            ///< in elements from the base
  bool read = false;
  bool written = false;
};

/// Every access below `scope`, in source order. A base of nothing: not understood.
[[nodiscard]] std::vector<Access> AccessesIn(const Node& scope, const SourceModel& model);

[[nodiscard]] bool IsGlobalMemory(const Access& access);

/// for (int v = start; v < bound; v += step) whose variable is not touched in the body.
struct CountedLoop {
  const Node* loop = nullptr;
  const Node* variable = nullptr;
  const Node* start = nullptr;
  const Node* bound = nullptr;
  const Node* increment = nullptr;
  const Node* step = nullptr;  ///< nothing: 1
  const Node* body = nullptr;
};

[[nodiscard]] std::optional<CountedLoop> AsCountedLoop(const Node& loop);

/// Components of a launch's grid (0) or block (1): up to three expressions; empty when the
/// configuration is built in a way that is not understood.
[[nodiscard]] std::vector<const Node*> LaunchComponents(const Node& launch, std::size_t which);

/// index == blockIdx.d * size + threadIdx.d for dimension d ('x' or 'y'), where size is blockDim.d
/// or the constant that every launch of the kernel has there.
[[nodiscard]] bool IsGlobalIndex(const Polynomial& index, char dimension, const Node& kernel,
                                 const SourceModel& model);

/// Threads per block in x, y, z when they are constants.
[[nodiscard]] std::optional<std::array<long long, 3>> BlockShape(const Node& launch,
                                                                 const SourceModel& model);

/// True when some call, barrier or warp intrinsic below `scope` makes threads depend on each other.
[[nodiscard]] const Node* FindCooperation(const Node& scope);

[[nodiscard]] bool IsBuiltin(const Node& node, std::string_view name);
[[nodiscard]] bool UsesBuiltin(const Node& scope, std::string_view prefix);

/// "float" of "const float *", "float" of "float[256]".
[[nodiscard]] std::string ElementType(std::string_view type);
[[nodiscard]] bool IsPointer(std::string_view type);

}  // namespace kernelpro::playbook
