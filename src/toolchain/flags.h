// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

/// Why a candidate may not be built with these flags; empty when it may. Allowed, one argument
/// each:
///   -O0..-O3  -std=c++17|c++20  -maxrregcount=N  -use_fast_math  -DNAME[=VALUE]  -restrict
///   -ftz= -prec-div= -prec-sqrt= -fmad= true|false   -extra-device-vectorization  -lineinfo
///   -expt-relaxed-constexpr  -expt-extended-lambda  -extended-lambda
///   -lcublas -lcublasLt -lcudnn -lcufft -lcurand -lcusolver -lcusparse  where `libraries` (the
///   task's policy: "cublas", "cublaslt" ...) has them   -Xptxas=X with X one of -O0..-O3,
///   -dlcm=ca|cg|cv|cs, -dscm=wb|cg|cs|wt, -warn-spills, -allow-expensive-optimizations=true|false,
///   -disable-optimizer-constants
/// Options may start with one or two dashes. Everything else is refused: other files, other
/// compilers, other architectures, the linker and the preprocessor are not a candidate's to choose.
[[nodiscard]] std::string WhyForbidden(const std::vector<std::string>& flags,
                                       const std::vector<std::string>& libraries);

}  // namespace kernelpro
