// SPDX-License-Identifier: Apache-2.0
// The referee against a scripted device: every way to be wrong, each beside an honest candidate.
#include "evaluate/evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>

#include "base/file.h"

namespace kernelpro {
namespace {

using ::testing::HasSubstr;

/// Buffers in host memory; a "candidate" is a function over them.
struct Buffers {
  std::map<BufferId, std::vector<std::byte>> bytes;
  std::map<BufferId, std::string> names;

  float* Floats(const std::string& name) {
    for (auto& [id, b] : bytes) {
      if (names.at(id) == name) {
        return reinterpret_cast<float*>(b.data());
      }
    }
    return nullptr;
  }
};

struct Call {
  Buffers& buffers;
  CallMode mode;
  std::int64_t n;  ///< axis value from the argument block
  int number;      ///< of the call in its session
  CallOutcome outcome;
  bool guards_hit = false;
};

using Behaviour = std::function<void(Call&)>;

void Double(Call& call) {
  for (std::int64_t i = 0; i < call.n; ++i) {
    call.buffers.Floats("y")[i] = 2 * call.buffers.Floats("x")[i];
  }
}

class FakeSession : public Session {
 public:
  explicit FakeSession(Behaviour behaviour) : behaviour_(std::move(behaviour)) {}

  Result<BufferId> Allocate(const BufferRequest& request) override {
    buffers_.bytes[next_].resize(request.bytes);
    buffers_.names[next_] = request.name;
    return next_++;
  }

  Status Free(BufferId id) override {
    buffers_.bytes.erase(id);
    buffers_.names.erase(id);
    return Ok();
  }

  Status Write(BufferId id, std::uint64_t offset, std::span<const std::byte> bytes) override {
    std::memcpy(buffers_.bytes.at(id).data() + offset, bytes.data(), bytes.size());
    return Ok();
  }

  Status Read(BufferId id, std::uint64_t offset, std::span<std::byte> bytes) override {
    std::memcpy(bytes.data(), buffers_.bytes.at(id).data() + offset, bytes.size());
    return Ok();
  }

  Result<bool> GuardsIntact(BufferId) override { return !guards_hit_; }

  Result<CallOutcome> Call(const CallRequest& request, const std::stop_token&) override {
    kernelpro::Call call{buffers_, request.mode, 0, calls_++, {}};
    std::memcpy(&call.n, request.arguments.data(), sizeof call.n);
    call.outcome.device_us = 10;
    call.outcome.launches.resize(1);
    call.outcome.launches[0].time.time_us = call.outcome.device_us;
    behaviour_(call);
    guards_hit_ = call.guards_hit;
    return call.outcome;
  }

 private:
  Behaviour behaviour_;
  Buffers buffers_;
  BufferId next_ = 1;
  int calls_ = 0;
  bool guards_hit_ = false;
};

class FakeDevice : public Device {
 public:
  FakeDevice() {
    info_.id = "emulator:fake";
    info_.hardware.dram_peak_bytes_per_s = 1e9;  // 8 KB take 8 us.
    info_.hardware.fp32_flops_per_s = 1e15;
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }

  Result<std::unique_ptr<Session>> Open(const SessionRequest&) override {
    return std::unique_ptr<Session>(std::make_unique<FakeSession>(behaviour));
  }

  Behaviour behaviour = Double;

 private:
  DeviceInfo info_;
};

constexpr const char* kTask = R"(name = "twice"
axes = ["n"]
flops = "n"
[tolerance]
absolute = 1e-6
relative = 1e-6
[tensors.x]
dtype = "f32"
role = "input"
shape = ["n"]
[tensors.y]
dtype = "f32"
role = "output"
shape = ["n"]
[[workloads]]
name = "big"
kind = "timed"
axes = {n = 1000}
[[workloads]]
name = "odd"
kind = "checked"
axes = {n = 37}
[[workloads]]
name = "secret"
kind = "hidden"
axes = {n = 41}
)";

constexpr const char* kReference = R"(#include "kernelpro_reference.h"
extern "C" void kernelpro_reference(const ReferenceArgs* args) {
  for (int64_t i = 0; i < args->n; ++i) args->y[i] = 2 * args->x[i];
}
)";

class EvaluatorTest : public ::testing::Test {
 protected:
  EvaluatorTest() : folder_(TemporaryFolder::Create("kp-evaluate").value()) {}

  Result<std::unique_ptr<Evaluator>> Make(const char* reference = kReference) {
    EXPECT_TRUE(WriteFileAtomically(folder_.path() / "task.toml", kTask).ok());
    EXPECT_TRUE(WriteFileAtomically(folder_.path() / "reference.cc", reference).ok());
    auto task = LoadTask(folder_.path());
    EXPECT_TRUE(task.ok()) << task.error().message;
    EvaluatorOptions options;
    options.cache_folder = folder_.path() / "cache";
    return Evaluator::Create(*task, device_, options);
  }

  Evaluation Evaluate(Behaviour behaviour) {
    if (evaluator_ == nullptr) {
      auto made = Make();
      EXPECT_TRUE(made.ok()) << made.error().message;
      evaluator_ = std::move(made).value();
    }
    device_.behaviour = std::move(behaviour);
    BuildOutcome build;
    build.build.emplace();
    auto evaluation = evaluator_->Evaluate(build, {});
    EXPECT_TRUE(evaluation.ok());
    return *evaluation;
  }

  FakeDevice device_;

 private:
  TemporaryFolder folder_;
  std::unique_ptr<Evaluator> evaluator_;
};

TEST_F(EvaluatorTest, HonestCandidateIsOkAndTimed) {
  const Evaluation e = Evaluate(Double);
  EXPECT_EQ(e.verdict, Verdict::kOk) << e.reason;
  EXPECT_EQ(e.time_us, 10);
  ASSERT_EQ(e.checks.size(), 2U);
  EXPECT_EQ(e.checks[0].seeds, 3U);
  EXPECT_EQ(e.checked_calls, 8U) << "two workloads, three inputs each and the last once more";
  EXPECT_TRUE(e.checks[1].hidden);
  EXPECT_EQ(e.checks[0].errors[0].elements, 37U);
  ASSERT_EQ(e.times.size(), 1U);
  EXPECT_NEAR(e.times[0].floor_us, 8, 1e-9);
}

TEST_F(EvaluatorTest, InputsAndPoisonAreNewInEveryCall) {
  std::vector<float> inputs;
  std::vector<std::string> poison;
  Evaluate([&](Call& call) {
    if (call.n == 37) {
      inputs.push_back(call.buffers.Floats("x")[0]);
      // All of it: a single word has only eight random bits beside those that make it a NaN.
      poison.emplace_back(reinterpret_cast<const char*>(call.buffers.Floats("y")),
                          37 * sizeof(float));
    }
    Double(call);
  });
  ASSERT_EQ(inputs.size(), 4U);
  EXPECT_NE(inputs[0], inputs[1]);
  EXPECT_NE(inputs[1], inputs[2]);
  EXPECT_EQ(inputs[2], inputs[3]) << "the repeat has the same inputs";
  EXPECT_NE(poison[2], poison[3]) << "and other poison";
}

TEST_F(EvaluatorTest, WrongAndUnwrittenElements) {
  Evaluation e = Evaluate([](Call& call) {
    Double(call);
    call.buffers.Floats("y")[call.n - 1] += 1;
  });
  EXPECT_EQ(e.verdict, Verdict::kWrongResult);
  EXPECT_THAT(e.reason, HasSubstr("1 of 37 elements of 'y' are wrong on workload 'odd'"));
  EXPECT_EQ(e.time_us, 0);
  e = Evaluate([](Call& call) {
    call.n -= 1;
    Double(call);
  });
  EXPECT_EQ(e.verdict, Verdict::kUnwrittenOutput);
  e = Evaluate([](Call&) {});
  EXPECT_EQ(e.verdict, Verdict::kUnwrittenOutput);
  EXPECT_THAT(e.reason, HasSubstr("37 of 37"));
}

TEST_F(EvaluatorTest, HiddenShapesAreCheckedAndNotNamed) {
  const Evaluation e = Evaluate([](Call& call) {
    if (call.n == 41) {
      call.n = 40;
    }
    Double(call);
  });
  EXPECT_EQ(e.verdict, Verdict::kUnwrittenOutput);
  EXPECT_THAT(e.reason, HasSubstr("a hidden workload"));
  EXPECT_THAT(e.reason, ::testing::Not(HasSubstr("secret")));
}

TEST_F(EvaluatorTest, ChangedInputGuardsAndReplay) {
  EXPECT_EQ(Evaluate([](Call& call) {
              Double(call);
              call.buffers.Floats("x")[0] = 0;
            }).verdict,
            Verdict::kInputModified);
  EXPECT_EQ(Evaluate([](Call& call) {
              Double(call);
              call.guards_hit = true;
            }).verdict,
            Verdict::kOutOfBounds);
  std::vector<float> kept;  // Replays the answer of the first call.
  EXPECT_EQ(Evaluate([&kept](Call& call) {
              if (kept.empty()) {
                Double(call);
                kept.assign(call.buffers.Floats("y"), call.buffers.Floats("y") + call.n);
              }
              std::memcpy(call.buffers.Floats("y"), kept.data(),
                          std::min<std::size_t>(kept.size(), static_cast<std::size_t>(call.n)) * 4);
            }).verdict,
            Verdict::kWrongResult);
  EXPECT_EQ(Evaluate([](Call& call) {
              Double(call);
              if (call.number == 3) {  // The repeat. Zero may be right: some inputs are.
                call.buffers.Floats("y")[0] = std::numeric_limits<float>::quiet_NaN();
              }
            }).verdict,
            Verdict::kNondeterministic);
}

TEST_F(EvaluatorTest, HonestOnlyOnTheSmallShapes) {
  EXPECT_EQ(Evaluate([](Call& call) {
              Double(call);
              if (call.mode == CallMode::kTime) {
                call.buffers.Floats("y")[7] = 0;
              }
            }).verdict,
            Verdict::kWrongResult);
  EXPECT_EQ(Evaluate([](Call& call) {
              if (call.mode == CallMode::kCheck) {
                Double(call);
              }
            }).verdict,
            Verdict::kUnwrittenOutput);
  // A sample of the blocks is what an honest timed call writes.
  EXPECT_EQ(Evaluate([](Call& call) {
              call.n = call.mode == CallMode::kTime ? 100 : call.n;
              Double(call);
            }).verdict,
            Verdict::kOk);
}

TEST_F(EvaluatorTest, FillsAreWholeWhereTheLaunchIsSampled) {
  // Cleared first, then half of it computed by the blocks of the sample: honest.
  const auto clear_and_sample = [](Call& call) {
    Double(call);
    if (call.mode == CallMode::kTime) {
      std::fill(call.buffers.Floats("y") + call.n / 2, call.buffers.Floats("y") + call.n, 0.0F);
      call.outcome.device_us += 2;  // Of the fill, beside those of the launch.
    }
  };
  EXPECT_EQ(Evaluate(clear_and_sample).verdict, Verdict::kOk);
  // The same outputs without a fill come from the kernel, which is then wrong.
  EXPECT_EQ(Evaluate([&](Call& call) {
              clear_and_sample(call);
              call.outcome.device_us = 10;
            }).verdict,
            Verdict::kWrongResult);
}

TEST_F(EvaluatorTest, ImpossibleTime) {
  const Evaluation e = Evaluate([](Call& call) {
    Double(call);
    call.outcome.device_us = 7;  // 8 us are needed to move the bytes; 0.9 of it is the line.
  });
  EXPECT_EQ(e.verdict, Verdict::kImpossibleTime);
  EXPECT_EQ(Evaluate([](Call& call) {
              Double(call);
              call.outcome.device_us = 7.3;
            }).verdict,
            Verdict::kOk);
  EXPECT_EQ(Evaluate([](Call& call) {
              Double(call);
              call.outcome.device_us = std::numeric_limits<double>::quiet_NaN();
            }).verdict,
            Verdict::kImpossibleTime);
}

TEST_F(EvaluatorTest, RightForTheFillOnlyIsWrong) {
  const Evaluation e = Evaluate([](Call& call) {
    Double(call);
    for (std::int64_t i = 0; i < call.n; ++i) {
      float& y = call.buffers.Floats("y")[i];
      y = std::fabs(y) > 50 ? 50 : y;  // Right for every standard normal number.
    }
  });
  EXPECT_EQ(e.verdict, Verdict::kWrongResult);
  EXPECT_THAT(e.reason, HasSubstr("(inputs: outlier)"));
}

TEST_F(EvaluatorTest, TasksThatCannotTellRightFromWrongAreRefused) {
  const auto reference = [](const std::string& body) {
    return "#include <ctime>\n#include \"kernelpro_reference.h\"\nextern \"C\" void "
           "kernelpro_reference(const ReferenceArgs* args) {\n  for (int64_t i = 0; i < args->n; "
           "++i) args->y[i] = " +
           body + ";\n}\n";
  };
  auto made = Make(reference("0 * args->x[i]").c_str());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(made.error().message, HasSubstr("task 'twice' is refused"));
  EXPECT_THAT(made.error().message, HasSubstr("writes zeros in output 'y'"));
  made = Make(reference("args->x[i] + clock() + double(time(nullptr)) + double((long)&made_)")
                  .replace(0, 0, "static int made_;\n")
                  .c_str());
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, HasSubstr("two runs of the reference"));
  EXPECT_TRUE(Make(reference("args->x[i] + 1").c_str()).ok());
}

TEST_F(EvaluatorTest, EndsOtherThanReturning) {
  const Evaluation e = Evaluate([](Call& call) {
    call.outcome.end = CallOutcome::End::kTimedOut;
    call.outcome.reason = "it ran past 20 s";
  });
  EXPECT_EQ(e.verdict, Verdict::kTimeout);
  EXPECT_EQ(e.reason, "it ran past 20 s");
}

TEST_F(EvaluatorTest, CompileFailureNamesTheFirstError) {
  auto evaluator = Make();
  ASSERT_TRUE(evaluator.ok());
  BuildOutcome build;
  build.failure.emplace();
  build.failure->diagnostics = {
      {Diagnostic::Severity::kWarning, "candidate.cu", 3, "unused"},
      {Diagnostic::Severity::kError, "candidate.cu", 7, "identifier \"z\" is undefined"}};
  const auto e = (*evaluator)->Evaluate(build, {});
  EXPECT_EQ(e->verdict, Verdict::kCompileError);
  EXPECT_EQ(e->reason, "candidate.cu:7: identifier \"z\" is undefined");
}

TEST_F(EvaluatorTest, ABrokenReferenceIsSaidAtOnce) {
  auto made = Make(
      "#include \"kernelpro_reference.h\"\nextern \"C\" void kernelpro_reference(const "
      "ReferenceArgs* args) { undeclared(); }\n");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(made.error().message, HasSubstr("reference.cc:2"));
  made = Make(
      "#include \"kernelpro_reference.h\"\nextern \"C\" void kernelpro_reference(const "
      "ReferenceArgs* args) { *(volatile int*)8 = 1; }\n");
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, HasSubstr("SIGSEGV"));
}

}  // namespace
}  // namespace kernelpro
