// SPDX-License-Identifier: Apache-2.0
#include "process/process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "process/spawn.h"

namespace kernelpro {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// How long output is still read after the child itself has ended: a grandchild may hold the pipe.
constexpr milliseconds kDrainAfterEnd{500};
/// How often a request to stop is looked at.
constexpr milliseconds kStopPoll{50};

void CloseFd(int* fd) {
  if (*fd >= 0) {
    ::close(*fd);
    *fd = -1;
  }
}

milliseconds Since(steady_clock::time_point start) {
  return std::chrono::duration_cast<milliseconds>(steady_clock::now() - start);
}

milliseconds Length(const timeval& time) {
  return std::chrono::duration_cast<milliseconds>(std::chrono::seconds(time.tv_sec) +
                                                  std::chrono::microseconds(time.tv_usec));
}

}  // namespace

struct Child::State {
  SpawnedChild child;
  ProcessLimits limits;
  std::string input;
  std::size_t input_written = 0;
  steady_clock::time_point start = steady_clock::now();
  ProcessResult result;
  bool reaped = false;
  bool waited = false;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  ~State() {
    KillGroup();
    Reap(true);
    CloseFd(&child.input);
    CloseFd(&child.out);
    CloseFd(&child.err);
    CloseFd(&child.pidfd);
  }

  /// The group can outlive its leader, so it is signalled also after the leader was reaped: its id
  /// is not reused while a member lives, and ESRCH is harmless.
  void KillGroup() const {
    ::kill(-child.pid, SIGKILL);
    if (!reaped) {
      ::kill(child.pid, SIGKILL);
    }
  }

  /// Collects the end of the child; true once it has ended.
  bool Reap(bool block) {
    if (reaped) {
      return true;
    }
    int status = 0;
    rusage usage{};
    pid_t got = 0;
    do {
      got = ::wait4(child.pid, &status, block ? 0 : WNOHANG, &usage);
    } while (got < 0 && errno == EINTR);
    if (got == 0) {
      return false;
    }
    reaped = true;
    result.elapsed = Since(start);
    result.cpu = Length(usage.ru_utime) + Length(usage.ru_stime);
    result.peak_rss_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024U;
    if (WIFSIGNALED(status)) {
      result.end = ProcessResult::End::kSignaled;
      result.signal = WTERMSIG(status);
    } else {
      result.end = ProcessResult::End::kExited;
      result.exit_code = WEXITSTATUS(status);
    }
    return true;
  }

  void Keep(std::string* kept, std::string_view bytes) {
    const std::size_t room = limits.output_bytes == 0
                                 ? bytes.size()
                                 : static_cast<std::size_t>(limits.output_bytes) -
                                       std::min<std::size_t>(kept->size(), limits.output_bytes);
    kept->append(bytes.substr(0, room));
    result.output_cut = result.output_cut || room < bytes.size();
  }

  void ReadFrom(int* fd, std::string* kept) {
    std::array<char, 65536> chunk{};
    const ssize_t n = ::read(*fd, chunk.data(), chunk.size());
    if (n > 0) {
      Keep(kept, std::string_view(chunk.data(), static_cast<std::size_t>(n)));
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
      CloseFd(fd);
    }
  }

  void WriteInput() {
    const ssize_t n =
        ::write(child.input, input.data() + input_written, input.size() - input_written);
    if (n > 0) {
      input_written += static_cast<std::size_t>(n);
    }
    if (input_written == input.size() || (n < 0 && errno != EAGAIN && errno != EINTR)) {
      CloseFd(&child.input);
    }
  }

  /// Moves bytes and waits for events, at most `patience`.
  void Pump(milliseconds patience) {
    std::array<pollfd, 4> polls{{{child.out, POLLIN, 0},
                                 {child.err, POLLIN, 0},
                                 {child.input, POLLOUT, 0},
                                 {reaped ? -1 : child.pidfd, POLLIN, 0}}};
    // Without a pidfd (kernels before 5.3) the end is noticed by polling.
    const milliseconds step = child.pidfd < 0 ? std::min(patience, milliseconds(10)) : patience;
    if (::poll(polls.data(), polls.size(), static_cast<int>(step.count())) <= 0) {
      return;
    }
    if (polls[0].revents != 0) {
      ReadFrom(&child.out, &result.out);
    }
    if (polls[1].revents != 0) {
      ReadFrom(&child.err, &result.err);
    }
    if (polls[2].revents != 0) {
      WriteInput();
    }
  }

  [[nodiscard]] milliseconds TimeLeft() const {
    return limits.wall.count() == 0 ? milliseconds::max() : limits.wall - Since(start);
  }
};

Result<Child> Child::Start(const ProcessSpec& spec) {
  // A child that closes its input early must not kill us.
  ::signal(SIGPIPE, SIG_IGN);
  KP_ASSIGN_OR_RETURN(SpawnedChild spawned, Spawn(spec));
  auto* state = new State;  // NOLINT(cppcoreguidelines-owning-memory): owned by Child
  state->child = std::move(spawned);
  state->limits = spec.limits;
  state->result.confinement = state->child.confinement;
  state->input = spec.input;
  return Child(state);
}

Child::Child(Child&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

Child::~Child() {
  delete state_;
}

pid_t Child::pid() const {
  return state_->child.pid;
}

const std::vector<ConfinementReport>& Child::confinement() const {
  return state_->child.confinement;
}

void Child::Kill() {
  state_->KillGroup();
}

bool Child::RunsAfter(milliseconds patience) {
  State& s = *state_;
  const auto until = steady_clock::now() + patience;
  while (!s.Reap(false)) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - steady_clock::now());
    if (left.count() <= 0) {
      return true;
    }
    s.Pump(left);
  }
  return false;
}

Result<ProcessResult> Child::Wait(const std::stop_token& stop) {
  State& s = *state_;
  KP_CHECK(!s.waited) << "Wait was called twice";
  s.waited = true;
  std::optional<ProcessResult::End> killed;
  while (!s.Reap(false)) {
    if (!killed && stop.stop_requested()) {
      killed = ProcessResult::End::kCancelled;
      s.KillGroup();
    }
    if (!killed && s.TimeLeft().count() <= 0) {
      killed = ProcessResult::End::kTimedOut;
      s.KillGroup();
    }
    s.Pump(std::clamp(s.TimeLeft(), milliseconds(0), kStopPoll));
  }
  s.KillGroup();  // What the child left running goes with it.
  const auto drain_until = steady_clock::now() + kDrainAfterEnd;
  while ((s.child.out >= 0 || s.child.err >= 0) && steady_clock::now() < drain_until) {
    s.Pump(milliseconds(20));
  }
  if (killed) {
    s.result.end = *killed;
  }
  return std::move(s.result);
}

Result<ProcessResult> RunProcess(const ProcessSpec& spec, const std::stop_token& stop) {
  KP_ASSIGN_OR_RETURN(Child child, Child::Start(spec));
  return child.Wait(stop);
}

std::string DescribeEnd(const ProcessResult& result, const ProcessLimits& limits) {
  switch (result.end) {
    case ProcessResult::End::kExited:
      return fmt::format("exited with {}", result.exit_code);
    case ProcessResult::End::kSignaled: {
      if (result.signal == SIGXCPU && limits.cpu_seconds != 0) {
        return fmt::format("used more than its limit of {} s of CPU time", limits.cpu_seconds);
      }
      const char* name = ::sigabbrev_np(result.signal);
      return fmt::format("was killed by signal {} ({}{})", result.signal,
                         name == nullptr ? "" : "SIG", name == nullptr ? "unknown" : name);
    }
    case ProcessResult::End::kTimedOut:
      return fmt::format("ran past its limit of {:.1f} s and was killed",
                         static_cast<double>(limits.wall.count()) / 1000.0);
    case ProcessResult::End::kCancelled:
      return "was stopped on request";
  }
  return "ended";
}

}  // namespace kernelpro
