// SPDX-License-Identifier: Apache-2.0
// kernelpro-reference LIBRARY: calls kernelpro_reference of a task's compiled reference on the
// shared block at descriptor 3 (layout: evaluate/reference.h). Exit code 0: the outputs are there.

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstring>

#include "evaluate/reference.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: kernelpro-reference LIBRARY (started by kernelpro)\n");
    return 2;
  }
  struct stat info{};
  if (::fstat(3, &info) != 0 ||
      info.st_size < static_cast<off_t>(sizeof(kernelpro::ReferenceBlock))) {
    std::fprintf(stderr, "no shared block on descriptor 3\n");
    return 2;
  }
  void* const mapped = ::mmap(nullptr, static_cast<std::size_t>(info.st_size),
                              PROT_READ | PROT_WRITE, MAP_SHARED, 3, 0);
  if (mapped == MAP_FAILED) {
    std::perror("mmap");
    return 1;
  }
  void* const library = ::dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  void* const symbol = library == nullptr ? nullptr : ::dlsym(library, "kernelpro_reference");
  if (symbol == nullptr) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    return 1;
  }
  auto* const block = static_cast<char*>(mapped);
  kernelpro::ReferenceBlock header;
  std::memcpy(&header, block, sizeof header);
  for (std::uint64_t i = 0; i < header.pointer_count; ++i) {
    std::uint64_t pair[2] = {};
    std::memcpy(pair, block + header.pointers_offset + i * sizeof pair, sizeof pair);
    char* const pointer = block + pair[1];
    std::memcpy(block + header.args_offset + pair[0], &pointer, sizeof pointer);
  }
  // The C interface of dlsym leaves no other way to a function pointer.
  reinterpret_cast<void (*)(const void*)>(symbol)(block + header.args_offset);  // NOLINT
  return 0;
}
