// SPDX-License-Identifier: Apache-2.0
// What a question costs beside the network: a client over loopback HTTP against a bare socket that
// moves the same bytes, and 64 questions in flight at once. Required: less than 2 ms of overhead.
#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "llm/client.h"
#include "llm/client_parts.h"
#include "llm/wire.h"

namespace {

using namespace kernelpro;
using namespace kernelpro::llm;

constexpr int kInFlight = 64;

/// A streamed answer of about 400 tokens, one event each, as OpenAI's servers write it.
std::string StreamText() {
  std::string text;
  for (int i = 0; i < 400; ++i) {
    text += fmt::format(
        "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,"
        "\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"tok{} \"}},"
        "\"finish_reason\":null}}]}}\n\n",
        i);
  }
  return text +
         "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
         "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9000,\"completion_tokens\":400}}\n\n"
         "data: [DONE]\n\n";
}

/// The prompt of a coder: 32 KiB.
ChatRequest Question() {
  ChatRequest request;
  request.system = std::string(8192, 's');
  Message message;
  message.text = std::string(24576, 'x');
  request.messages.push_back(std::move(message));
  return request;
}

/// Answers every request with the same bytes, a thread per connection, until it dies.
class Server {
 public:
  explicit Server(std::string answer) : answer_(std::move(answer)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        listen(listener_, 256) != 0 ||
        getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
      std::perror("loopback server");
      std::exit(1);
    }
    port_ = ntohs(address.sin_port);
    accepting_ = std::jthread([this] { Accept(); });
  }

  ~Server() {
    shutdown(listener_, SHUT_RDWR);
    accepting_.join();
    for (const int fd : connections_) {
      shutdown(fd, SHUT_RDWR);
    }
    threads_.clear();
    for (const int fd : connections_) {
      close(fd);
    }
    close(listener_);
  }

  [[nodiscard]] int port() const { return port_; }

  [[nodiscard]] std::string url() const { return fmt::format("http://127.0.0.1:{}/v1", port_); }

 private:
  void Accept() {
    for (int fd = 0; (fd = accept(listener_, nullptr, nullptr)) >= 0;) {
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      connections_.push_back(fd);
      threads_.emplace_back([this, fd] { Serve(fd); });
    }
  }

  void Serve(int fd) const {
    std::string text;
    char buffer[65536];
    for (ssize_t size = 0; (size = recv(fd, buffer, sizeof buffer, 0)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(size));
      const std::size_t head = text.find("\r\n\r\n");
      const std::size_t at = text.find("Content-Length: ");
      if (head != std::string::npos && at < head &&
          text.size() >= head + 4 + std::stoul(text.substr(at + 16, 20))) {
        text.clear();
        for (std::string_view left = answer_; !left.empty();) {
          const ssize_t sent = send(fd, left.data(), left.size(), MSG_NOSIGNAL);
          if (sent <= 0) {
            return;
          }
          left.remove_prefix(static_cast<std::size_t>(sent));
        }
      }
    }
  }

  std::string answer_;
  int listener_ = -1;
  int port_ = 0;
  std::vector<int> connections_;
  std::vector<std::jthread> threads_;
  std::jthread accepting_;
};

std::string HttpAnswer() {
  const std::string body = StreamText();
  return fmt::format(
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {}\r\n\r\n{}",
      body.size(), body);
}

struct Setup {
  SystemClock clock;
  Budget budget{{}, clock};
  std::unique_ptr<ChatClient> client;
};

ClientOptions OptionsFor(const std::string& url) {
  ClientOptions options;
  options.endpoint = {Wire::kOpenAi, url, "m"};
  options.key = Key("sk-benchmark-0123456789abcdefghijklmnopqrstuvwxyz");
  options.price = {1, 0.1, 1, 10};
  return options;
}

/// Moves the bytes of a question and its answer and does nothing else.
void BareSocket(benchmark::State& state) {
  const std::string answer = HttpAnswer();
  const Server server(answer);
  const auto body = RequestBody(OptionsFor(server.url()).endpoint, Question(), true);
  const std::string request =
      fmt::format("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}",
                  body->size(), *body);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(server.port()));
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    state.SkipWithError("no connection");
  }
  char buffer[65536];
  for (auto _ : state) {
    bool ok = send(fd, request.data(), request.size(), MSG_NOSIGNAL) ==
              static_cast<ssize_t>(request.size());
    for (std::size_t left = answer.size(); ok && left > 0;) {
      const ssize_t size = recv(fd, buffer, sizeof buffer, 0);
      ok = size > 0;
      left -= ok ? static_cast<std::size_t>(size) : 0;
    }
    if (!ok) {
      state.SkipWithError("the connection ended");
      break;
    }
  }
  close(fd);
}

BENCHMARK(BareSocket)->UseRealTime()->Unit(benchmark::kMicrosecond);

void ClientOverLoopback(benchmark::State& state) {
  const Server server(HttpAnswer());
  Setup setup;
  setup.client = OpenClient(OptionsFor(server.url()), setup.budget, setup.clock).value();
  const ChatRequest request = Question();
  for (auto _ : state) {
    const auto response = setup.client->Ask(request, {});
    if (!response.ok() || response->usage.output != 400) {
      state.SkipWithError("no answer");
      break;
    }
  }
}

BENCHMARK(ClientOverLoopback)->UseRealTime()->Unit(benchmark::kMicrosecond);

/// The client's own work: the same question over a transport that has the answer ready.
class Ready : public Transport {
 public:
  HttpOutcome Post(const HttpRequest& request, const OnBody& on_body,
                   const std::stop_token&) override {
    benchmark::DoNotOptimize(request.body.data());
    HttpOutcome outcome{HttpEnd::kWhole, {200, {{"Content-Type", "text/event-stream"}}}, true, ""};
    for (std::string_view left = text_; !left.empty();
         left.remove_prefix(std::min<std::size_t>(left.size(), 16384))) {
      on_body(outcome.head, left.substr(0, 16384));
    }
    return outcome;
  }

 private:
  const std::string text_ = StreamText();
};

void ClientAlone(benchmark::State& state) {
  Setup setup;
  setup.client = OpenClientOver(OptionsFor("http://127.0.0.1:1/v1"), setup.budget, setup.clock,
                                std::make_unique<Ready>(), SystemSleeper())
                     .value();
  const ChatRequest request = Question();
  for (auto _ : state) {
    benchmark::DoNotOptimize(setup.client->Ask(request, {}));
  }
}

BENCHMARK(ClientAlone)->UseRealTime()->Unit(benchmark::kMicrosecond);

/// One question from each of 64 threads at once; the time is of all of them.
void InFlight64(benchmark::State& state) {
  const Server server(HttpAnswer());
  Setup setup;
  setup.client = OpenClient(OptionsFor(server.url()), setup.budget, setup.clock).value();
  const ChatRequest request = Question();
  std::atomic<int> failed = 0;
  for (auto _ : state) {
    std::vector<std::jthread> threads;
    threads.reserve(kInFlight);
    for (int i = 0; i < kInFlight; ++i) {
      threads.emplace_back([&] { failed += setup.client->Ask(request, {}).ok() ? 0 : 1; });
    }
  }
  if (failed > 0) {
    state.SkipWithError("a question failed");
  }
  state.SetItemsProcessed(state.iterations() * kInFlight);
}

BENCHMARK(InFlight64)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
