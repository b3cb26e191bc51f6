# SPDX-License-Identifier: Apache-2.0
kp_fuzzer(NAME sanitizer_log_fuzzer DEPS kp_evaluate)
