// SPDX-License-Identifier: Apache-2.0
#include "propose/playbook/testing/host_run.h"

#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "base/file.h"

namespace kernelpro::playbook {
namespace {

/// K<<<grid, block>>>(a, b)  ->  host_cuda::Launch([&] { K(a, b); }, grid, block)
std::string WithHostLaunches(std::string text) {
  for (std::size_t at = text.find("<<<"); at != std::string::npos; at = text.find("<<<", at + 1)) {
    std::size_t name = at;
    while (name > 0 && (std::isalnum(static_cast<unsigned char>(text[name - 1])) != 0 ||
                        text[name - 1] == '_')) {
      --name;
    }
    const std::size_t close = text.find(">>>", at);
    const std::size_t open = text.find('(', close);
    std::size_t end = open;
    for (int depth = 0; end < text.size(); ++end) {
      depth += text[end] == '(' ? 1 : 0;
      depth -= text[end] == ')' ? 1 : 0;
      if (depth == 0) {
        break;
      }
    }
    const std::string call =
        fmt::format("host_cuda::Launch([&] {{ {}{}; }}, {})", text.substr(name, at - name),
                    text.substr(open, end + 1 - open), text.substr(at + 3, close - at - 3));
    text.replace(name, end + 1 - name, call);
    at = name;
  }
  return text;
}

std::string Fields(const Task& task, const AxisValues& axes, bool reference) {
  std::string text;
  for (const std::string& axis : task.axes) {
    text += fmt::format("{}, ", axes.at(axis));
  }
  for (const ScalarSpec& scalar : task.scalars) {
    text += fmt::format("{}, ", scalar.value);
  }
  for (const TensorSpec& tensor : task.tensors) {
    text += fmt::format("{}_{}.data(), ", reference ? "want" : "got", tensor.name);
  }
  return text;
}

/// Guard elements around every output show writes out of bounds.
std::string CheckOf(const Task& task, const Workload& workload, double relative) {
  std::string text = "  {\n    unsigned state = 12345;\n";
  std::string compare;
  for (const TensorSpec& tensor : task.tensors) {
    const auto count = ElementCount(tensor, workload.axes);
    if (!count) {
      return "#error " + count.error().message;
    }
    const bool input = tensor.role == Role::kInput;
    text += fmt::format(
        "    std::vector<float> got_{0}({1} + 64, {2});\n"
        "    std::vector<double> want_{0}({1}, 0.0);\n",
        tensor.name, *count, input ? "0.0f" : "NAN");
    if (input) {
      text += fmt::format("    Fill(got_{0}, want_{0}, state);\n", tensor.name);
    } else {
      compare += fmt::format("    failed |= Differs(\"{}\", \"{}\", got_{}, want_{}, {:g});\n",
                             workload.name, tensor.name, tensor.name, tensor.name, relative);
    }
  }
  text += fmt::format(
      "    TaskArgs args{{{}}};\n    ReferenceArgs reference{{{}}};\n"
      "    kernelpro_reference(&reference);\n    kernelpro_run(&args, nullptr);\n{}  }}\n",
      Fields(task, workload.axes, false), Fields(task, workload.axes, true), compare);
  return text;
}

constexpr std::string_view kHelpers = R"(
static void Fill(std::vector<float>& a, std::vector<double>& b, unsigned& state) {
  for (std::size_t i = 0; i < b.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    a[i] = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
    b[i] = a[i];
  }
}
static bool Differs(const char* workload, const char* name, const std::vector<float>& got,
                    const std::vector<double>& want, double relative) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool guard = i >= want.size();
    const bool fine = guard ? std::isnan(got[i])
                            : std::abs(got[i] - want[i]) <=
                                  relative * (1.0 + std::abs(want[i]));
    if (!fine) {
      std::printf("%s: %s[%zu] is %g, not %g\n", workload, name, i, got[i],
                  guard ? NAN : want[i]);
      return true;
    }
  }
  return false;
}
)";

std::string RunCommand(const std::string& command, const std::filesystem::path& log) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): tests have one thread
  const int status = std::system((command + " > " + log.string() + " 2>&1").c_str());
  if (status == 0) {
    return {};
  }
  const auto text = ReadFile(log);
  return fmt::format("status {} of {}:\n{}", status, command,
                     text ? text->substr(0, 4000) : text.error().message);
}

}  // namespace

std::string DifferenceOnHost(const Task& task, std::string_view source, double relative) {
  auto folder = TemporaryFolder::Create("playbook-host");
  if (!folder) {
    return folder.error().message;
  }
  std::string program =
      "#include \"host_cuda.h\"\n#include \"candidate.inc\"\n"
      "#include \"kernelpro_reference.h\"\n" +
      std::string(kHelpers) + "int main() {\n  bool failed = false;\n";
  for (const Workload& workload : task.workloads) {
    if (workload.kind != Workload::Kind::kTimed) {
      program += CheckOf(task, workload, relative);
    }
  }
  program += "  return failed ? 1 : 0;\n}\n";
  const std::filesystem::path root = folder->path();
  const std::pair<const char*, std::string> files[] = {
      {"kernelpro_task.h", CandidateHeader(task)},
      {"kernelpro_reference.h", ReferenceHeader(task)},
      {"candidate.inc", WithHostLaunches(std::string(source))},
      {"main.cc", program}};
  for (const auto& [name, text] : files) {
    if (const Status written = WriteFileAtomically(root / name, text); !written) {
      return written.error().message;
    }
  }
  const std::string command = fmt::format(
      "g++ -std=c++20 -O1 -w -I{0} -I{1} -I/usr/local/cuda/include {0}/main.cc {2} -o {0}/run",
      root.string(), KP_SOURCE_DIR "/src/propose/playbook/testing", task.reference.string());
  const std::string compiled = RunCommand(command, root / "log");
  return compiled.empty() ? RunCommand((root / "run").string(), root / "log") : compiled;
}

std::string NvccErrors(const Task& task, std::string_view source) {
  auto folder = TemporaryFolder::Create("playbook-nvcc");
  if (!folder) {
    return folder.error().message;
  }
  const std::filesystem::path root = folder->path();
  for (const auto& [name, text] : {std::pair("kernelpro_task.h", CandidateHeader(task)),
                                   std::pair("candidate.cu", std::string(source))}) {
    if (const Status written = WriteFileAtomically(root / name, text); !written) {
      return written.error().message;
    }
  }
  return RunCommand(fmt::format("nvcc -std=c++17 -arch=sm_90 -ptx -I{0} {0}/candidate.cu -o "
                                "{0}/candidate.ptx",
                                root.string()),
                    root / "log");
}

}  // namespace kernelpro::playbook
