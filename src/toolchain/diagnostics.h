// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "toolchain/toolchain.h"

namespace kernelpro {

/// Messages in what nvcc and the tools below it print; lines of any other form are skipped:
///   k.cu(3): error: identifier "x" is undefined                cudafe++ (indented lines follow)
///   k.cu:3:7: error: expected ';'                              g++
///   ptxas k.ptx, line 577; error   : Unknown modifier '.bar'   ptxas (a line of the PTX)
///   ptxas error   : Entry function 'f' uses too much shared data
///   nvcc fatal   : Unsupported gpu architecture 'compute_1'
///   k.cpp:(.text+0xab): undefined reference to `f()'           ld
///   cc1plus: out of memory allocating 65536 bytes
/// Equal messages (host and device pass print the same) are kept once; at most 200 are kept.
[[nodiscard]] std::vector<Diagnostic> ParseDiagnostics(std::string_view log);

/// Errors before the rest, otherwise in order.
void PutErrorsFirst(std::vector<Diagnostic>* diagnostics);

[[nodiscard]] bool HasError(const std::vector<Diagnostic>& diagnostics);

}  // namespace kernelpro
