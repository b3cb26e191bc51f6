// SPDX-License-Identifier: Apache-2.0
// The transport against a server of a few lines on this machine: one script per connection.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "llm/transport.h"

namespace kernelpro::llm {
namespace {

using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

void Send(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return;
    }
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

/// One request with its body; empty when the client has gone.
std::string Receive(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const std::size_t head = text.find("\r\n\r\n");
    if (head != std::string::npos) {
      const std::size_t at = text.find("Content-Length: ");
      const std::size_t body = at == std::string::npos ? 0 : std::stoul(text.substr(at + 16));
      if (text.size() >= head + 4 + body) {
        return text;
      }
    }
    const ssize_t size = recv(fd, buffer, sizeof buffer, 0);
    if (size <= 0) {
      return {};
    }
    text.append(buffer, static_cast<std::size_t>(size));
  }
}

class Server {
 public:
  /// Called with a connection and the next request on it; false closes the connection.
  using Answer = std::function<bool(int fd, const std::string& request)>;

  explicit Server(Answer answer) : answer_(std::move(answer)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    listen(listener_, 64);
    socklen_t length = sizeof address;
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    accepting_ = std::jthread([this] { Accept(); });
  }

  ~Server() {
    shutdown(listener_, SHUT_RDWR);
    accepting_.join();
    {
      const std::scoped_lock lock(mutex_);
      for (const int fd : connections_) {
        shutdown(fd, SHUT_RDWR);
      }
    }
    threads_.clear();  // joins
    for (const int fd : connections_) {
      close(fd);
    }
    close(listener_);
  }

  [[nodiscard]] std::string url() const {
    return "http://127.0.0.1:" + std::to_string(port_) + "/v1/chat/completions";
  }

  [[nodiscard]] int connections() const { return accepted_; }

  void WaitUntilClosed(int connections) const {
    for (int closed = closed_; closed < connections; closed = closed_) {
      closed_.wait(closed);
    }
  }

 private:
  void Accept() {
    for (;;) {
      const int fd = accept(listener_, nullptr, nullptr);
      if (fd < 0) {
        return;
      }
      ++accepted_;
      const std::scoped_lock lock(mutex_);
      connections_.push_back(fd);
      threads_.emplace_back([this, fd] {
        for (;;) {
          const std::string request = Receive(fd);
          if (request.empty() || !answer_(fd, request)) {
            break;
          }
        }
        shutdown(fd, SHUT_RDWR);
        ++closed_;
        closed_.notify_all();
      });
    }
  }

  Answer answer_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> accepted_ = 0;
  std::atomic<int> closed_ = 0;
  std::mutex mutex_;
  std::vector<int> connections_;
  std::vector<std::jthread> threads_;
  std::jthread accepting_;
};

std::string Whole(std::string_view body, std::string_view more = "") {
  return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + std::string(more) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

HttpRequest To(const std::string& url) {
  HttpRequest request;
  request.url = url;
  request.headers = {{"X-Test", "yes"}};
  request.body = "{\"q\":1}";
  return request;
}

struct Got {
  HttpOutcome outcome;
  std::string body;
};

Got Post(Transport& transport, const HttpRequest& request, const std::stop_token& stop = {}) {
  Got got;
  got.outcome = transport.Post(
      request,
      [&](const HttpHead& head, std::string_view piece) {
        EXPECT_NE(head.status, 0);
        got.body += piece;
        return true;
      },
      stop);
  return got;
}

class HttpTransportTest : public testing::Test {
 protected:
  SystemClock clock_;
  std::unique_ptr<Transport> transport_ = OpenHttpTransport(clock_);
};

TEST_F(HttpTransportTest, SendsAndReceives) {
  std::string seen;
  Server server([&](int fd, const std::string& request) {
    seen = request;
    Send(fd, Whole("{\"a\":1}", "RETRY-after: 7\r\n"));
    return true;
  });
  const Got got = Post(*transport_, To(server.url()));
  EXPECT_EQ(got.outcome.end, HttpEnd::kWhole) << got.outcome.detail;
  EXPECT_EQ(got.outcome.head.status, 200);
  EXPECT_EQ(got.body, "{\"a\":1}");
  EXPECT_EQ(FindHeader(got.outcome.head.headers, "Retry-After"), "7");
  EXPECT_TRUE(got.outcome.sent);
  EXPECT_THAT(seen, HasSubstr("POST /v1/chat/completions HTTP/1.1\r\n"));
  EXPECT_THAT(seen, HasSubstr("X-Test: yes\r\n"));
  EXPECT_THAT(seen, HasSubstr("\r\n\r\n{\"q\":1}"));
  EXPECT_THAT(seen, Not(HasSubstr("Expect:")));
}

TEST_F(HttpTransportTest, ConnectionsAreUsedAgainAcrossThreads) {
  Server server([](int fd, const std::string&) {
    Send(fd, Whole("{}"));
    return true;
  });
  for (int i = 0; i < 5; ++i) {
    std::jthread([&] { EXPECT_EQ(Post(*transport_, To(server.url())).body, "{}"); }).join();
  }
  EXPECT_EQ(server.connections(), 1);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) {
        EXPECT_EQ(Post(*transport_, To(server.url())).body, "{}");
      }
    });
  }
  threads.clear();
  EXPECT_LE(server.connections(), 8);
}

TEST_F(HttpTransportTest, AConnectionThatDiedWhileIdleIsReplaced) {
  Server server([](int fd, const std::string&) {
    Send(fd, Whole("{}"));
    return false;
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Post(*transport_, To(server.url())).outcome.end, HttpEnd::kWhole);
    server.WaitUntilClosed(i + 1);
  }
  EXPECT_EQ(server.connections(), 3);
}

// By itself libcurl sends it again: the server may then work, and charge, twice.
TEST_F(HttpTransportTest, ARequestOnAKeptConnectionThatIsClosedIsNotSentAgain) {
  std::atomic<int> requests = 0;
  Server server([&](int fd, const std::string&) {
    if (++requests == 2) {
      return false;
    }
    Send(fd, Whole("{}"));
    return true;
  });
  EXPECT_EQ(Post(*transport_, To(server.url())).outcome.end, HttpEnd::kWhole);
  const HttpOutcome lost = Post(*transport_, To(server.url())).outcome;
  EXPECT_EQ(lost.end, HttpEnd::kCut) << lost.detail;
  EXPECT_TRUE(lost.sent);
  EXPECT_EQ(requests, 2);
  EXPECT_EQ(Post(*transport_, To(server.url())).outcome.end, HttpEnd::kWhole);
  EXPECT_EQ(requests, 3);
}

TEST_F(HttpTransportTest, NoiseIsNoHttp) {
  Server server([&](int fd, const std::string&) {
    Send(fd, "\x15\x03\x01 what a server of another protocol says\r\n");
    return false;
  });
  EXPECT_EQ(Post(*transport_, To(server.url())).outcome.end, HttpEnd::kNoHttp);
}

TEST_F(HttpTransportTest, StreamedPiecesComeWhenTheyAreSent) {
  std::atomic<bool> first_seen = false;
  Server server([&](int fd, const std::string&) {
    Send(fd,
         "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
         "5\r\nfirst\r\n");
    first_seen.wait(false);  // hangs the test when the piece is held back
    Send(fd, "6\r\nsecond\r\n0\r\n\r\n");
    return true;
  });
  std::string body;
  const HttpOutcome outcome = transport_->Post(To(server.url()),
                                               [&](const HttpHead&, std::string_view piece) {
                                                 body += piece;
                                                 first_seen = true;
                                                 first_seen.notify_all();
                                                 return true;
                                               },
                                               {});
  EXPECT_EQ(outcome.end, HttpEnd::kWhole);
  EXPECT_EQ(body, "firstsecond");
}

TEST_F(HttpTransportTest, StopEndsAWaitForTheServer) {
  std::stop_source stop;
  Server server([&](int fd, const std::string&) {
    Send(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart");
    stop.request_stop();
    return !Receive(fd).empty();  // until the client goes
  });
  const Got got = Post(*transport_, To(server.url()), stop.get_token());  // else: five minutes
  EXPECT_EQ(got.outcome.end, HttpEnd::kStopped);
  EXPECT_TRUE(got.outcome.sent);
  // The half-read connection is not used again.
  EXPECT_EQ(Post(*transport_, To(server.url()), stop.get_token()).outcome.sent, false);
}

TEST_F(HttpTransportTest, SilenceIsIdleAndSignsOfLifeAreNot) {
  std::atomic<bool> alive = false;
  Server server([&](int fd, const std::string&) {
    Send(fd, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    for (int i = 0; alive && i < 8; ++i) {
      Send(fd, ": ping\n");
      std::this_thread::sleep_for(100ms);
    }
    return !Receive(fd).empty();
  });
  HttpRequest request = To(server.url());
  request.idle_timeout = 400ms;
  EXPECT_EQ(Post(*transport_, request).outcome.end, HttpEnd::kIdle);
  alive = true;
  const Got got = Post(*transport_, request);
  EXPECT_EQ(got.outcome.end, HttpEnd::kIdle);
  EXPECT_EQ(got.body.size(), 8 * std::string_view(": ping\n").size());
  request.idle_timeout = 10s;
  request.total_timeout = 300ms;
  EXPECT_EQ(Post(*transport_, request).outcome.end, HttpEnd::kTotalTimeout);
}

// Some servers keep the connection open behind the end of a stream; others still have something to
// say.
TEST_F(HttpTransportTest, AnAnswerThatIsOverIsNotWaitedFor) {
  Server server([&](int fd, const std::string&) {
    Send(fd, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nover");
    return !Receive(fd).empty();  // Until the client hangs up.
  });
  HttpRequest request = To(server.url());
  request.idle_timeout = 60s;
  bool over = true;
  request.answered = [&over] { return over; };
  const Got got = Post(*transport_, request);
  EXPECT_EQ(got.outcome.end, HttpEnd::kWhole);
  EXPECT_EQ(got.body, "over");
  over = false;
  request.idle_timeout = 400ms;
  EXPECT_EQ(Post(*transport_, request).outcome.end, HttpEnd::kIdle);
}

TEST_F(HttpTransportTest, CutConnections) {
  std::string answer;
  Server server([&](int fd, const std::string&) {
    Send(fd, answer);
    return false;
  });
  for (const char* text :
       {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n", ""}) {
    answer = text;
    const Got got = Post(*transport_, To(server.url()));
    EXPECT_EQ(got.outcome.end, HttpEnd::kCut) << text;
    EXPECT_TRUE(got.outcome.sent);
  }
}

TEST_F(HttpTransportTest, NobodyThere) {
  std::string url;
  {
    const Server server([](int, const std::string&) { return false; });
    url = server.url();
  }
  const Got got = Post(*transport_, To(url));
  EXPECT_EQ(got.outcome.end, HttpEnd::kNoConnection);
  EXPECT_FALSE(got.outcome.sent);
  EXPECT_FALSE(got.outcome.detail.empty());
  EXPECT_EQ(Post(*transport_, To("ftp://127.0.0.1/")).outcome.end, HttpEnd::kBadRequest);
  EXPECT_EQ(Post(*transport_, To("file:///etc/hostname")).outcome.end, HttpEnd::kBadRequest);
}

TEST_F(HttpTransportTest, RedirectsAreNotFollowed) {
  const Server other([](int, const std::string&) { return false; });
  const Server server([&](int fd, const std::string&) {
    Send(fd, "HTTP/1.1 307 Temporary Redirect\r\nLocation: " + other.url() +
                 "\r\nContent-Length: 0\r\n\r\n");
    return true;
  });
  EXPECT_EQ(Post(*transport_, To(server.url())).outcome.head.status, 307);
  EXPECT_EQ(other.connections(), 0);
}

TEST_F(HttpTransportTest, BodiesHaveALimit) {
  Server server([](int fd, const std::string&) {
    Send(fd, "HTTP/1.1 200 OK\r\n\r\n");
    const std::string block(1U << 20U, 'x');
    for (int i = 0; i < 80; ++i) {
      Send(fd, block);
    }
    return false;
  });
  const Got got = Post(*transport_, To(server.url()));
  EXPECT_EQ(got.outcome.end, HttpEnd::kTooLarge);
  EXPECT_LE(got.body.size(), kBodyLimit);
}

TEST_F(HttpTransportTest, ProxyOfTheEnvironmentIsNotAskedForThisMachine) {
  const Server proxy([](int, const std::string&) { return false; });
  setenv("http_proxy", proxy.url().c_str(), 1);
  const Server server([](int fd, const std::string&) {
    Send(fd, Whole("{}"));
    return true;
  });
  EXPECT_EQ(Post(*transport_, To(server.url())).body, "{}");
  EXPECT_EQ(proxy.connections(), 0);
  // The honest twin: another host is asked through it.
  (void)Post(*transport_, To("http://kernelpro.invalid/v1"));
  EXPECT_EQ(proxy.connections(), 1);
  unsetenv("http_proxy");
}

}  // namespace
}  // namespace kernelpro::llm
