#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches llama.cpp's server and the libraries that it needs from Debian sid into a folder, as a
# root for bwrap; nothing is installed: fetch_llama.sh FOLDER. Prints why it cannot; exit code 1 then.
set -uo pipefail
folder=$1
root=$folder/root
packages=(llama.cpp-tools libllama0 libggml0 libc6 libstdc++6 libgcc-s1 libssl3t64 libgomp1 zlib1g libzstd1)
[[ -x $root/usr/bin/llama-server ]] && exit 0
quit() { echo "$1"; exit 1; }
[[ $(uname -m) == x86_64 ]] || quit "no x86-64"
for tool in apt-get dpkg-deb timeout; do
  command -v "$tool" > /dev/null || quit "no $tool"
done
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[[ -r $keys ]] || quit "no $keys"
# The mirror that this machine is set up with.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 2> /dev/null | grep -E '/debian/?$' | head -1)
[[ -n $mirror ]] || quit "apt knows no mirror of Debian"

work=$folder/apt
rm -rf "$work" "$root.new"
mkdir -p "$work"/{state/lists/partial,cache/archives/partial,debs} "$root.new"
touch "$work/status"
echo "deb [signed-by=$keys] $mirror sid main" > "$work/sources.list"
cat > "$work/apt.conf" << END
Dir::State "$work/state";
Dir::State::status "$work/status";
Dir::Cache "$work/cache";
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "/dev/null";
APT::Architectures "amd64";
APT::Sandbox::User "$(id -un)";
Acquire::Languages "none";
Acquire::Retries "1";
Acquire::http::Timeout "15";
END
export APT_CONFIG=$work/apt.conf
timeout 60 apt-get update > "$work/log" 2>&1 && ! grep -q '^[EW]: ' "$work/log" || quit "no list of Debian sid: see $work/log"
cd "$work/debs" || exit 1
timeout 90 apt-get download "${packages[@]}" >> "$work/log" 2>&1 || quit "the packages cannot be fetched: see $work/log"
for package in ./*.deb; do
  dpkg-deb -x "$package" "$root.new" || quit "cannot unpack $package"
done
[[ -x $root.new/usr/bin/llama-server ]] || quit "there is no llama-server in llama.cpp-tools any more"
rm -rf "$root" && mv "$root.new" "$root" && rm -rf "$work"
