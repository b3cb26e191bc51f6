# SPDX-License-Identifier: Apache-2.0
# Included by CMakeLists.txt of this folder. The modules are compiled into each fuzzer, so that
# libFuzzer sees their branches.
function(kp_task_fuzzer name)
  add_executable(${name} ${name}.cc ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_compile_options(${name} PRIVATE -g -O1 -fsanitize=fuzzer,address,undefined)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer,address,undefined)
  target_link_libraries(${name} PRIVATE fmt::fmt nlohmann_json::nlohmann_json)
endfunction()

set(kp_src ${PROJECT_SOURCE_DIR}/src)
file(GLOB base_sources ${kp_src}/base/*.cc)
list(FILTER base_sources EXCLUDE REGEX "_test\\.cc$")
file(GLOB task_sources ${kp_src}/task/*.cc)
list(FILTER task_sources EXCLUDE REGEX "_test\\.cc$")
kp_task_fuzzer(task_fuzzer ${task_sources} ${base_sources})
kp_task_fuzzer(diagnostics_fuzzer ${kp_src}/toolchain/diagnostics.cc ${kp_src}/toolchain/entry_json.cc
               ${kp_src}/toolchain/includes.cc ${kp_src}/toolchain/ptxas_figures.cc ${base_sources})
