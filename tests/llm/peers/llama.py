#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our clients against llama.cpp's server: llama.py ROOT MODEL.gguf WIRE_PROBE

The server runs in a sandbox from ROOT (see fetch_llama.sh). Prints a line for each check; exit code
77 and a reason when the server does not start here.
"""
import json
import os
import socket
import subprocess
import sys
import tempfile
import time

ROOT, MODEL, PROBE = sys.argv[1:4]
KEY = "sk-llama-right"
OBJECT = {
    "type": "object",
    "properties": {"action": {"enum": ["tile", "unroll"]}, "keep": {"type": "boolean"}},
    "required": ["action", "keep"],
    "additionalProperties": False,
}
# Thousands of tokens of any model: long enough to be cancelled in the middle.
LONG = {
    "type": "object",
    "properties": {"all": {"type": "array", "minItems": 1500, "items": {"type": "integer"}}},
    "required": ["all"],
    "additionalProperties": False,
}


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def start(port, log):
    command = ["bwrap", "--ro-bind", f"{ROOT}/usr", "/usr", "--symlink", "usr/lib", "/lib",
               "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev",
               "--tmpfs", "/tmp", "--ro-bind", MODEL, "/model.gguf", "--die-with-parent",
               "--unshare-pid", "--unshare-ipc", "--clearenv", "--setenv", "HOME", "/tmp",
               "/usr/bin/llama-server", "-m", "/model.gguf", "--host", "127.0.0.1",
               "--port", str(port), "--api-key", KEY, "-t", "1", "-c", "16384", "-np", "2"]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def wait_until_up(server, port):
    for _ in range(300):
        if server.poll() is not None:
            return False
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as link:
                link.sendall(b"GET /health HTTP/1.0\r\n\r\n")
                if b" 200 " in link.recv(200):
                    return True
        except OSError:
            pass
        time.sleep(0.1)
    return False


class Checks:
    def __init__(self, port):
        self.port = port
        self.done = 0
        self.failed = 0
        self.folder = tempfile.mkdtemp()

    def schema(self, schema):
        path = os.path.join(self.folder, f"{len(json.dumps(schema))}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(schema, file)
        return path

    def ask(self, wire, *options, key=KEY):
        base = f"http://127.0.0.1:{self.port}" + ("/v1" if wire == "openai" else "")
        # The server is on this machine: a proxy of the environment must not be asked.
        environment = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": key, "ANTHROPIC_API_KEY": key}
        run = subprocess.run([PROBE, "--model", f"{wire}:noise", "--base-url", base, *options, "Say something."],
                             capture_output=True, text=True, timeout=90, env=environment, check=False)
        return json.loads(run.stdout)

    def check(self, name, answer, *wanted):
        wrong = [text for text, good in wanted if not good]
        self.done += not wrong
        self.failed += bool(wrong)
        print(f"FAILED {name}: not {'; not '.join(wrong)}: {json.dumps(answer)[:400]}" if wrong else f"ok {name}")


def used(answer):
    usage = answer.get("usage", {})
    return ("usage as the server counts it",
            usage.get("input", 0) > 0 and usage.get("output", 0) > 0 and not usage.get("estimated", True))


def check_wire(checks, wire):
    for way in ("--stream", "--no-stream"):
        name = f"{wire} {way}"
        answer = checks.ask(wire, way)
        checks.check(f"{name}: an answer", answer, ("a text", bool(answer.get("text"))),
                     ("without a problem", answer.get("problem") == ""), used(answer),
                     ("one attempt", answer.get("attempts") == 1))
        answer = checks.ask(wire, way, "--max-tokens", "1")
        checks.check(f"{name}: max_tokens 1 is told as truncated", answer,
                     ("truncated", answer.get("problem") == "truncated"), used(answer),
                     ("one token", answer.get("usage", {}).get("output") == 1))
        answer = checks.ask(wire, way, key="sk-llama-wrong-0123456789")
        checks.check(f"{name}: a wrong key", answer,
                     ("an error about the key", answer.get("error") == "invalid_argument" and "key" in answer["message"]),
                     ("without the key in it", "0123456789" not in json.dumps(answer)))
        answer = checks.ask(wire, way, "--schema", checks.schema(OBJECT))
        if wire == "openai":
            checks.check(f"{name}: the schema is met", answer, ("no problem", answer.get("problem") == ""),
                         ("such an object", set(json.loads(answer.get("text") or "{}")) == {"action", "keep"}))
        else:
            # This server ignores output_config: noise comes back, and our side must say so.
            checks.check(f"{name}: an answer beside the schema is told", answer,
                         ("problem 'schema'", answer.get("problem") == "schema"))


def check_cancelling(checks):
    for way in ("--stream", "--no-stream"):
        slow = ("--schema", checks.schema(LONG), "--max-tokens", "7000")
        answer = checks.ask("openai", way, *slow, "--cancel-after", "60")
        checks.check(f"openai {way}: cancelled in the middle", answer,
                     ("cancelled", answer.get("error") == "cancelled"))
        answer = checks.ask("openai", way)
        checks.check(f"openai {way}: the next question is answered", answer,
                     ("a text", bool(answer.get("text"))))


def main():
    with tempfile.TemporaryFile() as log:
        port = free_port()
        server = start(port, log)
        try:
            if not wait_until_up(server, port):
                log.seek(0)
                last = log.read().decode(errors="replace").strip().splitlines()
                print(f"llama-server does not start here: {last[-1] if last else 'no output'}")
                return 77
            checks = Checks(port)
            check_wire(checks, "openai")
            check_wire(checks, "anthropic")
            check_cancelling(checks)
            print(f"{checks.done} ok, {checks.failed} failed")
            return 1 if checks.failed or not checks.done else 0
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    sys.exit(main())
