#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a folder that runs on a bare Ubuntu 24.04 or Debian 12 (glibc of this machine or newer), and
# a .tar.xz of it: scripts/bundle.sh [OUT_FOLDER]. Takes build/release, or $KP_BUILD.
#   bin/    the four programs, gpu_test  lib/   the shared libraries that the two trusted ones need
#   lib/kernelpro/  our CUDA runtime, the activity trace    share/kernelpro/{tasks,exploits}   share/doc/  licences
# glibc and the driver's library stay the system's, and so does the C++ library of the runner and the
# reference: what they load is built there, perhaps by a newer g++.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
build=${KP_BUILD:-$here/build/release}
out=${1:-$here/build/kernelpro-bundle}
preset=${KP_XZ_PRESET:-9e}  # 1 is quick, for trying
programs=(kernelpro kernelpro-runner kernelpro-emulated-gpu kernelpro-reference)
private=(kernelpro kernelpro-emulated-gpu)  # these have an rpath to ../lib

rm -rf "$out"
mkdir -p "$out"/bin "$out"/lib/kernelpro "$out"/share/kernelpro "$out"/share/doc
for program in "${programs[@]}"; do
  install -m 755 "$build/bin/$program" "$out/bin/"
done
[[ -x $build/bin/gpu_test ]] && install -m 755 "$build/bin/gpu_test" "$out/bin/"  # for scripts/gpu_check.sh
cp -P "$build"/lib/kernelpro/libcudart.so* "$out/lib/kernelpro/"
# Its C++ library is inside it: it is loaded into other people's programs.
activity=$build/lib/kernelpro/libkernelpro-activity.so
[[ -f $activity ]] && install -m 755 "$activity" "$out/lib/kernelpro/"
strip "$out"/bin/* "$out"/lib/kernelpro/libcudart.so.13
[[ ! -f $activity ]] || strip "$out/lib/kernelpro/libkernelpro-activity.so"

# Name and file of everything that the loader finds, but for glibc and what belongs to the driver.
needed() {
  ldd "$@" | awk '$2 == "=>" && $3 ~ "^/" {print $1, $3}' | sort -u |
    grep -vE '^(libc|libm|libdl|libpthread|librt|libresolv|libutil|ld-linux-x86-64|libcuda)\.so'
}

# LLVM's solver and the data of its XML reader's character tables are linked and never used here:
# 50 MB. A library that has their names and stops the program if one is called takes their place.
stub() {  # stub SONAME SYMBOLS_OF_C
  echo "$2" | gcc -x c -shared -fPIC -Os -s -Wl,-soname,"$1" -o "$out/lib/$1" -
}

while read -r name file; do
  case $name in
    libicudata.so.*)
      stub "$name" "const char icudt${name##*.}_dat[64] __attribute__((aligned(16))) = {0};"
      continue
      ;;
    libz3.so.*)
      llvm=$(needed "$build/bin/kernelpro" | awk '/^libLLVM/ {print $2}')
      stub "$name" "$(nm -D --undefined-only "$llvm" |
        awk 'BEGIN {print "#include <stdlib.h>"} $2 ~ /^Z3_/ {print "void " $2 "(void) { abort(); }"}')"
      continue
      ;;
  esac
  install -m 644 "$(readlink -f "$file")" "$out/lib/$name"
  package=$(dpkg-query -S "$(readlink -f "$file")" 2> /dev/null | head -1 | cut -d: -f1 || true)
  if [[ -n $package && -f /usr/share/doc/$package/copyright ]]; then
    cp "/usr/share/doc/$package/copyright" "$out/share/doc/$package.copyright"
  fi
done < <(needed "${private[@]/#/$build/bin/}")

# libclang looks for its own headers beside itself, in clang/VERSION.
clang=$(readlink -f "$(ldconfig -p | awk '/libclang-[0-9]+\.so/ {print $NF; exit}')")
resources=$(echo "$(dirname "$clang")"/clang/[0-9]* /usr/lib/llvm-[0-9]*/lib/clang/[0-9]* | tr ' ' '\n' |
  while read -r folder; do [[ -f $folder/include/stddef.h ]] && echo "$folder"; done | tail -1)
mkdir -p "$out/lib/clang/$(basename "$resources")"
cp -rL "$resources/include" "$out/lib/clang/$(basename "$resources")/"

cp "$here/LICENSE" "$here/third_party.md" "$out/share/doc/"
cp -r "$here/examples/tasks" "$out/share/kernelpro/tasks"
if [[ -d $here/examples/runs ]]; then cp -r "$here/examples/runs" "$out/share/kernelpro/runs"; fi
if [[ -d $here/tests/exploits ]]; then
  cp -r "$here/tests/exploits" "$out/share/kernelpro/exploits"
fi

# Nothing but glibc may come from outside.
for program in "${private[@]}"; do
  if outside=$(needed "$out/bin/$program" | grep -v " $(cd "$out" && pwd)/"); then
    echo "not carried for $program: $outside" >&2
    exit 1
  fi
done

du -sh "$out"/bin "$out"/lib "$out"/share
du -sh "$out"/lib/* | sort -rh | head -5
archive=$out.tar.xz
tar -C "$(dirname "$out")" --owner=0 --group=0 --sort=name -cf - "$(basename "$out")" |
  xz --x86 --lzma2=preset=$preset,dict=192MiB -c > "$archive"
du -h "$archive"
