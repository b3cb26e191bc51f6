# SPDX-License-Identifier: Apache-2.0
# The instruction handlers, compiled once per x86-64 level; alu.cc picks one at run time.
set(alu_lane_sources alu_select.cc alu_move.cc alu_integer.cc alu_bits.cc alu_carry.cc alu_float.cc
                     alu_rounded.cc alu_approx.cc alu_half.cc alu_compare.cc alu_compare_half.cc
                     alu_convert_integer.cc alu_convert_float.cc alu_mma_tile.cc)
set(alu_isas v2)
# With sanitizers one level will do: they differ in compiler flags only, and each takes minutes.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT KP_SANITIZE)
  list(APPEND alu_isas v3)
endif()
set(alu_objects "")
foreach(isa IN LISTS alu_isas)
  add_library(kp_alu_${isa} OBJECT ${alu_lane_sources})
  target_link_libraries(kp_alu_${isa} PRIVATE kp_options kp_ptx)
  set_target_properties(kp_alu_${isa} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_definitions(kp_alu_${isa} PRIVATE KP_ALU_ISA=alu_${isa})
  # Exact IEEE arithmetic that vectorises: no contraction, but comparisons may be speculated and
  # square roots need no errno. Optimised in every build type: the handlers are the hot path.
  target_compile_options(kp_alu_${isa} PRIVATE -O3 -ffp-contract=off -fno-fast-math -fno-math-errno
                                               -fno-trapping-math -fno-strict-aliasing)
  if("v3" IN_LIST alu_isas)
    target_compile_options(kp_alu_${isa} PRIVATE -march=x86-64-${isa})
  endif()
  # With sanitizers one of these files compiles for minutes. The handlers only loop over 32 lanes of
  # the block they are given, and their callers stay instrumented.
  if(KP_SANITIZE)
    target_compile_options(kp_alu_${isa} PRIVATE -fno-sanitize=all -O1)
  endif()
  list(APPEND alu_objects $<TARGET_OBJECTS:kp_alu_${isa}>)
endforeach()
set_source_files_properties(alu_rounded.cc PROPERTIES COMPILE_OPTIONS -frounding-math)

kp_module(NAME alu LAYER 2
  SOURCES alu.cc alu_spec.cc alu_mma.cc ${alu_objects}
  DEPS kp_base kp_ptx
  TESTS alu_coverage_test.cc alu_float_test.cc alu_forms_test.cc alu_hardware_test.cc
        alu_integer_test.cc alu_mma_test.cc)
if("v3" IN_LIST alu_isas)
  target_compile_definitions(kp_alu PRIVATE KP_ALU_HAS_V3)
endif()
