// SPDX-License-Identifier: Apache-2.0
#include "fake_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <list>
#include <thread>

#include "base/hash.h"
#include "connection.h"

namespace kernelpro::fake {
namespace {

/// A socket bound to 127.0.0.1, or -1.
int Bound(int port) {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    close(made);
    return -1;
  }
  return made;
}

int PortOf(int bound) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  getsockname(bound, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

}  // namespace

class FakeServer::Impl {
 public:
  Impl(HandlerOptions options, int listener, std::ofstream ledger)
      : handler_(std::move(options)),
        listener_(listener),
        port_(PortOf(listener)),
        file_(std::move(ledger)),
        acceptor_([this] { Accept(); }) {}

  ~Impl() { Stop(); }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void Stop() {
    stop_ = true;
    if (acceptor_.joinable()) {
      acceptor_.join();
      close(listener_);
    }
    workers_.clear();
  }

  [[nodiscard]] int port() const { return port_; }

  [[nodiscard]] std::uint64_t redirected() const { return handler_.redirected(); }

  [[nodiscard]] std::uint64_t connections() const { return connections_; }

  [[nodiscard]] std::vector<LedgerEntry> Ledger() const {
    const std::scoped_lock lock(mutex_);
    return ledger_;
  }

  [[nodiscard]] std::map<FaultKind, std::uint64_t> Played() const {
    const std::scoped_lock lock(mutex_);
    return played_;
  }

 private:
  struct Worker {
    std::atomic<bool> done = false;
    std::jthread thread;
  };

  void Accept() {
    while (!stop_) {
      pollfd waited{listener_, POLLIN, 0};
      if (poll(&waited, 1, 20) <= 0) {
        continue;
      }
      const int accepted = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (accepted < 0) {
        continue;
      }
      // Each event leaves at once, as from a provider; otherwise trickled bytes would be collected.
      const int on = 1;
      setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      ++connections_;
      workers_.remove_if([](const Worker& worker) { return worker.done.load(); });
      Worker& worker = workers_.emplace_back();
      worker.thread = std::jthread([this, accepted, &worker] {
        Serve(accepted);
        worker.done = true;
      });
    }
  }

  void Serve(int accepted) {
    Connection connection(accepted, stop_);
    while (auto request = connection.Read()) {
      const bool last = request->Header("connection") == "close";
      if (!Answer(connection, *std::move(request)) || last) {
        return;
      }
    }
  }

  /// Whether the connection can be used again.
  bool Answer(Connection& connection, HttpRequest request) {
    const Handled handled = handler_.Handle(std::move(request));
    {
      const std::scoped_lock lock(mutex_);
      ++played_[handled.fault.kind];
    }
    const auto steps =
        Script(handled.reply, handled.fault, handler_.seed() ^ (handled.asked.index * 0x9e37ULL));
    const Connection::Played played = connection.Play(steps);
    Record(handled, played);
    return played.open;
  }

  void Record(const Handled& handled, const Connection::Played& played) {
    const FaultFacts& facts = Facts(handled.fault.kind);
    if (!handled.generated || facts.billing == Billing::kNothing) {
      return;
    }
    LedgerEntry entry;
    entry.index = handled.asked.index;
    entry.id = handled.id;
    entry.wire = handled.asked.wire;
    entry.model = handled.asked.model;
    const std::string_view parts[] = {handled.asked.http.body};
    entry.body_hash = ContentHash(parts);
    entry.last = handled.asked.last;
    entry.tokens = handled.tokens;
    entry.fault = handled.fault.kind;
    entry.delivered = facts.delivers && played.all;
    if (facts.billing == Billing::kSent) {
      entry.tokens.completion = 0;
      for (std::size_t i = 0; i < std::min(played.pieces, handled.reply.tokens.size()); ++i) {
        entry.tokens.completion += handled.reply.tokens[i];
      }
    }
    const std::scoped_lock lock(mutex_);
    if (file_.is_open()) {
      file_ << LedgerLine(entry) << '\n' << std::flush;
    }
    ledger_.push_back(std::move(entry));
  }

  Handler handler_;
  const int listener_;
  const int port_;
  std::atomic<bool> stop_ = false;
  std::atomic<std::uint64_t> connections_ = 0;
  mutable std::mutex mutex_;
  std::vector<LedgerEntry> ledger_;
  std::map<FaultKind, std::uint64_t> played_;
  std::ofstream file_;
  // Only the acceptor's thread touches the list, until it was joined.
  std::list<Worker> workers_;
  std::jthread acceptor_;
};

FakeServer::FakeServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

FakeServer::~FakeServer() = default;

Result<std::unique_ptr<FakeServer>> FakeServer::Start(HandlerOptions options, int port,
                                                      const std::filesystem::path& ledger) {
  std::ofstream file;
  if (!ledger.empty()) {
    file.open(ledger, std::ios::app);
    if (!file) {
      return Fail(ErrorCode::kIo, fmt::format("cannot write {}", ledger.string()));
    }
  }
  const int bound = Bound(port);
  if (bound < 0 || listen(bound, 128) != 0) {
    return Fail(ErrorCode::kIo,
                fmt::format("cannot listen on 127.0.0.1:{}: {}", port, std::strerror(errno)));
  }
  return std::unique_ptr<FakeServer>(
      new FakeServer(std::make_unique<Impl>(std::move(options), bound, std::move(file))));
}

int FakeServer::port() const {
  return impl_->port();
}

std::string FakeServer::url() const {
  return fmt::format("http://127.0.0.1:{}", port());
}

void FakeServer::Stop() {
  impl_->Stop();
}

std::vector<LedgerEntry> FakeServer::Ledger() const {
  return impl_->Ledger();
}

std::map<FaultKind, std::uint64_t> FakeServer::Played() const {
  return impl_->Played();
}

std::uint64_t FakeServer::redirected() const {
  return impl_->redirected();
}

std::uint64_t FakeServer::connections() const {
  return impl_->connections();
}

int DeadPort() {
  const int bound = Bound(0);
  const int port = PortOf(bound);
  close(bound);
  return port;
}

}  // namespace kernelpro::fake
