// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "profile/nsys_sqlite.h"

/// The reader takes files only: each input becomes one, in memory where the system has a place.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string path = [] {
    const bool shared = std::filesystem::is_directory("/dev/shm");
    return std::string(shared ? "/dev/shm" : "/tmp") + "/kp-nsys-fuzz-" + std::to_string(getpid()) +
           ".sqlite";
  }();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  static_cast<void>(
      kernelpro::ReadNsysSqlite(path, {.events = 1000, .launches = 100, .steps = 1'000'000}));
  std::filesystem::remove(path);
  return 0;
}
