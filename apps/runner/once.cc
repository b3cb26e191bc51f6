// SPDX-License-Identifier: Apache-2.0
#include "runner/once.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include "device/cuda/driver.h"
#include "device/protocol/once.h"
#include "device/protocol/runner_message.h"

namespace kernelpro::runner {
namespace {

using cuda::Code;
using protocol::OnceCall;
using protocol::OnceTensor;

using CandidateFunction = int (*)(const void* arguments, void* stream);

int Complain(const std::string& why, int status) {
  std::fprintf(stderr, "kernelpro-runner: %s\n", why.c_str());
  return status;
}

/// Empty when the file is read.
std::string ReadCallFile(const char* path, std::vector<std::byte>* bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0 || static_cast<std::uint64_t>(size) > protocol::kOnceFileLimit) {
    return std::string("cannot read the call file ") + path;
  }
  bytes->resize(static_cast<std::size_t>(size));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes->data()), size);
  return file ? std::string() : std::string("cannot read the call file ") + path;
}

class Caller {
 public:
  /// Empty when the driver and the candidate are ready.
  [[nodiscard]] std::string Start(const char* library);
  /// Empty when the call returned success.
  [[nodiscard]] std::string Make(const OnceCall& call);

 private:
  [[nodiscard]] Code Allocate(const OnceTensor& tensor, std::vector<std::byte>* image);
  [[nodiscard]] std::string Run(const std::vector<std::byte>& image);

  cuda::Driver driver_;
  cuda::Stream stream_ = nullptr;
  CandidateFunction function_ = nullptr;
  std::vector<cuda::DevicePointer> addresses_;
};

std::string Caller::Start(const char* library) {
  if (std::string why = driver_.Open(); !why.empty()) {
    return why;
  }
  cuda::Context context = nullptr;
  int device = 0;
  Code code = driver_.cuInit(0);
  code = code != 0 ? code : driver_.cuDeviceGet(&device, 0);
  code = code != 0 ? code : driver_.cuDevicePrimaryCtxRetain(&context, device);
  code = code != 0 ? code : driver_.cuCtxSetCurrent(context);
  // As where it is timed: work that a candidate puts on the default stream is ordered with it.
  code = code != 0 ? code : driver_.cuStreamCreate(&stream_, 0);
  if (code != 0) {
    return "cannot use the GPU: " + driver_.Describe(code);
  }
  try {
    void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      return std::string("cannot load the candidate: ") + ::dlerror();
    }
    function_ = reinterpret_cast<CandidateFunction>(::dlsym(handle, "kernelpro_run"));
  } catch (const std::exception& thrown) {
    return std::string("a static constructor threw: ") + thrown.what();
  }
  return function_ == nullptr ? "the candidate has no kernelpro_run" : "";
}

Code Caller::Allocate(const OnceTensor& tensor, std::vector<std::byte>* image) {
  cuda::DevicePointer address = 0;
  Code code = driver_.cuMemAlloc_v2(&address, tensor.bytes);
  if (code != 0) {
    return code;
  }
  addresses_.push_back(address);
  std::memcpy(image->data() + tensor.offset, &address, sizeof address);
  if (!tensor.output) {
    code = driver_.cuMemcpyHtoD_v2(address, tensor.contents.data(), tensor.bytes);
  }
  return code;
}

std::string Caller::Run(const std::vector<std::byte>& image) {
  try {
    if (const int returned = function_(image.data(), stream_); returned != 0) {
      return "kernelpro_run returned " + std::to_string(returned);
    }
  } catch (const std::exception& thrown) {
    return std::string("kernelpro_run threw: ") + thrown.what();
  } catch (...) {
    return "kernelpro_run threw an exception of unknown type";
  }
  const Code code = driver_.cuCtxSynchronize();
  return code == 0 ? "" : "after the call: " + driver_.Describe(code);
}

std::string Caller::Make(const OnceCall& call) {
  std::vector<std::byte> image = call.image;
  addresses_.clear();
  for (const OnceTensor& tensor : call.tensors) {
    if (const Code code = Allocate(tensor, &image); code != 0) {
      return "cannot make the buffers: " + driver_.Describe(code);
    }
  }
  if (std::string why = Run(image); !why.empty()) {
    return why;
  }
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    Code code = 0;
    if (call.tensors[i].output) {
      std::vector<std::byte> bytes(call.tensors[i].bytes);
      code = driver_.cuMemcpyDtoH_v2(bytes.data(), addresses_[i], bytes.size());
    }
    code = code != 0 ? code : driver_.cuMemFree_v2(addresses_[i]);
    if (code != 0) {
      return "cannot read the outputs back: " + driver_.Describe(code);
    }
  }
  return {};
}

}  // namespace

int RunOnce(const char* library, const char* call_file) {
  std::vector<std::byte> bytes;
  if (const std::string why = ReadCallFile(call_file, &bytes); !why.empty()) {
    return Complain(why, protocol::kStartFailedExit);
  }
  const auto calls = protocol::DecodeOnce(bytes);
  if (!calls) {
    return Complain(std::string(call_file) + " is not a call file", protocol::kStartFailedExit);
  }
  static Caller caller;  // Not on the stack that the candidate's frames lie next to.
  if (const std::string why = caller.Start(library); !why.empty()) {
    return Complain(why, protocol::kStartFailedExit);
  }
  for (std::size_t i = 0; i < calls->size(); ++i) {
    if (const std::string why = caller.Make((*calls)[i]); !why.empty()) {
      return Complain("call " + std::to_string(i + 1) + ": " + why, 1);
    }
  }
  std::printf("%s\n", protocol::kOnceDone.data());
  return 0;
}

}  // namespace kernelpro::runner
