// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kernelpro {

enum class DType : std::uint8_t { kF64, kF32, kF16, kBF16, kI64, kI32, kI8, kU32, kU8 };

[[nodiscard]] std::uint32_t SizeOf(DType dtype);
[[nodiscard]] std::string_view Name(DType dtype);
/// The C++ type of an element in kernelpro_task.h: "float", "__half", "int64_t", ...
[[nodiscard]] std::string_view CudaType(DType dtype);
/// "f32" -> kF32; the words of task.toml.
[[nodiscard]] std::optional<DType> ParseDType(std::string_view name);
[[nodiscard]] bool IsFloat(DType dtype);

enum class Role : std::uint8_t { kInput, kOutput };

/// How an input is filled. Values are made from the evaluation's secret seed, never from the task.
struct Fill {
  /// kUniform: real numbers in [a, b). kIntegers: whole numbers a..b, both included.
  enum class Kind : std::uint8_t { kNormal, kUniform, kIntegers, kZeros, kOnes };
  Kind kind = Kind::kNormal;
  double a = 0;  ///< mean | low
  double b = 1;  ///< standard deviation | high
};

/// What the inputs of a checked call look like. A kernel that is right for one kind may be wrong
/// for another (no subtraction of the maximum, ties, one value that outweighs all others).
enum class Distribution : std::uint8_t {
  kFill,        ///< as the tensors' fills say
  kZeroMean,    ///< normal around 0, with a scale drawn anew for every tensor and trial
  kHeavyTails,  ///< a few values hundreds of times larger than the others
  kTies,        ///< few distinct values
  kDenormals,   ///< one element in eight is subnormal
  kOutlier,     ///< one element, at a secret place, is far larger than the others
};

/// "fill", "zero_mean", ...: the words of task.toml.
[[nodiscard]] std::string_view Name(Distribution distribution);
[[nodiscard]] std::optional<Distribution> ParseDistribution(std::string_view name);

/// What the absolute part of the tolerance is a multiple of.
enum class ErrorScale : std::uint8_t {
  kRms,        ///< root mean square of the output
  kMagnitude,  ///< element by element: the reference's answer for the inputs' absolute values,
               ///< which for sums of products is the sum of |a| |b| that rounding errors grow with
};

struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  Role role = Role::kInput;
  std::vector<std::string> shape;  ///< each an integer expression over the axes
  Fill fill;
  ErrorScale error_scale = ErrorScale::kRms;  ///< of outputs
};

struct ScalarSpec {
  std::string name;
  DType dtype = DType::kF32;
  double value = 0;
};

using AxisValues = std::map<std::string, std::int64_t>;

struct Workload {
  enum class Kind : std::uint8_t { kTimed, kChecked, kHidden };
  std::string name;
  Kind kind = Kind::kChecked;
  double weight = 1;  ///< of its time in the task's score (timed ones)
  AxisValues axes;
};

/// |got - want| <= absolute * scale + relative * |want|, element by element, with the output's
/// ErrorScale; non-finite values must be equal in kind and sign. See evaluate/compare.h.
struct Tolerance {
  double absolute = 1e-5;
  double relative = 1e-5;
};

struct Policy {
  std::string lowest_precision = "fp32";  ///< fp64 | fp32 | tf32 | bf16 | fp16
  std::vector<std::string> libraries;     ///< allowed CUDA libraries, e.g. "cublas"; empty: none
};

struct Task {
  std::filesystem::path folder;
  std::string name;
  std::string description;
  std::vector<std::string> axes;
  std::vector<TensorSpec> tensors;
  std::vector<ScalarSpec> scalars;
  std::vector<Workload> workloads;
  Tolerance tolerance;
  Policy policy;
  /// Inputs of checked calls; the fill always comes first.
  std::vector<Distribution> distributions = {Distribution::kFill,       Distribution::kZeroMean,
                                             Distribution::kHeavyTails, Distribution::kTies,
                                             Distribution::kDenormals,  Distribution::kOutlier};
  std::string flops;                ///< expression over the axes
  std::string compulsory_bytes;     ///< expression over the axes; empty: inputs once + outputs once
  std::filesystem::path reference;  ///< <folder>/reference.cc
  std::filesystem::path seed;       ///< seed.cu, empty when the task has none
};

/// Reads and checks <folder>/task.toml. Errors name file and line and show the line
/// (kParse, kInvalidArgument) or say what is missing (kNotFound). The format: src/task/README.md.
[[nodiscard]] Result<Task> LoadTask(const std::filesystem::path& folder);

/// The same from text; `reference` and `seed` stay empty and no file is looked at.
[[nodiscard]] Result<Task> ParseTask(std::string_view toml, std::string_view shown_path);

/// Value of an arithmetic expression over axes: + - * / % ( ), integers and decimals, min, max,
/// ceil_div. `context` names the field for the error message.
[[nodiscard]] Result<double> EvaluateExpression(std::string_view expression, const AxisValues& axes,
                                                std::string_view context);

/// Elements of a tensor under a workload; kInvalidArgument when not positive or above 2^40.
[[nodiscard]] Result<std::int64_t> ElementCount(const TensorSpec& tensor, const AxisValues& axes);
[[nodiscard]] Result<double> FlopCount(const Task& task, const AxisValues& axes);
[[nodiscard]] Result<double> CompulsoryBytes(const Task& task, const AxisValues& axes);

/// One field of TaskArgs (and of ReferenceArgs): axes as int64_t, then scalars, then tensor
/// pointers, each in order of declaration and naturally aligned.
struct ArgsField {
  enum class Kind : std::uint8_t { kAxis, kScalar, kTensor };
  Kind kind = Kind::kAxis;
  std::string name;
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
};

struct ArgsLayout {
  std::vector<ArgsField> fields;
  std::uint32_t bytes = 0;
};

[[nodiscard]] ArgsLayout TaskArgsLayout(const Task& task);
/// Axes and scalars written, pointers zero.
[[nodiscard]] Result<std::vector<std::byte>> TaskArgsImage(const Task& task,
                                                           const AxisValues& axes);
/// The same for ReferenceArgs, where scalars of float types are double.
[[nodiscard]] ArgsLayout ReferenceArgsLayout(const Task& task);
[[nodiscard]] Result<std::vector<std::byte>> ReferenceArgsImage(const Task& task,
                                                                const AxisValues& axes);

/// The text of kernelpro_task.h for candidates, and of kernelpro_reference.h for the reference:
/// there tensors of float types are `const double*` (inputs) and `double*` (outputs).
[[nodiscard]] std::string CandidateHeader(const Task& task);
[[nodiscard]] std::string ReferenceHeader(const Task& task);

}  // namespace kernelpro
