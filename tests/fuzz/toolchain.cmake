# SPDX-License-Identifier: Apache-2.0
kp_fuzzer(NAME binary_facts_fuzzer DEPS kp_toolchain)
