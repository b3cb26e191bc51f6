// SPDX-License-Identifier: Apache-2.0
#include "profile/build_facts.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/text.h"

namespace kernelpro {
namespace {

struct Target {
  int arch = 0;
  bool accelerated = false;
};

/// "sm_90a" or "compute_90"; nothing for anything else.
std::optional<Target> TargetOf(std::string_view word) {
  const std::size_t underscore = word.find('_');
  if (underscore == std::string_view::npos) {
    return std::nullopt;
  }
  Target target;
  std::size_t i = underscore + 1;
  for (; i < word.size() && word[i] >= '0' && word[i] <= '9' && target.arch < 10000; ++i) {
    target.arch = 10 * target.arch + (word[i] - '0');
  }
  target.accelerated = i < word.size() && word[i] == 'a';
  return target.arch > 0 ? std::optional(target) : std::nullopt;
}

class Facts {
 public:
  std::map<std::string, Metric> Of(std::span<const std::string> flags) {
    for (std::size_t i = 0; i < flags.size(); ++i) {
      const std::string_view flag = flags[i];
      const std::string_view next = i + 1 < flags.size() ? std::string_view(flags[i + 1]) : "";
      Switches(flag);
      Cap(flag, next);
      // The last one: "-gencode=arch=compute_90,code=sm_90" has the letters twice.
      if (const std::size_t code = flag.rfind("code="); code != std::string_view::npos) {
        Code(flag.substr(code + 5));
      } else if (flag.starts_with("-arch=") || flag.starts_with("--gpu-architecture=")) {
        Code(flag.substr(flag.find('=') + 1));
      } else if (flag == "-arch" || flag == "--gpu-architecture") {
        Code(next);
      }
    }
    if (newest_.arch > 0) {
      Set("build.arch", newest_.arch);
      Set("build.accelerated", newest_.accelerated ? 1 : 0);
      Set("build.ptx_only", machine_code_ ? 0 : 1);
    }
    return std::move(facts_);
  }

 private:
  void Set(const std::string& name, double value) {
    facts_[name] = {value, "", Provenance::kCounted};
  }

  void Switches(std::string_view flag) {
    if (flag == "-G" || flag == "--device-debug") {
      Set("build.debug", 1);
      Set("build.lineinfo", 1);
    } else if (flag == "-lineinfo" || flag == "--generate-line-info") {
      Set("build.lineinfo", 1);
    } else if (flag == "-fmad=false" || flag == "--fmad=false") {
      Set("build.fmad_off", 1);
    } else if (flag == "-rdc=true" || flag == "--relocatable-device-code=true" || flag == "-dc") {
      Set("build.rdc", 1);
    }
  }

  void Cap(std::string_view flag, std::string_view next) {
    for (const std::string_view name : {"-maxrregcount", "--maxrregcount"}) {
      long long registers = 0;
      const bool joined =
          flag.starts_with(name) && flag.size() > name.size() && flag[name.size()] == '=';
      if ((joined && ParseInteger(flag.substr(name.size() + 1), &registers)) ||
          (flag == name && ParseInteger(next, &registers))) {
        Set("build.maxrregcount", static_cast<double>(registers));
      }
    }
  }

  /// "sm_90a", "[compute_90,sm_90]", "compute_80"
  void Code(std::string_view list) {
    std::string plain(list);
    std::erase_if(plain, [](char c) { return c == '[' || c == ']' || c == '"' || c == '\''; });
    for (const std::string_view word : Split(plain, ',')) {
      const std::optional<Target> target = TargetOf(Trim(word));
      if (!target) {
        continue;
      }
      machine_code_ = machine_code_ || Trim(word).starts_with("sm_");
      if (target->arch > newest_.arch || (target->arch == newest_.arch && target->accelerated)) {
        newest_ = *target;
      }
    }
  }

  std::map<std::string, Metric> facts_;
  Target newest_;
  bool machine_code_ = false;
};

}  // namespace

std::map<std::string, Metric> BuildFacts(std::span<const std::string> flags) {
  return Facts().Of(flags);
}

}  // namespace kernelpro
