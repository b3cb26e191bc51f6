#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a server of the Model Context Protocol through the official clients:
#   tests/mcp/conformance.sh build/release/bin/mcp_probe_server
#   tests/mcp/conformance.sh build/release/bin/kernelpro mcp
# Exit code 0: every row passed; 1: one did not; 77: the clients are not to be had here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

skip() {
  echo "skipped: $1"
  exit 77
}

if (($# == 0)); then
  echo "usage: $0 COMMAND [ARGUMENT...]" >&2
  exit 2
fi
command -v node > /dev/null || skip "there is no node on PATH"
command -v npm > /dev/null || skip "there is no npm on PATH"
major=$(node -p 'process.versions.node.split(".")[0]')
((major >= 20)) || skip "the clients need node 20, this is $major"

# One folder for each set of versions, outside the source tree and kept between runs.
version=$(cksum < "$here/package.json" | cut -d' ' -f1)
peers=${XDG_CACHE_HOME:-$HOME/.cache}/kernelpro/peers/mcp-$version
mkdir -p "$peers"
exec 9> "$peers/lock"
flock 9
if [[ ! -e $peers/installed ]]; then
  cp "$here/package.json" "$peers/"
  if ! npm install --prefix "$peers" --no-audit --no-fund --ignore-scripts > "$peers/npm.log" 2>&1; then
    skip "npm could not install the clients ($(grep -m1 'npm error' "$peers/npm.log" || echo "see $peers/npm.log"))"
  fi
  touch "$peers/installed"
fi
flock -u 9

# Node looks for packages in the folders above a module's own.
run=$(mktemp -d "$peers/run.XXXXXX")
trap 'rm -rf "$run"' EXIT
cp "$here"/*.mjs "$run/"
# Not exec: the folder is to be removed.
node "$run/client.mjs" "$@"
node "$run/search.mjs" "$here/../../examples/tasks/transpose" "$@"
