// SPDX-License-Identifier: Apache-2.0
#include "profile/activity_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "profile/api_call.h"

namespace kernelpro {
namespace {

using Kind = TimelineEvent::Kind;
using testing::Contains;
using testing::HasSubstr;

constexpr const char* kHeader =
    "{\"t\":\"kernelpro_activity\",\"version\":1,\"pid\":7,\"cupti\":130001,\"library\":\"x\"}\n"
    "{\"t\":\"device\",\"id\":0,\"name\":\"NVIDIA H200\",\"sms\":132,\"cc\":90}\n";
constexpr const char* kEnd =
    "{\"t\":\"end\",\"records\":9,\"dropped\":0,\"cupti_dropped\":0,\"incomplete\":0}\n";

std::string Name(int id, const std::string& name, const std::string& plain = "") {
  return "{\"t\":\"name\",\"id\":" + std::to_string(id) + ",\"name\":\"" + name + "\"" +
         (plain.empty() ? "" : ",\"plain\":\"" + plain + "\"") + "}\n";
}

std::string Span(long long start, long long end) {
  return "\"s\":" + std::to_string(start) + ",\"e\":" + std::to_string(end);
}

std::string Kernel(int name, long long start, long long end, int correlation, int grid = 16,
                   int device = 0, int node = 0) {
  return "{\"t\":\"kernel\",\"n\":" + std::to_string(name) + "," + Span(start, end) +
         ",\"d\":" + std::to_string(device) + ",\"st\":7,\"c\":" + std::to_string(correlation) +
         ",\"g\":[" + std::to_string(grid) +
         ",1,1],\"b\":[256,1,1],\"r\":24,\"ss\":1024,\"ds\":8,\"l\":0,\"gr\":0,\"gn\":" +
         std::to_string(node) + "}\n";
}

std::string Api(int name, long long start, long long end, int correlation, int runtime = 1,
                int thread = 1) {
  return "{\"t\":\"api\",\"n\":" + std::to_string(name) + "," + Span(start, end) +
         ",\"c\":" + std::to_string(correlation) + ",\"th\":" + std::to_string(thread) +
         ",\"rt\":" + std::to_string(runtime) + ",\"rv\":0}\n";
}

/// `source`, `target`: 1 pageable, 2 pinned, 3 device.
std::string Copy(int kind, int source, int target, long long start, long long end,
                 int correlation) {
  return "{\"t\":\"copy\"," + Span(start, end) + ",\"k\":" + std::to_string(kind) +
         ",\"src\":" + std::to_string(source) + ",\"dst\":" + std::to_string(target) +
         ",\"by\":4096,\"d\":0,\"st\":7,\"c\":" + std::to_string(correlation) + ",\"gn\":0}\n";
}

Profile Parsed(const std::string& text) {
  Result<Profile> profile = ParseActivityTrace(text, "trace");
  if (!profile) {
    ADD_FAILURE() << profile.error().message;
    return {};
  }
  return std::move(profile).value();
}

std::string ErrorOf(const std::string& text, ErrorCode code = ErrorCode::kParse) {
  const Result<Profile> profile = ParseActivityTrace(text, "trace");
  if (profile.ok()) {
    return "no error";
  }
  EXPECT_EQ(profile.error().code, code) << profile.error().message;
  return profile.error().message;
}

const TimelineEvent* Find(const Profile& profile, const std::string& name) {
  for (const TimelineEvent& event : profile.timeline) {
    if (event.name == name) {
      return &event;
    }
  }
  return nullptr;
}

Kind KindOf(const Profile& profile, const std::string& name) {
  const TimelineEvent* const event = Find(profile, name);
  EXPECT_NE(event, nullptr) << name;
  return event == nullptr ? Kind::kSet : event->kind;
}

TEST(ActivityTrace, KernelsByNameWithTheirShape) {
  const Profile profile =
      Parsed(kHeader + Name(0, "_Z4fillPfi", "fill(float*, int)") +
             Name(1, "_Z5scaleIfEvPT_i", "void scale<float>(float*, int)") +
             Kernel(0, 1000, 3000, 1) + Kernel(1, 4000, 14000, 2, 16) +
             Kernel(1, 20000, 24000, 3, 32) + Kernel(0, 30000, 34000, 4) + kEnd);
  EXPECT_EQ(profile.device, "NVIDIA H200");
  ASSERT_EQ(profile.kernels.size(), 2U);
  const KernelProfile& scale = profile.kernels[0];  // 14 us before 6 us
  EXPECT_EQ(scale.name, "scale<float>");
  EXPECT_EQ(scale.mangled, "_Z5scaleIfEvPT_i");
  EXPECT_DOUBLE_EQ(scale.time_us, 14);
  EXPECT_DOUBLE_EQ(scale.time_share, 0.7);
  EXPECT_EQ(scale.time_provenance, Provenance::kMeasured);
  EXPECT_FALSE(scale.Value("launch__grid_size"));  // two shapes
  const KernelProfile& fill = profile.kernels[1];
  EXPECT_EQ(fill.name, "fill");
  EXPECT_EQ(fill.Value("timeline.instances"), 2);
  EXPECT_EQ(fill.Value("timeline.kernel_median_ns"), 3000);
  EXPECT_EQ(fill.Value("gpu__time_duration.sum"), 6000);
  EXPECT_EQ(fill.Value("launch__grid_size"), 16);
  EXPECT_EQ(fill.Value("launch__block_size"), 256);
  EXPECT_EQ(fill.Value("launch__registers_per_thread"), 24);
  EXPECT_EQ(fill.Value("launch__shared_mem_per_block_static"), 1024);
  EXPECT_EQ(fill.Value("launch__shared_mem_per_block_dynamic"), 8);
  ASSERT_EQ(profile.timeline.size(), 4U);
  EXPECT_EQ(profile.timeline[0].start_ns, 0);  // from the first event
  EXPECT_EQ(profile.timeline[3].end_ns, 33000);
  EXPECT_EQ(profile.timeline[1].name, "scale<float>");
  EXPECT_EQ(profile.system.at("timeline.underfilled.pct").value, 100);  // of 132 SMs
  EXPECT_TRUE(profile.notes.empty()) << profile.notes.front();
}

TEST(ActivityTrace, CallsAreWhatTheyDo) {
  const Profile profile = Parsed(
      kHeader + Name(0, "k") + Name(1, "cudaLaunchKernel_v7000") + Name(2, "cuLaunchKernel") +
      Name(3, "cudaMemcpy_v3020") + Name(4, "cudaMemcpyAsync_ptsz_v7000") +
      Name(5, "cudaMalloc_v3020") + Name(6, "cudaStreamSynchronize_v3020") +
      Name(7, "cuModuleLoadData") + Name(8, "cudaEventElapsedTime_v3020") +
      Name(9, "cuLibraryLoadData") + Kernel(0, 5000, 6000, 1) + Api(1, 1000, 4000, 1) +
      Api(2, 1500, 3500, 1, 0) + Api(9, 1600, 1700, 1, 0) + Copy(2, 3, 1, 7000, 8000, 2) +
      Api(3, 6500, 8100, 2) + Copy(1, 2, 3, 9000, 9500, 3) + Api(4, 8500, 8600, 3) +
      Api(5, 8700, 8800, 4) + "{\"t\":\"memory\",\"k\":1,\"m\":3,\"by\":99,\"s\":1,\"c\":4}\n" +
      Api(6, 8900, 9600, 5) + Api(7, 9700, 9800, 6, 0) + Api(8, 9900, 9950, 7) +
      "{\"t\":\"jit\",\"k\":3,\"s\":200,\"e\":300,\"c\":0}\n" + kEnd);
  EXPECT_EQ(KindOf(profile, "cudaLaunchKernel"), Kind::kLaunch);
  EXPECT_EQ(Find(profile, "cuLaunchKernel"), nullptr);              // how the runtime did it
  EXPECT_EQ(KindOf(profile, "cuLibraryLoadData"), Kind::kCompile);  // a lazy load inside the launch
  EXPECT_EQ(KindOf(profile, "cudaMemcpy"), Kind::kSync);            // to the host, it waits
  EXPECT_EQ(KindOf(profile, "cudaMemcpyAsync"), Kind::kApi);
  EXPECT_EQ(KindOf(profile, "cudaMalloc"), Kind::kAllocation);
  EXPECT_EQ(Find(profile, "cudaMalloc")->bytes, 99U);
  EXPECT_EQ(KindOf(profile, "cudaStreamSynchronize"), Kind::kSync);
  EXPECT_EQ(KindOf(profile, "cuModuleLoadData"), Kind::kCompile);
  EXPECT_EQ(KindOf(profile, "cudaEventElapsedTime"), Kind::kApi);
  EXPECT_EQ(KindOf(profile, "JIT compilation"), Kind::kCompile);
  EXPECT_TRUE(Find(profile, "DtoH pageable")->pageable);
  EXPECT_FALSE(Find(profile, "HtoD pinned")->pageable);
}

TEST(ActivityTrace, WaitsThatOnlyTheDriverKnowsOf) {
  const std::string start = kHeader + Name(0, "k") + Name(1, "cudaMemcpyAsync") +
                            Name(2, "cudaMemcpy") + Name(3, "cudaFancyCall") +
                            Kernel(0, 100, 200, 9);
  // Asynchronous by name, to pageable memory: the call returns when the copy is done.
  EXPECT_EQ(KindOf(Parsed(start + Copy(2, 3, 1, 300, 400, 2) + Api(1, 300, 420, 2) + kEnd),
                   "cudaMemcpyAsync"),
            Kind::kSync);
  EXPECT_EQ(
      KindOf(Parsed(start + Copy(8, 3, 3, 300, 400, 2) + Api(2, 300, 320, 2) + kEnd), "cudaMemcpy"),
      Kind::kApi);  // within the device: nobody waits
  const std::string sync = "{\"t\":\"sync\",\"k\":3,\"s\":300,\"e\":400,\"c\":2}\n";
  EXPECT_EQ(KindOf(Parsed(start + sync + Api(3, 300, 420, 2) + kEnd), "cudaFancyCall"),
            Kind::kSync);
  const std::string stream_wait = "{\"t\":\"sync\",\"k\":2,\"s\":300,\"e\":400,\"c\":2}\n";
  EXPECT_EQ(KindOf(Parsed(start + stream_wait + Api(3, 300, 420, 2) + kEnd), "cudaFancyCall"),
            Kind::kApi);  // the GPU's stream waits, not the host
}

TEST(ActivityTrace, SaysWhatIsMissing) {
  const std::string some = kHeader + Name(0, "k") + Kernel(0, 100, 200, 1);
  EXPECT_THAT(Parsed(some).notes, Contains(HasSubstr("without its exit handlers")));
  const Profile cut = Parsed(some + kEnd + Kernel(0, 300, 400, 2).substr(0, 40));
  EXPECT_EQ(cut.timeline.size(), 1U);
  EXPECT_THAT(cut.notes, Contains(HasSubstr("Line 6 of trace is cut short")));
  EXPECT_THAT(Parsed(some + "{\"t\":\"end\",\"records\":1,\"dropped\":17,\"cupti_dropped\":2,"
                            "\"incomplete\":3}\n")
                  .notes,
              testing::IsSupersetOf({HasSubstr("19 records"), HasSubstr("3 activities")}));
  EXPECT_THAT(Parsed(some + "{\"t\":\"refused\",\"message\":\"JIT: no\"}\n" + kEnd).notes,
              Contains(HasSubstr("JIT: no")));
  EXPECT_THAT(Parsed(some + "{\"t\":\"newer\",\"x\":1}\n" + kEnd).notes,
              Contains(HasSubstr("1 lines of a type")));
  EXPECT_THAT(Parsed(std::string(kHeader) + kEnd).notes, Contains("No kernel was recorded."));
  EXPECT_THAT(Parsed(some + Kernel(0, 300, 400, 2, 16, 0, 5) + kEnd).notes,
              Contains(HasSubstr("inside graphs")));
  const Profile two = Parsed(some + Kernel(0, 300, 900, 2, 16, 1) + kEnd);
  EXPECT_EQ(two.timeline.size(), 1U);
  EXPECT_EQ(two.kernels[0].time_us, 0.6);
  EXPECT_THAT(two.notes, Contains(HasSubstr("used 2 GPUs; this is GPU 1")));
}

TEST(ActivityTrace, ErrorsNameTheLine) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("trace:1: an empty file"));
  EXPECT_THAT(ErrorOf("\"ID\",\"Kernel\"\n"), HasSubstr("trace:1: not a JSON object"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("trace:1: not an activity trace"));
  EXPECT_THAT(ErrorOf("[1]"), HasSubstr("trace:1: not an activity trace"));
  EXPECT_THAT(ErrorOf("{\"t\":\"kernelpro_activity\",\"version\":2}"),
              HasSubstr("version 2 of the format"));
  EXPECT_THAT(ErrorOf("{\"t\":\"kernelpro_activity\",\"version\":1,\"error\":\"no CUPTI\"}",
                      ErrorCode::kUnavailable),
              HasSubstr("nothing was traced: no CUPTI"));
  EXPECT_THAT(ErrorOf(std::string(kHeader) + "{\"t\":\"error\",\"message\":\"busy\"}\n",
                      ErrorCode::kUnavailable),
              HasSubstr("busy"));
  EXPECT_THAT(ErrorOf(std::string(kHeader) + "{\"x\":\n" + kEnd), HasSubstr("trace:3: not a JSON"));
  EXPECT_THAT(ErrorOf(std::string(kHeader) + "{\"x\":1}\n"), HasSubstr("trace:3: an object"));
  EXPECT_THAT(ErrorOf(kHeader + Kernel(0, 200, 100, 1)),
              HasSubstr("trace:3: field \"e\" of \"kernel\""));
  EXPECT_THAT(ErrorOf(kHeader + Kernel(0, -5, 100, 1)), HasSubstr("field \"s\""));
  EXPECT_THAT(ErrorOf(kHeader + Kernel(0, 1, 100, 1, -3)), HasSubstr("field \"g\""));
  EXPECT_THAT(ErrorOf(std::string(kHeader) + "{\"t\":\"api\"}\n"), HasSubstr("field \"s\""));
  EXPECT_THAT(ErrorOf(kHeader + std::string(200'000, '[') + "\n"),
              HasSubstr("trace:3: a line of more than"));
}

TEST(ActivityTrace, AnyDamageIsSafe) {
  const std::string whole = kHeader + Name(0, "k") + Name(1, "cudaLaunchKernel") +
                            Api(1, 50, 90, 1) + Kernel(0, 100, 200, 1) +
                            Copy(1, 1, 3, 210, 300, 2) + kEnd;
  ASSERT_TRUE(ParseActivityTrace(whole, "trace").ok());
  std::mt19937 random(24);  // NOLINT(cert-msc51-cpp): the same cases every time
  for (int round = 0; round < 3000; ++round) {
    std::string text = whole;
    for (std::size_t i = 1 + random() % 4; i > 0; --i) {
      text[random() % text.size()] = static_cast<char>(random() % 256);
    }
    if (round % 3 == 0) {
      text.resize(random() % text.size());
    }
    (void)ParseActivityTrace(text, "trace").ok();
  }
}

/// Traces that were recorded on a GPU: every *.jsonl of a folder; their figures are printed.
TEST(ActivityTrace, FieldTraces) {
  const char* const folder = std::getenv("KERNELPRO_ACTIVITY_TRACES");
  if (folder == nullptr) {
    GTEST_SKIP() << "KERNELPRO_ACTIVITY_TRACES names no folder with traces";
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".jsonl") {
      continue;
    }
    const Result<Profile> profile = ReadActivityTrace(entry.path());
    ASSERT_TRUE(profile.ok()) << profile.error().message;
    EXPECT_FALSE(profile->timeline.empty());
    std::printf("%s on %s\n", entry.path().filename().c_str(), profile->device.c_str());
    for (const KernelProfile& kernel : profile->kernels) {
      std::printf("  %-40s %6.0f x, %10.1f us\n", kernel.name.c_str(),
                  kernel.Value("timeline.instances").value_or(0), kernel.time_us);
    }
    for (const auto& [name, metric] : profile->system) {
      std::printf("  %-28s %14.6g %s\n", name.c_str(), metric.value, metric.unit.c_str());
    }
    for (const std::string& note : profile->notes) {
      std::printf("  note: %s\n", note.c_str());
    }
  }
}

TEST(ApiCall, NamesAndKinds) {
  EXPECT_EQ(PlainApiName("cudaLaunchKernel_ptsz_v7000"), "cudaLaunchKernel");
  EXPECT_EQ(PlainApiName("cuMemAlloc_v2"), "cuMemAlloc");
  EXPECT_EQ(PlainApiName("_v"), "_v");
  EXPECT_EQ(ApiKind("cudaLaunchKernelExC"), Kind::kLaunch);
  EXPECT_EQ(ApiKind("cudaLaunchHostFunc"), Kind::kApi);
  EXPECT_EQ(ApiKind("cuGraphLaunch"), Kind::kLaunch);
  EXPECT_EQ(ApiKind("cudaFreeAsync"), Kind::kAllocation);
  EXPECT_EQ(ApiKind("cuMemcpyHtoDAsync"), Kind::kApi);
  EXPECT_EQ(ApiKind("cuEventSynchronize"), Kind::kSync);
  EXPECT_EQ(ApiKind("cuModuleGetFunction"), Kind::kApi);
  EXPECT_TRUE(IsBlockingCopy("cudaMemcpy2D"));
  EXPECT_FALSE(IsBlockingCopy("cudaMemcpy2DAsync"));
  EXPECT_FALSE(IsBlockingCopy("cudaMemset"));
}

}  // namespace
}  // namespace kernelpro
