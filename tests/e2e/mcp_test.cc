// SPDX-License-Identifier: Apache-2.0
// kernelpro mcp as a client without a library sees it: lines of JSON over two pipes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "base/text.h"
#include "cli.h"

namespace kernelpro::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A server over pipes of ours. Closing the input must end it.
class Wire {
 public:
  explicit Wire(const fs::path& folder) {
    std::array<int, 2> in{}, out{};
    EXPECT_EQ(::pipe2(in.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(out.data(), O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      ::setenv("KERNELPRO_CACHE", KP_BINARY_DIR "/e2e-cache", 1);
      if (::chdir(folder.c_str()) == 0) {
        ::execl(KP_BINARY_DIR "/bin/kernelpro", "kernelpro", "mcp", nullptr);
      }
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    to_ = in[1];
    from_ = ::fdopen(out[0], "r");
  }

  ~Wire() {
    CloseInput();
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    std::fclose(from_);
  }

  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  void Send(const json& message) const {
    const std::string line = message.dump() + "\n";
    ASSERT_EQ(::write(to_, line.data(), line.size()), static_cast<ssize_t>(line.size()));
  }

  /// The next message; every line must be one.
  [[nodiscard]] json Read() const {
    std::string line;
    for (int c = std::fgetc(from_); c != EOF && c != '\n'; c = std::fgetc(from_)) {
      line += static_cast<char>(c);
    }
    json message = json::parse(line, nullptr, false);
    EXPECT_TRUE(message.is_object() && message.value("jsonrpc", "") == "2.0")
        << "no protocol: '" << line << "'";
    return message.is_object() ? message : json::object();
  }

  [[nodiscard]] json Ask(const std::string& method, const json& params) {
    Send({{"jsonrpc", "2.0"}, {"id", ++id_}, {"method", method}, {"params", params}});
    json answer = Read();
    EXPECT_EQ(answer.value("id", -1), id_);
    return answer;
  }

  /// The result of a tool.
  [[nodiscard]] json Call(const std::string& tool, const json& arguments) {
    return Ask("tools/call", {{"name", tool}, {"arguments", arguments}})["result"];
  }

  void CloseInput() {
    if (to_ >= 0) {
      ::close(std::exchange(to_, -1));
    }
  }

  /// Its exit code; -1 when it does not end by itself.
  [[nodiscard]] int End() {
    for (int i = 0; i < 500; ++i) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return -1;
  }

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  int id_ = 0;
  std::FILE* from_ = nullptr;
};

class McpTest : public ::testing::Test {
 protected:
  McpTest() : wire_(cli_.folder()) {
    task_ = cli_.CopyTask("transpose");
    Cli::Edit(task_ / "task.toml", "rows = 4096, cols = 4096", "rows = 256, cols = 256");
    const json answer =
        wire_.Ask("initialize", {{"protocolVersion", "2025-11-25"},
                                 {"capabilities", json::object()},
                                 {"clientInfo", {{"name", "t"}, {"version", "1"}}}});
    EXPECT_EQ(answer["result"]["serverInfo"]["name"], "kernelpro");
    wire_.Send({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});
  }

  [[nodiscard]] json StartRun() {
    return wire_.Call("start_run",
                      {{"task", task_}, {"device", "emulator"}, {"seed", 3}, {"run", "run"}});
  }

  Cli cli_;
  fs::path task_;
  Wire wire_;
};

TEST_F(McpTest, ASearchOverTwoPipes) {
  const json tools = wire_.Ask("tools/list", json::object())["result"]["tools"];
  EXPECT_EQ(tools.size(), 9);
  EXPECT_EQ(StartRun()["structuredContent"]["verdict"], "ok");
  const json next = wire_.Call("next_parent", {{"run", "run"}})["structuredContent"];
  EXPECT_EQ(next["parent"]["node"], 1);

  std::string source = next["source"];
  source.replace(source.find("kBlockX = 32"), 12, "kBlockX = 16");
  const json submitted = wire_.Call("submit_kernel", {{"run", "run"},
                                                      {"source", source},
                                                      {"parent", 1},
                                                      {"action", "narrow"},
                                                      {"finding", "mem.coalesce_st"}});
  EXPECT_EQ(submitted["structuredContent"]["verdict"], "ok") << submitted;
  source.replace(source.find("= in["), 5, "= 2 * in[");
  const json wrong = wire_.Call(
      "submit_kernel", {{"run", "run"}, {"source", source}, {"parent", 2}, {"action", "double"}});
  EXPECT_FALSE(wrong.value("isError", false)) << "a wrong kernel is an answer";
  EXPECT_EQ(wrong["structuredContent"]["verdict"], "wrong_result");
  EXPECT_EQ(wire_.Call("status", {{"run", "run"}})["structuredContent"]["nodes"].size(), 3);

  const json resources = wire_.Ask("resources/list", json::object())["result"]["resources"];
  ASSERT_EQ(resources.size(), 1);
  const json tree = wire_.Ask("resources/read", {{"uri", resources[0]["uri"]}});
  EXPECT_THAT(tree["result"]["contents"][0]["text"].get<std::string>(),
              HasSubstr("node 2 (narrow)"));
  const json read = wire_.Ask("resources/read", {{"uri", "kernelpro://source?run=run&node=3"}});
  EXPECT_EQ(read["result"]["contents"][0]["text"], source);
  EXPECT_TRUE(wire_.Ask("resources/read", {{"uri", "kernelpro://source?run=run&node=9"}})
                  .contains("error"));

  wire_.CloseInput();
  EXPECT_EQ(wire_.End(), 0);
  EXPECT_THAT(LeftoverProcesses(), IsEmpty());
}

TEST_F(McpTest, WrongArgumentsAreExplainedToTheModel) {
  const json missing = wire_.Call("start_run", {{"tsk", "x"}});
  EXPECT_EQ(missing["isError"], true);
  EXPECT_THAT(missing["content"][0]["text"].get<std::string>(), HasSubstr("'task'"));
  const json type = wire_.Call("next_parent", {{"run", 7}});
  EXPECT_EQ(type["isError"], true);
  const json nowhere = wire_.Call("next_parent", {{"run", "nowhere"}});
  EXPECT_THAT(nowhere["content"][0]["text"].get<std::string>(), HasSubstr("nowhere"));
  EXPECT_EQ(wire_.Ask("tools/call", {{"name", "no_tool"}})["error"]["code"], -32602);
}

TEST_F(McpTest, TheEndOfInputEndsAnEvaluationToo) {
  ASSERT_EQ(StartRun()["structuredContent"]["verdict"], "ok");
  std::string slow = "#include <unistd.h>\n" + ReadFile(task_ / "seed.cu").value();
  slow.insert(slow.find("  const int rows = "),
              "  static int calls = 0;\n  if (calls++ == 0) usleep(15000000);\n");
  wire_.Send(
      {{"jsonrpc", "2.0"},
       {"id", 99},
       {"method", "tools/call"},
       {"params",
        {{"name", "submit_kernel"},
         {"arguments", {{"run", "run"}, {"source", slow}, {"parent", 1}, {"action", "slow"}}}}}});
  const auto nodes = [&] { return cli_.Run({"agent", "status", "run", "--json"}).Json()["nodes"]; };
  for (int i = 0; i < 200 && nodes().size() < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::this_thread::sleep_for(std::chrono::seconds(3));  // Past the compiler, most likely.
  wire_.CloseInput();
  EXPECT_EQ(wire_.End(), 0);
  EXPECT_THAT(LeftoverProcesses(), IsEmpty());
  ASSERT_EQ(nodes().size(), 2);
  EXPECT_TRUE(nodes()[1]["verdict"].is_null()) << "it still waits";
}

}  // namespace
}  // namespace kernelpro::e2e
