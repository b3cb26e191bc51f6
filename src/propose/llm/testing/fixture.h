// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "propose/llm/llm_proposer.h"
#include "propose/llm/testing/scripted_client.h"

namespace kernelpro::agents::testing {

/// A search that stands at the softmax example, with figures made up for it.
class LlmProposerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string folder = std::string(KP_SOURCE_DIR) + "/examples/tasks/row_softmax";
    Result<Task> loaded = LoadTask(folder);
    ASSERT_TRUE(loaded) << loaded.error().message;
    task = std::move(*loaded);
    Result<std::string> source = ReadFile(folder + "/seed.cu");
    ASSERT_TRUE(source);
    parent.source = *source;
    parent.flags = {"-O3"};

    Finding loads;
    loads.id = "mem.coalesce_ld";
    loads.title = "Uncoalesced global loads";
    loads.kernel = "RowSoftmax";
    loads.line = 19;
    loads.bound = 0.5;
    loads.seen = "4.0 of 32 bytes per sector used (want >= 28)";
    loads.why = "Neighbouring lanes read different rows.";
    loads.action = "Give each row to a warp.";
    loads.check = "sectors per request should fall from 32 to 4";
    loads.avoid = "Do not raise occupancy.";
    Finding math;
    math.id = "cmp.sfu";
    math.title = "Many exponentials";
    math.kernel = "RowSoftmax";
    math.seen = "two expf per element";
    diagnosis.findings = {loads, math};
    diagnosis.suppressed = {{"lat.long_scoreboard", "RowSoftmax", "mem.coalesce_ld", "same cause"}};
    diagnosis.not_run = {{"mem.bank", "RowSoftmax", {"shared.wavefronts"}}};
    feedback = "PRIMARY [critical] Uncoalesced global loads\nDO      Give each row to a warp.\n";

    KernelProfile kernel;
    kernel.name = "RowSoftmax";
    kernel.time_us = 400;
    kernel.metrics["dram__bytes_read.sum"] = {.value = 123456789, .unit = "byte"};
    kernel.metrics["sm__warps_active.avg"] = {.value = 51.5, .unit = "%"};
    profile.kernels = {kernel};

    seed_node = {.node = 1, .action = "seed", .verdict = "ok", .time_us = 800};
    node = {.node = 5,
            .parent = 1,
            .action = "merge_loops",
            .finding = "cmp.sfu",
            .verdict = "ok",
            .time_us = 400};
  }

  /// The node is right and was made from the seed.
  [[nodiscard]] ProposalRequest Right() const {
    return {.task = task,
            .parent = parent,
            .diagnosis = diagnosis,
            .profile = profile,
            .node = node,
            .feedback = feedback,
            .path = {seed_node, node},
            .best = {.node = 7, .action = "unroll", .verdict = "ok", .time_us = 320},
            .seed_us = 800,
            .provenance = "modelled",
            .gpu = "H200 (emulated)"};
  }

  [[nodiscard]] ProposalRequest Wrong() const {
    ProposalRequest request{.task = task,
                            .parent = parent,
                            .diagnosis = nothing_found,
                            .profile = nothing_measured,
                            .node = node,
                            .path = {seed_node, node},
                            .best = seed_node,
                            .seed_us = 800,
                            .provenance = "modelled",
                            .gpu = "H200 (emulated)"};
    request.node.verdict = "compile_error";
    request.node.verdict_reason = "k.cu(12): error: identifier \"rwo\" is undefined";
    request.node.time_us = 0;
    request.path.back() = request.node;
    return request;
  }

  [[nodiscard]] std::unique_ptr<Proposer> Make(LlmProposerOptions options,
                                               Workshop* workshop = nullptr,
                                               const codesearch::CodeIndex* code = nullptr) {
    Result<std::unique_ptr<Proposer>> made =
        MakeLlmProposer(client, std::move(options), workshop, code);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }

  [[nodiscard]] static LlmProposerOptions NoResearch() {
    LlmProposerOptions options;
    options.research = false;
    return options;
  }

  /// What the planner may answer.
  [[nodiscard]] static std::string PlanJson(const std::string& technique = "warp_per_row",
                                            const std::string& finding = "mem.coalesce_ld",
                                            const std::string& differs = "") {
    return nlohmann::json{{"technique", technique},
                          {"finding", finding},
                          {"plan", "Let a warp work on one row; lanes stride over the columns."},
                          {"why", "Then lanes read neighbouring addresses."},
                          {"expected_gain", 3.0},
                          {"differs", differs}}
        .dump();
  }

  /// A kernel that can be told from others by `mark`.
  [[nodiscard]] static std::string Kernel(const std::string& mark = "a") {
    return "#include \"kernelpro_task.h\"\n\n// " + mark +
           "\nextern \"C\" cudaError_t kernelpro_run(const TaskArgs* args, cudaStream_t stream) "
           "{\n  return cudaGetLastError();\n}\n";
  }

  [[nodiscard]] static std::string Fenced(const std::string& source) {
    return "Here it is.\n\n```cuda\n" + source + "```\n";
  }

  Task task;
  Candidate parent;
  Diagnosis diagnosis, nothing_found;
  Profile profile, nothing_measured;
  NodeBrief seed_node, node;
  std::string feedback;
  ScriptedClient client;
  std::stop_source stop;
};

}  // namespace kernelpro::agents::testing
