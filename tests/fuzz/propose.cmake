# SPDX-License-Identifier: Apache-2.0
kp_fuzzer(NAME code_extraction_fuzzer DEPS kp_propose)
