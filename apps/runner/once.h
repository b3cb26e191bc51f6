// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kernelpro::runner {

/// Makes the calls of a call file (device/protocol/once.h) one after the other, for a sanitizer to
/// watch. Every tensor is an allocation of its own and of its exact size, so that one element too
/// far is seen; outputs are written by nobody before the call and read back after it, so that what
/// the candidate leaves out is seen. NVIDIA's libcudart comes with the library ($LD_LIBRARY_PATH).
/// Confined by whoever starts it. Returns the exit status: 0 when every call returned success, 1
/// when one did not, protocol::kStartFailedExit when it did not come to that.
[[nodiscard]] int RunOnce(const char* library, const char* call_file);

}  // namespace kernelpro::runner
