#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles, times, disassembles and profiles the programs of this folder on a machine with a GPU.
#   collect.sh OUT [PROGRAM...]     PROGRAM: a name without .cu or .py; default: all of the folder
# A line `// flags: ...` in a .cu adds compiler flags; if they name -gencode or -arch, they replace
# the default target. A .py must understand `time` and `profile` as the .cu programs do.
# In OUT, for each program: NAME.ptxas, NAME.times.csv, NAME.sass, NAME.nvdisasm, NAME.csv (raw page
# of ncu), NAME.source.csv (per instruction), NAME.log (what went wrong). sys_*: NAME.times.csv and,
# where nsys exists, NAME.nsys.txt. EXPERTS_SECONDS (285) limits the whole run: what comes late is
# left out, the order being time, raw page, source page.
set -u
[ $# -ge 1 ] || { echo "use: $0 OUT [PROGRAM...]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && out=$(cd "$1" && pwd) || exit 2
shift
export here out
bin=${EXPERTS_BIN:-$(mktemp -d)}
mkdir -p "$bin"
export bin
limit=${EXPERTS_SECONDS:-285}
jobs=${EXPERTS_JOBS:-16}
programs=("$@")
if [ ${#programs[@]} -eq 0 ]; then
  for f in "$here"/*.cu "$here"/*.py; do
    [ -e "$f" ] && programs+=("$(basename "${f%.*}")")
  done
fi

left() { echo $((limit - SECONDS)); }
# cap N: the seconds a step may take, at most N and at most what is left
cap() { local l; l=$(left); echo $((l < $1 ? (l < 1 ? 1 : l) : $1)); }

build() {
  local name=$1 src=$here/$1.cu flags target
  [ -e "$src" ] || return 0
  flags=$(sed -n 's|^// flags: *||p' "$src" | head -1)
  target="-gencode arch=compute_90a,code=sm_90a"
  case "$flags" in *-gencode*|*-arch*) target="" ;; esac
  # shellcheck disable=SC2086
  if ! timeout 150 nvcc -std=c++17 -O3 -lineinfo $target \
      -Xptxas -v,--warn-on-spills,--warn-on-local-memory-usage $flags -I"$here" \
      "$src" -o "$bin/$name" >"$out/$name.ptxas" 2>&1; then
    echo "nvcc failed, see $name.ptxas" >"$out/$name.log"
    rm -f "$bin/$name"
    return 0
  fi
  timeout 60 cuobjdump -sass "$bin/$name" >"$out/$name.sass" 2>>"$out/$name.log"
  local dir
  dir=$(mktemp -d)
  (cd "$dir" && timeout 60 cuobjdump -xelf all "$bin/$name" >/dev/null 2>>"$out/$name.log"
   for cubin in *.cubin; do
     [ -e "$cubin" ] || continue
     echo "// cubin $cubin"
     timeout 60 nvdisasm -g -c "$cubin" 2>>"$out/$name.log"
   done) >"$out/$name.nvdisasm"
  rm -rf "$dir"
}
export -f build

launcher() { if [ -e "$here/$1.cu" ]; then echo "$bin/$1"; else echo "python3 $here/$1.py"; fi; }
runnable() { [ -e "$here/$1.py" ] || [ -x "$bin/$1" ]; }

all_metrics() { grep -v '^#' "$here/metrics.txt" | grep -v '^ *$' | sort -u | paste -sd, -; }
# Without what only some versions of ncu know: the hardware's counters alone.
safe_metrics() { sed '/^# used by formulas/,$d' "$here/metrics.txt" | grep '^[a-z]' |
  sort -u | paste -sd, -; }
# One by one: of the group the page shows only the total.
source_metrics=smsp__pcsamp_sample_count
for reason in barrier branch_resolving dispatch_stall drain imc_miss lg_throttle long_scoreboard math_pipe_throttle membar mio_throttle misc no_instructions not_selected selected short_scoreboard sleeping tex_throttle wait warpgroup_arrive; do
  source_metrics+=,smsp__pcsamp_warps_issue_stalled_$reason
done
source_metrics+=,inst_executed,thread_inst_executed
source_metrics+=,memory_l2_theoretical_sectors_global,memory_l2_theoretical_sectors_global_ideal
source_metrics+=,memory_l1_wavefronts_shared,memory_l1_wavefronts_shared_ideal

# ncu_run NAME SECONDS OUTPUT ARGS...: ncu's options over the cases of one program: in one process,
# or, where a case is known to end the process, the sound cases one by one
ncu_run() {
  local name=$1 seconds=$2 to=$3 case
  shift 3
  local ncu=(ncu --clock-control none --cache-control all --profile-from-start off
    --target-processes all --csv "$@")
  if [ ! -e "$bin/$name.broken" ]; then
    # shellcheck disable=SC2046
    timeout -k 5 "$seconds" "${ncu[@]}" $(launcher "$name") profile >"$to" 2>>"$out/$name.log"
    return
  fi
  : >"$to"
  for case in $(cut -d, -f1 "$out/$name.times.csv"); do
    # shellcheck disable=SC2046
    timeout -k 5 "$(cap 20)" "${ncu[@]}" $(launcher "$name") profile "$case" >>"$to" 2>>"$out/$name.log"
  done
}

time_cases() {
  local name=$1 case
  # shellcheck disable=SC2046
  timeout "$(cap 40)" $(launcher "$name") time >"$out/$name.times.csv" 2>>"$out/$name.log" && return
  touch "$bin/$name.broken"
  # shellcheck disable=SC2046
  for case in $(timeout "$(cap 10)" $(launcher "$name") list); do
    grep -q "^$case," "$out/$name.times.csv" ||
      timeout "$(cap 10)" $(launcher "$name") time "$case" >>"$out/$name.times.csv" 2>>"$out/$name.log" ||
      echo "case $case fails" >>"$out/$name.log"
  done
}

# The list without the names that ncu's answer complains of.
known_metrics() {
  local bad
  bad=$(grep -h '==ERROR==\|==WARNING==' "$1" | grep -o '[a-z0-9]*__[A-Za-z0-9_.]*' | sort -u)
  tr , '\n' <<<"$metrics" | grep -vxF -e "${bad:-none}" | paste -sd, -
}

raw_page() {
  local name=$1 to=$out/$1.csv try rc
  for try in all known safe; do
    case $try in
      known) metrics=$(known_metrics "$to.failed") ;;
      safe) metrics=$(safe_metrics) ;;
    esac
    ncu_run "$name" "$(cap 100)" "$to" --page raw --print-units base --print-fp --metrics "$metrics"
    rc=$?
    grep -q '^"[0-9]' "$to" && return 0
    # 124: it was slow, not refused
    [ $rc -eq 124 ] && { echo "raw page of $name took too long"; return 0; }
    cat "$to" >>"$to.failed"
    echo "$name, $try metrics: $(grep -h '==ERROR==' "$to" | head -2)"
    # a program that fails by itself must not shorten the list for the others
    grep -q 'etric' "$to" || return 0
  done
}

metrics=$(all_metrics)
echo "compiling ${#programs[@]} programs"
printf '%s\n' "${programs[@]}" | xargs -P "$jobs" -I{} bash -c 'build {}'
echo "compiled after $SECONDS s"

suites=()
for name in "${programs[@]}"; do
  runnable "$name" || continue
  case "$name" in
    sys_*)
      begin=$(date +%s%N)
      timeout "$(cap 20)" "$bin/$name" >"$out/$name.times.csv" 2>>"$out/$name.log"
      echo "wall_us,$((($(date +%s%N) - begin) / 1000))" >>"$out/$name.times.csv"
      if command -v nsys >/dev/null && [ "$(left)" -gt 60 ]; then
        timeout "$(cap 30)" nsys profile --stats=true --force-overwrite true -t cuda \
          -o "$bin/$name.nsys" "$bin/$name" >"$out/$name.nsys.txt" 2>&1
      fi ;;
    *)
      suites+=("$name")
      time_cases "$name" ;;
  esac
done
echo "timed after $SECONDS s"

for name in "${suites[@]+"${suites[@]}"}"; do
  [ "$(left)" -gt 10 ] || { echo "no time for the raw page of $name"; continue; }
  raw_page "$name"
done
echo "raw pages after $SECONDS s"

for name in "${suites[@]+"${suites[@]}"}"; do
  [ "$(left)" -gt 10 ] || { echo "no time for the source page of $name"; continue; }
  ncu_run "$name" "$(cap 60)" "$out/$name.source.csv" --page source --print-source sass \
    --import-source no --metrics "$source_metrics"
done
echo "source pages after $SECONDS s"

printf '\n%-28s %6s %6s %6s %8s %9s %9s\n' program cases timed raw source_kB sass_kB log_lines
count() { if [ -s "$1" ]; then grep -c "$2" "$1"; else echo 0; fi; }
size() { if [ -e "$1" ]; then echo $(($(stat -c %s "$1") / 1024)); else echo 0; fi; }
for name in "${programs[@]}"; do
  cases=$(count "$here/$name.cu" 'Add("\|^  ADD_[A-Z]*(')
  printf '%-28s %6s %6s %6s %8s %9s %9s\n' "$name" "$cases" "$(count "$out/$name.times.csv" ,)" \
    "$(count "$out/$name.csv" '^"[0-9]')" "$(size "$out/$name.source.csv")" \
    "$(size "$out/$name.sass")" "$(count "$out/$name.log" .)"
  find "$out" -name "$name.log" -empty -delete
done
