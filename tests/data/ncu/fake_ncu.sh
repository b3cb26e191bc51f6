#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stands in for ncu in tests: takes its options, runs the program, and prints a table with the
# metrics that were asked for. $FAKE_NCU says how it behaves:
#   ok (default)  permission  hang  garbage  app_error  no_kernel  driver  silent  not_loaded
#   no_sampling   fails when a report with samples is wanted
#   bad_source    makes a report whose source page is no table
#   old_chip      knows no metric with "nothing" in its name, and then profiles nothing
# Each run appends its options to $FAKE_NCU_CALLS when that is set.
set -u
mode=${FAKE_NCU:-ok}
log=/dev/stdout export= metrics= import= page=raw
[[ -z ${FAKE_NCU_CALLS:-} ]] || echo "$*" >> "$FAKE_NCU_CALLS"
while [[ $# -gt 0 ]]; do
  case $1 in
    --version) printf 'NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2025.3.1.0 (build 1)\n'; exit 0 ;;
    --log-file) log=$2; shift 2 ;;
    --export) export=$2; shift 2 ;;
    --metrics) metrics=$2; shift 2 ;;
    --import) import=$2; shift 2 ;;
    --page) page=$2; shift 2 ;;
    --csv | --print-fp | --force-overwrite) shift ;;
    --*) shift 2 ;;
    *) break ;;
  esac
done

value() {  # of a metric; kernels "scale" (busy memory) and "tiny"
  case $1 in
    gpu__time_duration.sum) echo "${FAKE_NCU_TIME:-100000}" ;;
    device__attribute_display_name) echo "Fake GPU" ;;
    device__attribute_compute_capability_major) echo 9 ;;
    device__attribute_compute_capability_minor) echo 0 ;;
    dram__bytes.sum.pct_of_peak_sustained_elapsed) echo 85.5 ;;
    sm__cycles_active.* | sm__cycles_elapsed.max) echo 150000 ;;
    launch__waves_per_multiprocessor) echo 40 ;;
    *nothing*) echo "n/a" ;;
    *) echo 10 ;;
  esac
}

unit() {
  case $1 in
    gpu__time_duration.sum) echo ns ;;
    *pct*) echo % ;;
    *) echo "" ;;
  esac
}

raw() {  # the table of the metrics in $1
  local names=${1//,/ } header='"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC"'
  local units='"","","","","","","","","","",""'
  local row='"0","7","p","127.0.0.1","void ns::scale<(int)4>(float *, int)","1","7","(256, 1, 1)","(4096, 1, 1)","0","9.0"'
  local name
  for name in $names; do
    header+=",\"$name\""
    units+=",\"$(unit "$name")\""
    row+=",\"$(value "$name")\""
  done
  printf '%s\n%s\n%s\n' "$header" "$units" "$row"
}

source_page() {
  printf '"Kernel Name","ns::scale(float *, int)"\n'
  printf '"Address","Source","Warp Stall Sampling (All Samples)","# Samples","stall_long_sb","stall_wait","stall_wait (Not Issued)"\n'
  printf '"0x7f0000000100","      LDG.E R2, [R4.64] ","30","30","0","30","10"\n'
  printf '"0x7f0000000110","      FFMA R5, R2, R7, R4 ","470","470","450","20","5"\n'
  printf '"0x7f0000000120","      EXIT ","0","0","0","0","0"\n'
}

if [[ -n $import ]]; then
  [[ $page != source || $mode != bad_source ]] || { echo "nothing here"; exit 0; }
  if [[ $page == source ]]; then source_page; else raw "$(< "$import")"; fi
  exit 0
fi

case $mode in
  hang)
    sleep 300 &
    echo $! > "${FAKE_NCU_PID:-/dev/null}"
    wait
    ;;
  permission)
    printf '==PROF== Connected to process 5 (/bin/app)\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0.\n' > "$log"
    exit 1
    ;;
  garbage) printf '"ID","Kernel Name\n\x01\x02 nothing ends here' > "$log"; exit 0 ;;
  silent) exit 0 ;;
  old_chip)
    if [[ $metrics == *nothing* ]]; then
      echo "==ERROR== Failed to access the following 1 metrics: made__up_nothing.sum." > "$log"
      exit 1
    fi
    ;;
  not_loaded)
    printf '==ERROR== An error was reported by the counter measurement library:\n==ERROR== Failed to initialize the profiler: LibraryNotLoaded. Check that a compatible driver library is loaded.\n==ERROR== The application returned an error code (9).\n' > "$log"
    exit 9
    ;;
  driver) echo "==ERROR== Cuda driver is not compatible with Nsight Compute" > "$log"; exit 1 ;;
  no_kernel)
    printf '==WARNING== No kernels were profiled.\nAvailable Kernels:\n1. copy\n2. ns::scale\n' > "$log"
    exit 0
    ;;
esac
"$@"
status=$?
if [[ $mode == no_sampling && -n $export ]]; then
  echo "==ERROR== Sampling is out of order" > "$log"
  exit 1
fi
if [[ $mode == app_error ]]; then
  printf '==PROF== Connected to process 5\n==ERROR== The application returned an error code (%d).\n' $status > "$log"
  exit $status
fi
if [[ -n $export ]]; then
  printf '%s' "$metrics" > "$export"
  echo "==PROF== Report: $export" > "$log"
else
  { echo "==PROF== Connected to process 5"; raw "$metrics"; } > "$log"
fi
exit $status
