# SPDX-License-Identifier: Apache-2.0
kp_fuzzer(NAME activity_trace_fuzzer DEPS kp_profile)
