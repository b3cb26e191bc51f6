// SPDX-License-Identifier: Apache-2.0
// Program of confine_test: tries one thing and prints "done" or the name of the errno.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>

namespace {

bool Read(const char* path) {
  const int fd = ::open(path, O_RDONLY);
  char byte = 0;
  return fd >= 0 && ::read(fd, &byte, 1) >= 0;
}

bool Write(const char* path) {
  const int fd = ::open(path, O_WRONLY | O_CREAT, 0600);
  return fd >= 0 && ::write(fd, "x", 1) == 1;
}

bool Connect(const char* port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return fd >= 0 && ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

bool Pair(const char*) {
  std::array<int, 2> pair{};
  char byte = 0;
  return ::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) == 0 && ::write(pair[0], "x", 1) == 1 &&
         ::read(pair[1], &byte, 1) == 1;
}

bool Trace(const char* pid) {
  return ::ptrace(PTRACE_ATTACH, std::atoi(pid), nullptr, nullptr) == 0;
}

bool Signal(const char* pid) {
  return ::kill(std::atoi(pid), 0) == 0;
}

bool SignalOwnChild(const char*) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
  }
  return child > 0 && ::kill(child, SIGKILL) == 0 && ::waitpid(child, nullptr, 0) == child;
}

/// Whether so many processes can live at once.
bool Bomb(const char* count) {
  bool all = true;
  int error = 0;
  for (int i = 0; i < std::atoi(count) && all; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::pause();
      ::_exit(0);
    }
    all = child > 0;
    error = errno;
  }
  errno = error;
  return all;
}

bool Session(const char*) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(::setsid() >= 0 ? 0 : errno);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  errno = WEXITSTATUS(status);
  return status == 0;
}

bool Thread(const char*) {
  bool ran = false;
  std::thread([&ran] { ran = true; }).join();
  return ran;
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, bool (*)(const char*)> attempts = {
      {"read", Read},       {"write", Write},   {"connect", Connect},    {"pair", Pair},
      {"trace", Trace},     {"signal", Signal}, {"own", SignalOwnChild}, {"bomb", Bomb},
      {"session", Session}, {"thread", Thread}};
  if (argc != 3 || !attempts.contains(argv[1])) {
    return 2;
  }
  errno = 0;
  const bool done = attempts.at(argv[1])(argv[2]);
  std::printf("%s", done ? "done" : ::strerrorname_np(errno));
  return 0;
}
