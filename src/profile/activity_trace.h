// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kernelpro/profile.h"

namespace kernelpro {

/// Reads what libkernelpro-activity.so wrote (apps/activity/README.md has the format). Sample:
///
///   {"t":"kernelpro_activity","version":1,"pid":7,"cupti":130001,"library":"libcupti.so.13"}
///   {"t":"device","id":0,"name":"NVIDIA H200","sms":132,"cc":90}
///   {"t":"name","id":0,"name":"_Z4fillPfi","plain":"fill(float*, int)"}
///   {"t":"kernel","n":0,"s":1000,"e":3000,"d":0,"st":7,"c":5,"g":[16,1,1],"b":[256,1,1],"r":24,...}
///   {"t":"end","records":1,"dropped":0,"cupti_dropped":0,"incomplete":0}
///
/// Gives `timeline` (times from the first event; GPU events of the device with most kernel time
/// only), the `timeline.*` metrics in `system` (timeline.h), and one KernelProfile a kernel name,
/// longest first: time_us and gpu__time_duration.sum are sums over its launches,
/// timeline.instances and timeline.kernel_median_ns say how many and how long, and launch__* are
/// there when all launches had the same shape. All of it is `measured`. A driver call inside a
/// runtime call on the same thread is that call's implementation and is left out, unless it loads
/// code.
///
/// Dropped records, a killed program (no "end" line), a cut last line and further devices are told
/// in `notes`. Lines of unknown type are skipped and counted there. Any byte sequence is safe; time
/// and memory are linear in the text, whose size and number of records are bounded. Errors: kParse
/// with "<label>:<line>: what"; kUnavailable with the reason when the file's first lines say that
/// nothing could be traced (CUPTI missing or of another version).
[[nodiscard]] Result<Profile> ParseActivityTrace(std::string_view text, std::string label);
[[nodiscard]] Result<Profile> ReadActivityTrace(const std::filesystem::path& path);

}  // namespace kernelpro
