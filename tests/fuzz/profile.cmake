# SPDX-License-Identifier: Apache-2.0
kp_fuzzer(NAME ncu_csv_fuzzer DEPS kp_profile)
kp_fuzzer(NAME ncu_source_fuzzer DEPS kp_profile)
kp_fuzzer(NAME ncu_text_fuzzer DEPS kp_profile)
kp_fuzzer(NAME nsys_sqlite_fuzzer DEPS kp_profile)
kp_fuzzer(NAME nsys_stats_fuzzer DEPS kp_profile)
kp_fuzzer(NAME profile_json_fuzzer DEPS kp_profile)
kp_fuzzer(NAME ptxas_log_fuzzer DEPS kp_profile)
