#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Times the seed and the best kernel of each run under a folder on this machine's GPU and prints them
# beside the modelled times: gpu_check.sh RUNS_FOLDER, with RUNS_FOLDER/<task>/{run.db,best.cu,task/}.
# Needs nvcc, a GPU and python3's sqlite3; nothing is installed.
set -euo pipefail
runs=${1:?usage: scripts/gpu_check.sh RUNS_FOLDER}
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! nvidia-smi -L > /dev/null 2>&1; then
  echo "skipped: no GPU"
  exit 0
fi
nvcc -O3 -arch=native -o "$work/time_candidate" "$here/tests/gpu/time_candidate.cu" -ldl

# TaskArgs of the timed workload of each example task.
arguments() {
  case $1 in
    row_softmax) echo "i64:16384 i64:1024 buf:67108864 buf:67108864" ;;
    transpose) echo "i64:4096 i64:4096 buf:67108864 buf:67108864" ;;
    matmul) echo "i64:1024 i64:1024 i64:1024 buf:4194304 buf:4194304 buf:4194304" ;;
    layer_norm) echo "i64:16384 i64:1024 buf:67108864 buf:4096 buf:4096 buf:67108864" ;;
    block_sum) echo "i64:4096 i64:4096 buf:67108864 buf:16384" ;;
    *) return 1 ;;
  esac
}

measure() {  # measure SOURCE HEADER_FOLDER TASK
  nvcc -O3 -std=c++17 -shared -Xcompiler -fPIC -arch=native -I "$2" -o "$work/candidate.so" "$1"
  # shellcheck disable=SC2046
  "$work/time_candidate" "$work/candidate.so" $(arguments "$3")
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
printf '%-14s %-6s %14s %14s %8s\n' task kernel 'modelled us' 'measured us' ratio
for run in "$runs"/*/; do
  task=$(basename "$run")
  modelled=$(python3 -c "
import sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute('select time_us from node where verdict=\'ok\'').fetchall()
root = sqlite3.connect(sys.argv[1]).execute('select time_us from node where id=1').fetchone()
print(root[0], min(rows)[0])" "$run/run.db")
  read -r seed_us best_us <<< "$modelled"
  for kernel in seed best; do
    source=$run/best.cu us=$best_us
    [[ $kernel == seed ]] && source=$run/task/seed.cu us=$seed_us
    measured=$(measure "$source" "$run" "$task")
    printf '%-14s %-6s %14.1f %14.1f %8.2f\n' "$task" "$kernel" "$us" "$measured" \
      "$(python3 -c "print($us / $measured)")"
  done
done
