// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <array>
#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__)
#error "the system call filters are written for x86-64"
#endif

/// Writing a seccomp program, for the runner and for confined children. Standard library only, no
/// allocation.
namespace kernelpro::seccomp {

constexpr std::uint32_t Errno(int error) {
  return SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(error) & SECCOMP_RET_DATA);
}

/// Low half of an argument (x86 is little endian); its high half is 4 bytes on.
constexpr std::uint32_t Argument(unsigned index) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8UL * index);
}

/// Every rule on a system call ends with a return, or leaves the call's number loaded.
class Filter {
 public:
  /// Other architectures' calls (32-bit ones) kill the process; loads the call's number.
  Filter() {
    Load(offsetof(seccomp_data, arch));
    UnlessEqualSkip(AUDIT_ARCH_X86_64, 1);
    Add(BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0));
    Return(SECCOMP_RET_KILL_PROCESS);
    Load(offsetof(seccomp_data, nr));
  }

  void Add(sock_filter instruction) { code_.at(size_++) = instruction; }

  void Load(std::uint32_t offset) { Add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }

  void Return(std::uint32_t action) { Add(BPF_STMT(BPF_RET | BPF_K, action)); }

  /// Skips the next `count` instructions unless the loaded word equals `value`.
  void UnlessEqualSkip(std::uint32_t value, std::uint8_t count) {
    Add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count));
  }

  void IfNumber(int number, std::uint32_t action) {
    UnlessEqualSkip(static_cast<std::uint32_t>(number), 1);
    Return(action);
  }

  /// `number` is answered with `then` when the low half of its argument is one of `values`, else
  /// with `otherwise`.
  template <std::size_t kCount>
  void IfArgument(int number, unsigned argument, const std::array<std::uint32_t, kCount>& values,
                  std::uint32_t then, std::uint32_t otherwise) {
    static_assert(kCount < 100, "jumps reach 255 instructions");
    UnlessEqualSkip(static_cast<std::uint32_t>(number), 2 + 2 * kCount);
    Load(Argument(argument));
    for (const std::uint32_t value : values) {
      UnlessEqualSkip(value, 1);
      Return(then);
    }
    Return(otherwise);
  }

  [[nodiscard]] sock_fprog Program() { return {static_cast<unsigned short>(size_), code_.data()}; }

 private:
  std::array<sock_filter, 768> code_{};
  std::size_t size_ = 0;
};

}  // namespace kernelpro::seccomp
