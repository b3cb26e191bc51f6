// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "task/task.h"
#include "task/task_check.h"
#include "task/task_fill.h"
#include "task/toml.h"
#include "task/toml_table.h"

namespace kernelpro {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 9> kDTypes = {"f64", "f32", "f16", "bf16", "i64",
                                                     "i32", "i8",  "u32", "u8"};
constexpr std::array<std::string_view, 2> kRoles = {"input", "output"};
constexpr std::array<std::string_view, 2> kErrorScales = {"rms", "magnitude"};
constexpr std::array<std::string_view, 3> kWorkloadKinds = {"timed", "checked", "hidden"};
constexpr std::array<std::string_view, 5> kPrecisions = {"fp64", "fp32", "tf32", "bf16", "fp16"};
constexpr std::array<std::string_view, 7> kLibraries = {"cublas", "cublaslt", "cudnn",   "cufft",
                                                        "curand", "cusolver", "cusparse"};

template <std::size_t kCount>
std::size_t IndexOf(const std::array<std::string_view, kCount>& words, std::string_view word) {
  return static_cast<std::size_t>(std::ranges::find(words, word) - words.begin());
}

/// Reads the sections of one document into a Task. One use.
class TaskReader {
 public:
  explicit TaskReader(const TomlSource& source) : source_(source) {}

  Result<Task> Read(const TomlNode& root) {
    KP_ASSIGN_OR_RETURN(
        const TomlTable top,
        TomlTable::Open(root, source_, "the task",
                        {"name", "description", "axes", "flops", "compulsory_bytes", "tolerance",
                         "policy", "inputs", "tensors", "scalars", "workloads"}));
    KP_RETURN_IF_ERROR(Names(top));
    KP_RETURN_IF_ERROR(Axes(top));
    KP_RETURN_IF_ERROR(Costs(top));
    KP_RETURN_IF_ERROR(ToleranceTable(top));
    KP_RETURN_IF_ERROR(PolicyTable(top));
    KP_RETURN_IF_ERROR(InputsTable(top));
    KP_RETURN_IF_ERROR(Tensors(top));
    KP_RETURN_IF_ERROR(Scalars(top));
    KP_RETURN_IF_ERROR(Workloads(top));
    KP_RETURN_IF_ERROR(CheckTask(task_, lines_, source_));
    return std::move(task_);
  }

 private:
  Status Names(const TomlTable& top) {
    KP_ASSIGN_OR_RETURN(task_.name, top.Text("name"));
    if (const auto why = WhyNotALabel(task_.name); !why.empty()) {
      return top.At(top.Find("name")->line, "this is not a name for a task", why);
    }
    KP_ASSIGN_OR_RETURN(task_.description, top.Text("description", ""));
    return Ok();
  }

  /// Axes, scalars and tensors are fields of one struct: no two have the same name.
  Status TakeName(const TomlTable& table, const std::string& name, std::uint32_t line) {
    if (const auto why = WhyNotAFieldName(name); !why.empty()) {
      return table.At(line, fmt::format("\"{}\" cannot be a name", Printable(name, 64)), why);
    }
    if (!names_.insert(name).second) {
      return table.At(line, fmt::format("the name \"{}\" is used twice", name),
                      "axes, scalars and tensors need different names");
    }
    return Ok();
  }

  Status Axes(const TomlTable& top) {
    KP_ASSIGN_OR_RETURN(const auto axes, top.TextList("axes"));
    for (const TomlNode* axis : axes) {
      KP_RETURN_IF_ERROR(TakeName(top, axis->text, axis->line));
      task_.axes.push_back(axis->text);
    }
    if (axes.empty()) {
      return top.At(top.Find("axes")->line, "a task needs at least one axis");
    }
    return Ok();
  }

  Status CheckedExpression(const std::string& text, std::uint32_t line) const {
    if (const Status status = CheckExpression(text, task_.axes); !status) {
      return source_.At(status.error().code, line, status.error().message,
                        fmt::format("axes: {}; operators: + - * / % ( ) min max ceil_div",
                                    fmt::join(task_.axes, ", ")));
    }
    return Ok();
  }

  Status Costs(const TomlTable& top) {
    KP_ASSIGN_OR_RETURN(task_.flops, top.Text("flops"));
    lines_.flops = top.Find("flops")->line;
    lines_.compulsory_bytes = lines_.flops;
    KP_RETURN_IF_ERROR(CheckedExpression(task_.flops, lines_.flops));
    KP_ASSIGN_OR_RETURN(task_.compulsory_bytes, top.Text("compulsory_bytes", ""));
    if (const TomlNode* node = top.Find("compulsory_bytes"); node != nullptr) {
      lines_.compulsory_bytes = node->line;
      return CheckedExpression(task_.compulsory_bytes, node->line);
    }
    return Ok();
  }

  Status ToleranceTable(const TomlTable& top) {
    const TomlNode* node = top.Find("tolerance");
    if (node == nullptr) {
      return Ok();
    }
    KP_ASSIGN_OR_RETURN(const TomlTable table,
                        TomlTable::Open(*node, source_, "[tolerance]", {"absolute", "relative"}));
    KP_ASSIGN_OR_RETURN(task_.tolerance.absolute,
                        table.Number("absolute", task_.tolerance.absolute));
    KP_ASSIGN_OR_RETURN(task_.tolerance.relative,
                        table.Number("relative", task_.tolerance.relative));
    for (const TomlNode& member : node->items) {
      // Above 1 an output of zeros would pass.
      if (member.number < 0 || member.number >= 1) {
        return table.At(member.line, fmt::format("\"{}\" is out of range", member.key),
                        "allowed: 0 <= value < 1");
      }
    }
    return Ok();
  }

  Status PolicyTable(const TomlTable& top) {
    const TomlNode* node = top.Find("policy");
    if (node == nullptr) {
      return Ok();
    }
    KP_ASSIGN_OR_RETURN(const TomlTable table, TomlTable::Open(*node, source_, "[policy]",
                                                               {"lowest_precision", "libraries"}));
    if (table.Find("lowest_precision") != nullptr) {
      KP_ASSIGN_OR_RETURN(task_.policy.lowest_precision,
                          table.Word("lowest_precision", kPrecisions));
    }
    if (table.Find("libraries") == nullptr) {
      return Ok();
    }
    KP_ASSIGN_OR_RETURN(const auto libraries, table.TextList("libraries"));
    for (const TomlNode* library : libraries) {
      if (IndexOf(kLibraries, library->text) == kLibraries.size()) {
        return table.At(library->line,
                        fmt::format("unknown library \"{}\"", Printable(library->text, 64)),
                        fmt::format("allowed: {}", fmt::join(kLibraries, ", ")));
      }
      task_.policy.libraries.push_back(library->text);
    }
    return Ok();
  }

  Status InputsTable(const TomlTable& top) {
    if (const TomlNode* node = top.Find("inputs"); node != nullptr) {
      KP_ASSIGN_OR_RETURN(task_.distributions, ReadDistributions(*node, source_));
    }
    return Ok();
  }

  Result<DType> ReadDType(const TomlTable& table) const {
    KP_ASSIGN_OR_RETURN(const std::string word, table.Word("dtype", kDTypes));
    return ParseDType(word).value_or(DType::kF32);
  }

  Status Tensors(const TomlTable& top) {
    KP_ASSIGN_OR_RETURN(const TomlNode* node, top.Required("tensors"));
    KP_RETURN_IF_ERROR(top.Expect(*node, "tensors", TomlNode::Kind::kTable));
    for (const TomlNode& member : node->items) {
      KP_RETURN_IF_ERROR(TakeName(top, member.key, member.line));
      KP_RETURN_IF_ERROR(Tensor(member));
    }
    return Ok();
  }

  Status Tensor(const TomlNode& node) {
    KP_ASSIGN_OR_RETURN(const TomlTable table,
                        TomlTable::Open(node, source_, fmt::format("tensor {}", node.key),
                                        {"dtype", "role", "shape", "fill", "error_scale"}));
    TensorSpec tensor;
    tensor.name = node.key;
    KP_ASSIGN_OR_RETURN(tensor.dtype, ReadDType(table));
    KP_ASSIGN_OR_RETURN(const std::string role, table.Word("role", kRoles));
    tensor.role = role == "input" ? Role::kInput : Role::kOutput;
    KP_RETURN_IF_ERROR(ReadShape(table, &tensor));
    const TomlNode* fill = table.Find("fill");
    if (fill != nullptr && tensor.role == Role::kOutput) {
      return table.At(fill->line, "an output has no fill", "only inputs are filled");
    }
    if (fill != nullptr) {
      KP_ASSIGN_OR_RETURN(tensor.fill, ReadFill(*fill, tensor, source_));
    } else if (!IsFloat(tensor.dtype)) {
      tensor.fill = {.kind = Fill::Kind::kIntegers, .a = 0, .b = 100};
    }
    KP_RETURN_IF_ERROR(ReadErrorScale(table, &tensor));
    lines_.tensors.push_back(node.line);
    task_.tensors.push_back(std::move(tensor));
    return Ok();
  }

  static Status ReadErrorScale(const TomlTable& table, TensorSpec* tensor) {
    const TomlNode* node = table.Find("error_scale");
    if (node == nullptr) {
      return Ok();
    }
    KP_ASSIGN_OR_RETURN(const std::string scale, table.Word("error_scale", kErrorScales));
    if (tensor->role != Role::kOutput || !IsFloat(tensor->dtype)) {
      return table.At(node->line, "only an output of a float type has an error scale",
                      "inputs are not judged, and integer outputs must be equal");
    }
    tensor->error_scale = static_cast<ErrorScale>(IndexOf(kErrorScales, scale));
    return Ok();
  }

  /// An extent is a whole number or an expression.
  Status ReadShape(const TomlTable& table, TensorSpec* tensor) const {
    KP_ASSIGN_OR_RETURN(const TomlNode* shape, table.Required("shape"));
    KP_RETURN_IF_ERROR(table.Expect(*shape, "shape", TomlNode::Kind::kArray));
    for (const TomlNode& extent : shape->items) {
      if (extent.kind == TomlNode::Kind::kInteger) {
        tensor->shape.push_back(fmt::format("{}", extent.integer));
      } else if (extent.kind == TomlNode::Kind::kString) {
        tensor->shape.push_back(extent.text);
      } else {
        return table.At(extent.line,
                        "an extent of a shape is an axis, an expression in quotes, "
                        "or a whole number");
      }
      KP_RETURN_IF_ERROR(CheckedExpression(tensor->shape.back(), extent.line));
    }
    constexpr std::size_t kMaxRank = 8;
    if (tensor->shape.empty() || tensor->shape.size() > kMaxRank) {
      return table.At(shape->line, fmt::format("a shape has 1 to {} extents", kMaxRank),
                      "a single value is shape = [1]");
    }
    return Ok();
  }

  Status Scalars(const TomlTable& top) {
    const TomlNode* node = top.Find("scalars");
    if (node == nullptr) {
      return Ok();
    }
    KP_RETURN_IF_ERROR(top.Expect(*node, "scalars", TomlNode::Kind::kTable));
    for (const TomlNode& member : node->items) {
      KP_RETURN_IF_ERROR(TakeName(top, member.key, member.line));
      KP_ASSIGN_OR_RETURN(const TomlTable table,
                          TomlTable::Open(member, source_, fmt::format("scalar {}", member.key),
                                          {"dtype", "value"}));
      ScalarSpec scalar;
      scalar.name = member.key;
      KP_ASSIGN_OR_RETURN(scalar.dtype, ReadDType(table));
      KP_ASSIGN_OR_RETURN(scalar.value, table.Number("value"));
      if (!IsFloat(scalar.dtype) && !IsWholeOf(scalar.dtype, scalar.value)) {
        return table.At(member.line, "the value does not fit the type",
                        AllowedWholeNumbers(scalar.dtype));
      }
      task_.scalars.push_back(std::move(scalar));
    }
    return Ok();
  }

  Status Workloads(const TomlTable& top) {
    KP_ASSIGN_OR_RETURN(const TomlNode* node, top.Required("workloads"));
    KP_RETURN_IF_ERROR(top.Expect(*node, "workloads", TomlNode::Kind::kArray));
    std::set<std::string> labels;
    for (const TomlNode& item : node->items) {
      KP_ASSIGN_OR_RETURN(
          const TomlTable table,
          TomlTable::Open(item, source_, "a workload", {"name", "kind", "weight", "axes"}));
      Workload workload;
      KP_ASSIGN_OR_RETURN(workload.name, table.Text("name"));
      const std::uint32_t name_line = table.Find("name")->line;
      if (const auto why = WhyNotALabel(workload.name); !why.empty()) {
        return table.At(name_line, "this is not a name for a workload", why);
      }
      if (!labels.insert(workload.name).second) {
        return table.At(name_line, fmt::format("two workloads are named \"{}\"", workload.name));
      }
      KP_ASSIGN_OR_RETURN(const std::string kind, table.Word("kind", kWorkloadKinds));
      workload.kind = static_cast<Workload::Kind>(IndexOf(kWorkloadKinds, kind));
      KP_RETURN_IF_ERROR(ReadWeight(table, &workload));
      KP_RETURN_IF_ERROR(ReadAxisValues(table, &workload));
      lines_.workloads.push_back(item.line);
      task_.workloads.push_back(std::move(workload));
    }
    return Ok();
  }

  static Status ReadWeight(const TomlTable& table, Workload* workload) {
    KP_ASSIGN_OR_RETURN(workload->weight, table.Number("weight", 1));
    const TomlNode* node = table.Find("weight");
    if (node != nullptr && workload->kind != Workload::Kind::kTimed) {
      return table.At(node->line, "only timed workloads have a weight");
    }
    if (workload->weight <= 0) {
      return table.At(node->line, "a weight must be above 0",
                      "leave the workload out, or make its kind \"checked\"");
    }
    return Ok();
  }

  Status ReadAxisValues(const TomlTable& table, Workload* workload) {
    KP_ASSIGN_OR_RETURN(const TomlNode* node, table.Required("axes"));
    KP_RETURN_IF_ERROR(table.Expect(*node, "axes", TomlNode::Kind::kTable));
    const std::string allowed = fmt::format("axes: {}", fmt::join(task_.axes, ", "));
    for (const TomlNode& value : node->items) {
      if (std::ranges::find(task_.axes, value.key) == task_.axes.end()) {
        return table.At(value.line, fmt::format("\"{}\" is not an axis", Printable(value.key, 64)),
                        allowed);
      }
      constexpr std::int64_t kMaxAxis = 1LL << 40;
      if (value.kind != TomlNode::Kind::kInteger || value.integer < 1 || value.integer > kMaxAxis) {
        return table.At(value.line,
                        fmt::format("the value of axis \"{}\" is not usable", value.key),
                        "allowed: whole numbers from 1 to 2^40");
      }
      workload->axes[value.key] = value.integer;
    }
    for (const std::string& axis : task_.axes) {
      if (!workload->axes.contains(axis)) {
        return table.At(
            node->line,
            fmt::format("workload \"{}\" gives no value for axis \"{}\"", workload->name, axis),
            allowed);
      }
    }
    return Ok();
  }

  const TomlSource& source_;
  Task task_;
  TaskLines lines_;
  std::set<std::string> names_;
};

}  // namespace

Result<Task> ParseTask(std::string_view toml, std::string_view shown_path) {
  const TomlSource source(toml, shown_path);
  KP_ASSIGN_OR_RETURN(const TomlNode root, ParseToml(toml, source));
  return TaskReader(source).Read(root);
}

Result<Task> LoadTask(const fs::path& folder) {
  const fs::path file = folder / "task.toml";
  std::error_code error;
  if (!fs::exists(file, error)) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("{} is not a task folder: it has no task.toml", folder.string()));
  }
  KP_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  KP_ASSIGN_OR_RETURN(Task task, ParseTask(text, file.string()));
  task.folder = folder;
  task.reference = folder / "reference.cc";
  if (!fs::is_regular_file(task.reference, error)) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("{} is missing: it defines kernelpro_reference, which computes the "
                            "expected outputs",
                            task.reference.string()));
  }
  if (fs::is_regular_file(folder / "seed.cu", error)) {
    task.seed = folder / "seed.cu";
  }
  return task;
}

}  // namespace kernelpro
