# SPDX-License-Identifier: Apache-2.0
kp_fuzzer(NAME mcp_fuzzer DEPS kp_mcp)
