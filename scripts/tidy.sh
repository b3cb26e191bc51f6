#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy with the compile commands of a build folder: tidy.sh build/release [file...]. Without files: the
# folders that are clean and stay so.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: scripts/tidy.sh BUILD_FOLDER [file...]}
shift
clean=(src/base src/process src/evaluate)
if (($#)); then files=("$@"); else
  mapfile -t files < <(git ls-files "${clean[@]}" | grep '\.cc$' | grep -v '_test\.cc$')
fi
printf '%s\n' "${files[@]}" |
  xargs -P "$(nproc)" -n 4 clang-tidy-19 --quiet -p "$build" 2> >(grep -v 'warnings generated' >&2)
