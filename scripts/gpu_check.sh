#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that only a GPU can show, on a machine with an NVIDIA GPU and the CUDA toolkit; nothing is
# installed: scripts/gpu_check.sh [BUNDLE_FOLDER] [PART...]. Parts: doctor tests clock selftest optimize
# experts agents (default: all but experts and agents). Without a folder build/release is used. A table comes last; exit code 1 when a part failed.
#   KP_OUT      folder for the reports of the parts (default: a new temporary one)
#   KP_RUNS     runs of the exploit suite (3)          KP_DEVICE   cuda
#   KP_EXPERTS  programs of tests/gpu/experts (all), KP_SECONDS for them (560)
#   KP_EVALUATIONS  of each example task (20)          KP_REPEATS  of the clock study (20)
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
bundle=$here/build/release
if [[ ${1:-} == */* ]]; then bundle=$(cd "$1" && pwd) && shift || exit 2; fi
parts=("$@"); ((${#parts[@]})) || parts=(doctor tests clock selftest optimize)
out=${KP_OUT:-$(mktemp -d)}
device=${KP_DEVICE:-cuda}
mkdir -p "$out"
export PATH=$bundle/bin:$PATH
tasks=$bundle/share/kernelpro/tasks; [[ -d $tasks ]] || tasks=$here/examples/tasks

if ! nvidia-smi -L > /dev/null 2>&1; then
  echo "skipped: no GPU"
  exit 0
fi
table=()
failed=0
row() { table+=("$(printf '%-22s %-8s %s' "$1" "$2" "$3")"); [[ $2 == ok ]] || failed=1; }
judge() { if (($1)); then echo FAILED; else echo ok; fi; }

for part in "${parts[@]}"; do
  case $part in
    doctor)
      kernelpro doctor > "$out/doctor.txt"; code=$?
      row doctor "$(judge $code)" "$(grep -c '^ok' "$out/doctor.txt") of $(wc -l < "$out/doctor.txt") checks"
      ;;
    tests)
      if [[ ! -x $bundle/bin/gpu_test ]]; then
        row "GPU tests" FAILED "no bin/gpu_test: build the target gpu_test, then scripts/bundle.sh"
        continue
      fi
      gpu_test > "$out/gpu_test.txt" 2>&1; code=$?
      row "GPU tests" "$(judge $code)" "$(grep -E 'tests? ran|PASSED' "$out/gpu_test.txt" | tr -s '\n ' ' ')"
      grep -A8 '^evaluation of 3 checked' "$out/gpu_test.txt"
      ;;
    clock)
      kernelpro clock --device "$device" --repeats "${KP_REPEATS:-20}" > "$out/clock.txt"; code=$?
      cat "$out/clock.txt"
      row clock "$(judge $code)" "$(grep 'itself  ' "$out/clock.txt")"
      ;;
    selftest)
      for ((run = 1; run <= ${KP_RUNS:-3}; ++run)); do
        kernelpro selftest --device "$device" > "$out/selftest$run.txt" 2> /dev/null; code=$?
        row "exploit suite, run $run" "$(judge $code)" "$(tail -1 "$out/selftest$run.txt")"
      done
      cat "$out/selftest1.txt"
      ;;
    optimize)
      for task in "$tasks"/*/; do
        name=$(basename "$task")
        kernelpro optimize "$task" --device "$device" --seed 1 --evaluations "${KP_EVALUATIONS:-20}" \
          --run "$out/run_$name" > "$out/optimize_$name.txt" 2> "$out/optimize_$name.err"; code=$?
        row "optimize $name" "$(judge $code)" \
          "$(grep '^speedup over the seed' "$out/optimize_$name.txt"); $(grep 'rank correlation' "$out/optimize_$name.txt")"
      done
      ;;
    experts)
      # The programs that the experts are judged on: profiles and traces for experts_store, and what
      # kernelpro itself says of some of them.
      programs=$here/tests/gpu/experts
      mkdir -p "$out/experts"
      for source in "$programs"/sys_*.cu; do
        name=$(basename "$source" .cu)
        nvcc -std=c++17 -O3 -gencode arch=compute_90a,code=sm_90a -I"$programs" "$source" \
          -o "$out/experts/$name.bin" > /dev/null 2>&1 &
      done
      wait
      traced=0
      for program in "$out"/experts/sys_*.bin; do
        name=$(basename "$program" .bin)
        CUDA_INJECTION64_PATH=$bundle/lib/kernelpro/libkernelpro-activity.so \
          KERNELPRO_ACTIVITY_FILE=$out/experts/$name.activity.jsonl timeout 60 "$program" \
          > "$out/experts/$name.times.csv" 2> "$out/experts/$name.err" && traced=$((traced + 1))
        rm -f "$program"
      done
      row "activity traces" "$(judge $((traced == 0)))" "$traced programs"
      # shellcheck disable=SC2086
      EXPERTS_SECONDS=${KP_SECONDS:-560} bash "$programs/collect.sh" "$out/experts" ${KP_EXPERTS:-} \
        > "$out/experts/table.txt" 2>&1; code=$?
      tail -60 "$out/experts/table.txt"
      row "experts' programs" "$(judge $code)" "$(grep -c ^.- "$out/experts/table.txt") lines"
      for case in core_memory:mem_coalesce_ld core_shared:smem_bank core_compute:cmp_divergence; do
        for twin in fires silent; do
          name=${case#*:}__$twin
          kernelpro diagnose "$programs/${case%:*}.cu" --device "$device" --kernel "$name" --arg time \
            --arg "$name" > "$out/diagnose_$name.txt" 2>&1; code=$?
          row "diagnose $name" "$(judge $code)" "$(grep -m1 '^\[' "$out/diagnose_$name.txt")"
        done
      done
      ;;
    agents)
      # The kernels that outside agents wrote on the emulator, and PyTorch's own operations.
      runs=$bundle/share/kernelpro/runs; [[ -d $runs ]] || runs=$here/examples/runs
      for run in "$runs"/*/; do
        name=$(basename "$run")
        cp -r "$run" "$out/agent_$name"
        kernelpro agent evaluate "$out/agent_$name" --device "$device" --all > "$out/agent_$name.txt" 2>&1; code=$?
        sed -n '/judged elsewhere/,$p' "$out/agent_$name.txt"
        row "agent's $name" "$(judge $code)" \
          "$(awk '/ measured /' "$out/agent_$name.txt" | sed 's/.*  \([0-9.]*x\) of.*/\1/' | sort -rn | head -1) of the seed, best of $(grep -c ' measured ' "$out/agent_$name.txt")"
      done
      python3 "$here/benchmarks/torch_ops.py" > "$out/torch.txt" 2> "$out/torch.err"; code=$?
      cat "$out/torch.txt"
      row "PyTorch" "$(judge $code)" "$(head -1 "$out/torch.txt")"
      ;;
    *) echo "no part '$part'" >&2; exit 2 ;;
  esac
done

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
printf '%s\n' "${table[@]}"
echo "reports: $out"
exit $failed
