# SPDX-License-Identifier: Apache-2.0
# One folder, one library. The layer numbers are those of docs/architecture.md; a module may link
# only modules of a lower layer, or of its own layer when it names them (device -> emulator).

add_library(kp_options INTERFACE)
target_compile_features(kp_options INTERFACE cxx_std_20)
target_include_directories(kp_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_options(kp_options INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor
                       # Designated initialisers that leave defaults in place are the style here.
                       -Wno-missing-field-initializers)
if(KP_WERROR)
  target_compile_options(kp_options INTERFACE -Werror)
endif()
if(KP_SANITIZE)
  target_compile_options(kp_options INTERFACE -fsanitize=${KP_SANITIZE} -fno-sanitize-recover=all
                                              -fno-omit-frame-pointer)
  target_link_options(kp_options INTERFACE -fsanitize=${KP_SANITIZE})
endif()

# Programs that take their shared libraries from ../lib first, where a portable bundle
# (scripts/bundle.sh) has them. DT_RPATH and not DT_RUNPATH: it also holds for the libraries'
# own libraries. Never for the runner and the reference: what they load was built by the user's
# compiler and needs the system's C++ library.
function(kp_portable target)
  set_target_properties(${target} PROPERTIES BUILD_RPATH "$ORIGIN/../lib")
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
endfunction()

# kp_module(NAME base LAYER 0 SOURCES a.cc DEPS kp_x fmt::fmt TESTS a_test.cc TEST_DEPS ... LABELS unit)
function(kp_module)
  cmake_parse_arguments(M "" "NAME;LAYER;TEST_TIMEOUT" "SOURCES;DEPS;TESTS;TEST_DEPS;LABELS" ${ARGN})
  set(target kp_${M_NAME})
  if(M_SOURCES)
    add_library(${target} STATIC ${M_SOURCES})
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  set_target_properties(${target} PROPERTIES KP_LAYER ${M_LAYER} POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${target} ${scope} kp_options ${M_DEPS})
  foreach(dep IN LISTS M_DEPS)
    if(TARGET ${dep})
      get_target_property(layer ${dep} KP_LAYER)
      if(layer AND layer GREATER M_LAYER)
        message(FATAL_ERROR "${target} (layer ${M_LAYER}) must not use ${dep} (layer ${layer})")
      endif()
    elseif(dep MATCHES "^kp_")
      message(FATAL_ERROR "${target} uses ${dep}, which is of a higher layer or not declared before it")
    endif()
  endforeach()
  if(M_TESTS AND BUILD_TESTING)
    kp_test(NAME ${M_NAME}_test SOURCES ${M_TESTS} DEPS ${target} ${M_TEST_DEPS} LABELS ${M_LABELS}
            TIMEOUT ${M_TEST_TIMEOUT})
  endif()
endfunction()

# kp_test(NAME x SOURCES ... DEPS ... LABELS unit TIMEOUT seconds)
function(kp_test)
  cmake_parse_arguments(T "" "NAME;TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT T_LABELS)
    set(T_LABELS unit)
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 120)
  endif()
  add_executable(${T_NAME} ${T_SOURCES})
  # Optimising what checks the optimised code only costs time to build.
  target_compile_options(${T_NAME} PRIVATE -O0)
  target_link_libraries(${T_NAME} PRIVATE kp_options ${T_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${T_NAME} PRIVATE KP_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                               KP_BINARY_DIR="${PROJECT_BINARY_DIR}")
  gtest_discover_tests(${T_NAME} DISCOVERY_TIMEOUT 60
                       PROPERTIES LABELS "${T_LABELS}" TIMEOUT ${T_TIMEOUT})
endfunction()
