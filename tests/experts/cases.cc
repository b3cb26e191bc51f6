// SPDX-License-Identifier: Apache-2.0
#include "cases.h"

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "compact.h"
#include "device/emulated_launch.h"
#include "diagnose/diagnose.h"
#include "emulator/model/model.h"
#include "task/toml.h"

namespace kernelpro::experts {
namespace {

Result<TomlNode> Read(const std::filesystem::path& path) {
  KP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseToml(text, TomlSource(text, path.string()));
}

std::string Text(const TomlNode& node, std::string_view key) {
  const TomlNode* found = node.Find(key);
  return found == nullptr ? std::string() : found->text;
}

void Figure(const TomlNode& node, std::string_view key, const std::string& name,
            std::map<std::string, double>& task) {
  if (const TomlNode* found = node.Find(key); found != nullptr && found->number > 0) {
    task[name] = found->number;
  }
}

}  // namespace

Result<std::vector<MatrixCase>> ReadMatrix(const std::filesystem::path& folder) {
  KP_ASSIGN_OR_RETURN(const TomlNode root, Read(folder / "expectations.toml"));
  std::vector<MatrixCase> cases;
  const TomlNode* list = root.Find("case");
  for (std::size_t i = 0; list != nullptr && i < list->items.size(); ++i) {
    const TomlNode& node = list->items[i];
    MatrixCase one{Text(node, "name"),
                   Text(node, "program"),
                   Text(node, "tool"),
                   node.Find("fires") != nullptr && node.Find("fires")->boolean,
                   {}};
    Figure(node, "min_bytes", "compulsory_bytes", one.task);
    if (const TomlNode* product = node.Find("product"); product != nullptr) {
      double flops = 2;
      for (const TomlNode& side : product->items) {
        flops *= side.number;
      }
      one.task["flops"] = flops;
    }
    cases.push_back(std::move(one));
  }
  return cases;
}

Result<std::vector<PairCase>> ReadPairs(const std::filesystem::path& list) {
  KP_ASSIGN_OR_RETURN(const TomlNode root, Read(list));
  std::vector<PairCase> pairs;
  for (const TomlNode& node : root.items) {
    PairCase pair{node.key, Text(node, "program"), {}, {}};
    Figure(node, "min_bytes", "compulsory_bytes", pair.task);
    for (const TomlNode& id : node.Find("tools")->items) {
      pair.tools.push_back(id.text);
    }
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

Result<std::vector<TunedCase>> ReadTuned(const std::filesystem::path& folder) {
  KP_ASSIGN_OR_RETURN(const TomlNode root, Read(folder / "tuned.toml"));
  std::vector<TunedCase> cases;
  for (const TomlNode& node : root.items) {
    TunedCase one{node.key, Text(node, "program"), Text(node, "kernel"), {}};
    Figure(node, "bytes", "compulsory_bytes", one.task);
    Figure(node, "flops", "flops", one.task);
    cases.push_back(std::move(one));
  }
  return cases;
}

const Profile* Profiles::Program(const std::string& program) {
  const auto [found, is_new] = programs_.try_emplace(program);
  if (is_new) {
    const std::filesystem::path path = folder_ / (program + ".json");
    const auto text = ReadFile(path, 1U << 30U);
    if (text) {
      auto profile = FromCompact(*text, path.string());
      if (profile) {
        found->second = std::move(profile).value();
      }
    }
  }
  return found->second ? &*found->second : nullptr;
}

std::optional<Profile> Profiles::Kernel(const std::string& program, const std::string& kernel) {
  const Profile* all = Program(program);
  if (all == nullptr) {
    return std::nullopt;
  }
  const auto found = std::ranges::find(all->kernels, kernel, &KernelProfile::name);
  if (found == all->kernels.end()) {
    return std::nullopt;
  }
  Profile one;
  one.device = all->device;
  one.source = all->source;
  one.system = all->system;
  one.kernels.push_back(*found);
  one.kernels[0].time_share = 1;
  return one;
}

Hardware H200() {
  const auto spec = model::LoadSpec("h200");
  return spec ? HardwareOf(*spec) : Hardware();
}

Diagnosis Judge(Profile profile, const std::map<std::string, double>& task) {
  for (const auto& [name, value] : task) {
    profile.task[name] = {value, name == "flops" ? "flop" : "byte", Provenance::kCounted};
  }
  return Diagnose(profile, H200());
}

bool Fired(const Diagnosis& diagnosis, const std::string& id) {
  return RankOf(diagnosis, {id}).has_value() ||
         std::ranges::any_of(diagnosis.suppressed, [&](const Suppressed& s) { return s.id == id; });
}

std::optional<std::size_t> RankOf(const Diagnosis& diagnosis, const std::vector<std::string>& ids) {
  for (std::size_t i = 0; i < diagnosis.findings.size(); ++i) {
    if (std::ranges::find(ids, diagnosis.findings[i].id) != ids.end()) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace kernelpro::experts
