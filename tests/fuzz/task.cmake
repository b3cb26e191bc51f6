# SPDX-License-Identifier: Apache-2.0
kp_fuzzer(NAME task_fuzzer DEPS kp_task)
kp_fuzzer(NAME diagnostics_fuzzer DEPS kp_toolchain)
