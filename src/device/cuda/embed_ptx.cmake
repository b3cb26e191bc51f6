# SPDX-License-Identifier: Apache-2.0
# cmake -DINPUT=x.ptx -DOUTPUT=x.cc -P embed_ptx.cmake: the referee's kernels as a C++ string; an empty
# one when there is no INPUT (no nvcc when KernelPro was built).
set(text "")
if(INPUT)
  file(READ ${INPUT} text)
endif()
file(WRITE ${OUTPUT}
"// Generated from src/device/cuda/referee_kernels.cu.
#include \"device/cuda/memory_kernels.h\"

namespace kernelpro::cuda {

const char* RefereeKernels() {
  return R\"kpptx(${text})kpptx\";
}

}  // namespace kernelpro::cuda
")
