# SPDX-License-Identifier: Apache-2.0
add_executable(ncu_csv_fuzzer ${CMAKE_CURRENT_LIST_DIR}/ncu_csv_fuzzer.cc)
target_link_libraries(ncu_csv_fuzzer PRIVATE kp_options kp_profile)
target_compile_options(ncu_csv_fuzzer PRIVATE -fsanitize=fuzzer)
target_link_options(ncu_csv_fuzzer PRIVATE -fsanitize=fuzzer)
add_executable(ncu_source_fuzzer ${CMAKE_CURRENT_LIST_DIR}/ncu_source_fuzzer.cc)
target_link_libraries(ncu_source_fuzzer PRIVATE kp_options kp_profile)
target_compile_options(ncu_source_fuzzer PRIVATE -fsanitize=fuzzer)
target_link_options(ncu_source_fuzzer PRIVATE -fsanitize=fuzzer)
