#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Both ends of the wires against software that is not ours: scripts/wire_peers.sh [BUILD_FOLDER]
#   openai, anthropic  the providers' own clients against tests/llm's fake server
#   llama.cpp          our clients against a real server of both wires (a model of random weights)
#   mcp                tests/mcp/conformance.sh, where there is one
# Clients and server are fetched, never installed: into $XDG_CACHE_HOME/kernelpro/peers. What
# cannot be had is "skipped: why". Exit code 1 when a part failed; when none did but one was
# skipped, KP_SKIP_CODE (default 0).
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$here/build/release}" && pwd) || exit 2
peers=$here/tests/llm/peers
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kernelpro/peers
out=$build/wire_peers
mkdir -p "$cache" "$out"
for program in fake_llm_server wire_probe; do
  [[ -x $build/bin/$program ]] || { echo "no $build/bin/$program: build the targets fake_llm_server and wire_probe"; exit 2; }
done

# The whole script ends within five minutes, whatever hangs.
within() {
  local left=$((285 - SECONDS))
  ((left > 1)) || left=1
  echo $(($1 < left ? $1 : left))
}

table=()
failed=0
skipped=0
row() {
  table+=("$(printf '%-12s %s' "$1" "$2")")
  case $2 in FAILED*) failed=1 ;; skipped:*) skipped=1 ;; esac
}
# row_of NAME CODE LOG: what a part's exit code (77: skipped) and its last line say.
row_of() {
  local last
  last=$(tail -n 1 "$3")
  case $2 in
    0) row "$1" "ok       $last" ;;
    77) row "$1" "skipped: ${last#skipped: }" ;;
    124) row "$1" "FAILED   no end within the time limit: see $3" ;;
    *) row "$1" "FAILED   $last: see $3" ;;
  esac
  grep -a -A6 '^FAILED' "$3"
}

# The clients, fetched once for each package-lock.json. Prints why they cannot be had.
fetch_clients() {
  command -v node > /dev/null && command -v npm > /dev/null || { echo "no node and npm"; return 1; }
  local major
  major=$(node -p 'process.versions.node.split(".")[0]')
  ((major >= 20)) || { echo "node $major is too old (20 or newer)"; return 1; }
  clients=$cache/clients-$(cksum < "$peers/package-lock.json" | cut -d' ' -f1)
  [[ -e $clients/complete ]] && return 0
  mkdir -p "$clients"
  cp "$peers/package.json" "$peers/package-lock.json" "$clients"
  (cd "$clients" && timeout "$(within 90)" npm ci --ignore-scripts --no-audit --no-fund > npm.log 2>&1) && touch "$clients/complete" && return 0
  echo "npm cannot fetch the clients: see $clients/npm.log"
  return 1
}

run_clients() {
  if ! fetch_clients > "$out/fetch.txt"; then
    row openai "skipped: $(tail -n 1 "$out/fetch.txt")"
    row anthropic "skipped: $(tail -n 1 "$out/fetch.txt")"
    return
  fi
  cp "$peers"/*.mjs "$clients"
  rm -f "$out/ledger.jsonl"
  coproc SERVER { exec "$build/bin/fake_llm_server" --key sk-right --rules "$peers/rules.jsonl" --ledger "$out/ledger.jsonl"; }
  local port
  read -r -t 10 port <&"${SERVER[0]}" || { row openai "FAILED   the fake server does not start"; return; }
  local name
  for name in openai anthropic; do
    # Only the key and the address that are given here: nothing of the environment.
    (cd "$clients" && env -i PATH="$PATH" HOME="$out" timeout "$(within 60)" node $name.mjs "http://127.0.0.1:$port" sk-right) > "$out/$name.txt" 2>&1
    row_of $name $? "$out/$name.txt"
  done
  # The server ends when its standard input does.
  eval "exec ${SERVER[1]}>&-"
  wait "$SERVER_PID" 2> /dev/null
}

run_llama() {
  local tool
  for tool in bwrap python3; do
    command -v $tool > /dev/null || { row llama.cpp "skipped: no $tool"; return; }
  done
  mkdir -p "$cache/llama"
  if ! timeout "$(within 150)" "$peers/fetch_llama.sh" "$cache/llama" > "$out/llama_fetch.txt" 2>&1; then
    row llama.cpp "skipped: $(tail -n 1 "$out/llama_fetch.txt")"
    return
  fi
  python3 "$peers/tiny_gguf.py" "$out/noise.gguf"
  timeout "$(within 120)" python3 "$peers/llama.py" "$cache/llama/root" "$out/noise.gguf" "$build/bin/wire_probe" > "$out/llama.txt" 2>&1
  row_of llama.cpp $? "$out/llama.txt"
}

run_mcp() {
  [[ -x $here/tests/mcp/conformance.sh ]] || return
  local command=("$build/bin/kernelpro" mcp)
  if ! "${command[@]}" --help > /dev/null 2>&1; then
    command=("$build/bin/mcp_probe_server")
    [[ -x ${command[0]} ]] || { row mcp "skipped: neither 'kernelpro mcp' nor mcp_probe_server is built"; return; }
  fi
  timeout "$(within 120)" "$here/tests/mcp/conformance.sh" "${command[@]}" > "$out/mcp.txt" 2>&1
  row_of mcp $? "$out/mcp.txt"
}

run_clients
run_llama
run_mcp
printf '\n'
printf '%s\n' "${table[@]}"
((failed)) && exit 1
((skipped)) && exit "${KP_SKIP_CODE:-0}"
exit 0
