# SPDX-License-Identifier: Apache-2.0
kp_fuzzer(NAME llm_fuzzer DEPS kp_llm)
