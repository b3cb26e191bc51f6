// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emulator/model/model.h"
#include "emulator/ptx/module.h"

/// What one PTX instruction becomes on the machine: how many issue slots and pipe passes of the
/// SASS that ptxas makes of it. Memory traffic is not here (see demand.h): it depends on addresses.
namespace kernelpro::model {

/// Per warp-level execution. A pipe's figure is a number of warp instructions that pass through it;
/// cycles follow from the lanes of the GPU at hand.
struct OpCost {
  double issue = 1;
  double fma = 0;           ///< FP32 pipe: FFMA FADD FMUL HFMA2
  double imad = 0;          ///< integer multiplies: on the FP32 pipe, at the integer rate
  double alu = 0;           ///< IADD3 LOP3 SHF ISETP SEL FMNMX ...
  double sfu = 0;           ///< MUFU and the conversions of the same (XU) pipe
  double fp64 = 0;          ///< DFMA DADD DMUL DSETP
  double lsu = 0;           ///< passes through the load/store unit without memory (SHFL)
  double tensor_flops = 0;  ///< in f16 flops: other types are converted by their rate
  double latency = 0;       ///< cycles until a dependent instruction can start
  bool validated = true;    ///< false: a documented guess, not checked against timed kernels
};

/// The cost of an instruction apart from its memory traffic; loads, stores and atomics give their
/// issue slots only. Never fails: an unknown opcode costs one ALU instruction, not validated.
[[nodiscard]] OpCost CostOf(const ptx::Instruction& instruction, const GpuSpec& spec);

}  // namespace kernelpro::model
