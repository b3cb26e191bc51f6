// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "kernelpro/profile.h"
#include "sass/listing.h"
#include "sass/statistics.h"

namespace kernelpro {

/// Machine code as a Profile, one KernelProfile a function and architecture, in file order: what a
/// listing says (`cuobjdump -sass`, `nvdisasm`, `nvdisasm -json`), or what a cubin, fat binary,
/// library or program says without a disassembler. Nothing was run: no times, and `opcodes` counts
/// the instructions of the code (texts["opcodes"] is "static"), not how often they ran.
///
///   metrics   sass.*; of a listing also sass.loop.*; of a binary ptxas.registers
///   texts     "build.arch": "sm_90a"
///   system    build.arch, build.accelerated when all functions agree; build.lineinfo, build.debug
///             of a binary
///
/// Any bytes are safe. Errors with "label:line" or "label": kParse when it is something else (a
/// ptxas log, compute-sanitizer's, assembler input: named where it is known), kNotFound when it
/// holds no machine code (only PTX, or compressed).
[[nodiscard]] Result<Profile> ParseSass(std::string_view bytes, std::string_view label);
[[nodiscard]] Result<Profile> ReadSass(const std::filesystem::path& path);

/// Adds what the code of a kernel says to its profile: metrics, hot loop, texts. `executed`: how
/// often each instruction ran, by address, when that was measured. Keeps what is there already.
void AddSass(const sass::Function& function, KernelProfile* kernel,
             const sass::Executed* executed = nullptr);

/// Fills instruction, place and producer of the kernel's hot spots from its code: each waits for
/// the nearest producer of the kind that its largest stall reason names. Spots that have one, and
/// those at addresses that the code does not have, stay as they are.
void AttributeStalls(KernelProfile& kernel, const sass::Function& function);

}  // namespace kernelpro
