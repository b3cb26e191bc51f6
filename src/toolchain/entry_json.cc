// SPDX-License-Identifier: Apache-2.0
#include "toolchain/entry_json.h"

#include <chrono>
#include <cstdint>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace kernelpro {
namespace {

using Json = nlohmann::json;

constexpr int kFormat = 1;

Json ToJson(const KernelFigures& figures) {
  return {{"registers", figures.registers},
          {"shared_bytes", figures.shared_bytes},
          {"stack_bytes", figures.stack_bytes},
          {"spill_store_bytes", figures.spill_store_bytes},
          {"spill_load_bytes", figures.spill_load_bytes},
          {"constant_bytes", figures.constant_bytes},
          {"barriers", figures.barriers}};
}

KernelFigures FiguresFrom(const Json& json) {
  return {.registers = json.at("registers").get<std::uint32_t>(),
          .shared_bytes = json.at("shared_bytes").get<std::uint64_t>(),
          .stack_bytes = json.at("stack_bytes").get<std::uint64_t>(),
          .spill_store_bytes = json.at("spill_store_bytes").get<std::uint64_t>(),
          .spill_load_bytes = json.at("spill_load_bytes").get<std::uint64_t>(),
          .constant_bytes = json.at("constant_bytes").get<std::uint64_t>(),
          .barriers = json.at("barriers").get<std::uint32_t>()};
}

Json ToJson(const Diagnostic& diagnostic) {
  return {{"severity", static_cast<int>(diagnostic.severity)},
          {"file", diagnostic.file},
          {"line", diagnostic.line},
          {"text", diagnostic.text}};
}

Diagnostic DiagnosticFrom(const Json& json) {
  const int severity = json.at("severity").get<int>();
  return {.severity = severity == 0   ? Diagnostic::Severity::kError
                      : severity == 1 ? Diagnostic::Severity::kWarning
                                      : Diagnostic::Severity::kNote,
          .file = json.at("file").get<std::string>(),
          .line = json.at("line").get<std::uint32_t>(),
          .text = json.at("text").get<std::string>()};
}

EntryManifest ManifestFrom(const Json& json) {
  EntryManifest manifest;
  Build& build = manifest.build;
  build.key = json.at("key").get<std::string>();
  build.library = json.at("library").get<std::string>();
  build.ptx = json.at("ptx").get<std::string>();
  build.cubin = json.at("cubin").get<std::string>();
  build.elapsed = std::chrono::milliseconds(json.at("elapsed_ms").get<std::int64_t>());
  for (const auto& [name, figures] : json.at("kernels").items()) {
    build.kernels[name] = FiguresFrom(figures);
  }
  for (const Json& diagnostic : json.at("diagnostics")) {
    build.diagnostics.push_back(DiagnosticFrom(diagnostic));
  }
  for (const Json& file : json.at("files")) {
    manifest.files.push_back({.name = file.at("name").get<std::string>(),
                              .bytes = file.at("bytes").get<std::uint64_t>(),
                              .hash = file.at("hash").get<std::uint64_t>()});
  }
  return manifest;
}

}  // namespace

std::string ManifestToJson(const EntryManifest& manifest) {
  const Build& build = manifest.build;
  Json kernels = Json::object();
  for (const auto& [name, figures] : build.kernels) {
    kernels[name] = ToJson(figures);
  }
  Json diagnostics = Json::array();
  for (const Diagnostic& diagnostic : build.diagnostics) {
    diagnostics.push_back(ToJson(diagnostic));
  }
  Json files = Json::array();
  for (const EntryFile& file : manifest.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"hash", file.hash}});
  }
  const Json json = {{"format", kFormat},
                     {"key", build.key},
                     {"library", build.library.string()},
                     {"ptx", build.ptx.string()},
                     {"cubin", build.cubin.string()},
                     {"elapsed_ms", build.elapsed.count()},
                     {"kernels", std::move(kernels)},
                     {"diagnostics", std::move(diagnostics)},
                     {"files", std::move(files)}};
  // Texts come from compilers and may hold broken UTF-8, which must not throw here.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<EntryManifest> ManifestFromJson(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) {
    return Fail(ErrorCode::kParse, "the manifest is not JSON");
  }
  try {
    if (json.at("format").get<int>() != kFormat) {
      return Fail(ErrorCode::kParse, "the manifest has another format");
    }
    return ManifestFrom(json);
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kParse, std::string("the manifest is damaged: ") + error.what());
  }
}

}  // namespace kernelpro
