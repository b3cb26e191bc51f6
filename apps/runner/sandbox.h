// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kernelpro::runner {

/// The name under which the dynamic linker finds the candidate's library: the file itself is the
/// descriptor that the referee opened.
inline constexpr const char* kCandidatePath = "/kernelpro/candidate.so";

/// From here on this process and its threads can compute, allocate, and talk over the descriptors
/// that are open; nothing else. Opening files is answered by a handler that knows one name,
/// kCandidatePath, so that nothing of the machine can be read. Any other denied system call is told
/// to the referee and ends the process. False with errno when the kernel refuses.
[[nodiscard]] bool EnterSandbox();

}  // namespace kernelpro::runner
