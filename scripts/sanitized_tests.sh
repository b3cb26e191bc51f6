#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the unit tests that read foreign input or hold the referee's logic with ASan and UBSan, and runs
# them: sanitized_tests.sh [--all]. The tests that start nvcc or whole searches run in the release build only: their time goes
# into other programs. So do those of diagnose/, search/ and report/, which read nothing foreign (and bring the
# playbook along). profile_test takes as long to build as a third of the others together and its readers have fuzzers
# (tests/fuzz, also with both sanitizers): it comes with --all, before a change of profile/ or sass/ lands.
set -euo pipefail
cd "$(dirname "$0")/.."

tests=(base_test process_test task_test ptx_test simt_test device_test store_test evaluate_test
       llm_test mcp_test codesearch_test)
[[ ${1:-} == --all ]] && tests+=(profile_test)

cmake --preset asan > /dev/null
cmake --build --preset asan --target "${tests[@]}" kernelpro-reference
# A reference that crashes must die of its signal, as it does without the sanitizer.
export ASAN_OPTIONS=detect_leaks=1:handle_segv=0
for test in "${tests[@]}"; do
  echo "-- $test"
  "build/asan/bin/$test" --gtest_brief=1
done
