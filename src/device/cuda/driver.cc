// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/driver.h"

#include <dlfcn.h>

namespace kernelpro::cuda {

std::string Driver::Open() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return std::string("the NVIDIA driver's libcuda.so.1 cannot be loaded: ") + ::dlerror();
  }
#define KP_CUDA_FIND(name, arguments)                                  \
  name = reinterpret_cast<Code(*) arguments>(::dlsym(library, #name)); \
  if (name == nullptr) {                                               \
    return "the NVIDIA driver is too old: libcuda.so.1 has no " #name; \
  }
  KP_CUDA_FUNCTIONS(KP_CUDA_FIND)
#undef KP_CUDA_FIND
  return {};
}

std::string Driver::Describe(Code code) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuGetErrorName(code, &name) != kOk || cuGetErrorString(code, &text) != kOk) {
    return "error " + std::to_string(code) + " of the CUDA driver";
  }
  return std::string(name) + " (" + std::to_string(code) + "): " + text;
}

}  // namespace kernelpro::cuda
