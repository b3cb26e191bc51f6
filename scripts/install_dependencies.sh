#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what building and testing KernelPro needs and is missing (Debian 12; needs root for that).
set -euo pipefail

packages=(
  g++ make cmake ninja-build ccache mold git
  libfmt-dev nlohmann-json3-dev libtomlplusplus-dev libcli11-dev libsqlite3-dev libxxhash-dev
  libcurl4-openssl-dev libvalijson-dev libkainjow-mustache-dev
  libclang-19-dev libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev
)
[[ " $* " == *" --checks "* ]] && packages+=(clang-format-19 clang-tidy-19 clang-19 libclang-rt-19-dev)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if ((${#missing[@]})); then
  echo "installing: ${missing[*]}" >&2
  sudo=(); [[ $(id -u) == 0 ]] || sudo=(sudo)
  log=$(mktemp)
  "${sudo[@]}" apt-get update >"$log" 2>&1 &&
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      "${missing[@]}" >>"$log" 2>&1 ||
    { tail -n 30 "$log" >&2; echo "could not install: ${missing[*]}" >&2; exit 3; }
  rm -f "$log"
fi

nvcc=$(command -v nvcc || true)
for folder in "${CUDA_HOME:-}" /usr/local/cuda; do
  [[ -z $nvcc && -n $folder && -x $folder/bin/nvcc ]] && nvcc=$folder/bin/nvcc
done
if [[ -z $nvcc ]]; then
  echo "nvcc was not found on PATH, in \$CUDA_HOME or in /usr/local/cuda: install the CUDA toolkit 13" >&2
  exit 3
fi
