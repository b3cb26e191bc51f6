// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/runtime/abi.h"

namespace kernelpro::runtime {

struct KernelParameter {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
};

/// One fat binary of the candidate.
struct Image {
  const FatBinaryWrapper* wrapper = nullptr;
  bool sent = false;
  CudaError error = 0;  ///< of sending it
  std::uint64_t module = 0;
};

/// A kernel as host code knows it, looked up on the GPU at first use.
struct HostKernel {
  Image* image = nullptr;
  std::string name;
  bool found = false;
  CudaError error = 0;
  std::uint64_t function = 0;
  std::uint32_t parameter_bytes = 0;
  std::vector<KernelParameter> parameters;
};

struct HostVariable {
  Image* image = nullptr;
  std::string name;
  bool found = false;
  CudaError error = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

/// What the static constructors that nvcc writes into a candidate have registered. Thread safe.
class Registry {
 public:
  static Registry& Get();

  Image* AddImage(const FatBinaryWrapper* wrapper);
  void AddKernel(Image* image, const void* host_function, std::string name);
  void AddVariable(Image* image, const void* host_variable, std::string name);

  /// The kernel behind a host function or a cudaKernel_t, resolved; nullptr when unknown.
  HostKernel* FindKernel(const void* handle);
  HostVariable* FindVariable(const void* host_variable);
  /// The image behind the handle of __cudaRegisterFatBinary; nullptr when it is none of ours.
  Image* FindImage(const void* handle);

 private:
  void Send(Image& image);
  void Resolve(HostKernel& kernel);

  std::mutex mutex_;
  std::vector<std::unique_ptr<Image>> images_;
  std::map<const void*, std::unique_ptr<HostKernel>> kernels_;
  std::map<const void*, std::unique_ptr<HostVariable>> variables_;
};

}  // namespace kernelpro::runtime
