# SPDX-License-Identifier: Apache-2.0
"""Times PyTorch's own operations for the shapes of the example tasks: eager and torch.compile.

    python3 benchmarks/torch_ops.py [--json]

Measured as KernelPro measures a candidate: every call works on buffers of its own that are not in the L2 cache,
calls run in rows of about 3 ms between two events, and the median over rows is shown. The same calls on one set of
buffers are the warm figure. fp32 only: TF32 is off, as the tasks' lowest precision says.
"""
import argparse
import json
import statistics
import sys

import torch


def layer_norm():
    rows, cols = 16384, 1024
    weight, bias = torch.rand(cols, device="cuda") + 0.5, torch.randn(cols, device="cuda")
    make = lambda: (torch.randn(rows, cols, device="cuda"),)
    return lambda x: torch.nn.functional.layer_norm(x, (cols,), weight, bias, 1e-5), make


def matmul():
    make = lambda: tuple(torch.randn(1024, 1024, device="cuda") for _ in range(2))
    return lambda a, b: torch.matmul(a, b), make


def row_softmax():
    make = lambda: (torch.randn(16384, 1024, device="cuda") * 2,)
    return lambda x: torch.softmax(x, dim=1), make


def transpose():
    make = lambda: (torch.randn(4096, 4096, device="cuda"),)
    return lambda x: x.t().contiguous(), make


def block_sum():
    make = lambda: (torch.randn(4096, 4096, device="cuda"),)
    return lambda x: x.sum(dim=1), make


OPERATIONS = {f.__name__: f for f in (layer_norm, matmul, row_softmax, transpose, block_sum)}
L2_BYTES = 64 << 20


def row_us(function, arguments, calls):
    """Microseconds a call of one row: call i works on arguments[i % n]."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    outputs = []
    torch.cuda.synchronize()
    begin.record()
    for i in range(calls):
        outputs.append(function(*arguments[i % len(arguments)]))
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1000 / calls


def graphed_row_us(function, arguments, calls):
    """The same as one CUDA graph: what is left when Python's and the launches' own time is taken away."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for a in arguments:
            function(*a)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        kept = []
        with torch.cuda.graph(graph, stream=stream):
            for i in range(calls):
                kept.append(function(*arguments[i % len(arguments)]))
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        graph.replay()
        stream.synchronize()
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
    return begin.elapsed_time(end) * 1000 / calls


def study(name):
    function, make = OPERATIONS[name]()
    one = make()
    bytes_of_one = sum(t.numel() * t.element_size() for t in one) * 2
    sets = max(2, -(-3 * L2_BYTES // bytes_of_one))
    arguments = [make() for _ in range(sets)]
    result = {"operation": name}
    for variant, call in (("eager", function), ("compile", torch.compile(function))):
        for a in arguments:
            call(*a)
        once = row_us(call, arguments, sets)
        calls = max(sets, min(400, int(3000 / once)))
        result[variant] = {
            "cold_us": statistics.median(row_us(call, arguments, calls) for _ in range(30)),
            "warm_us": statistics.median(row_us(call, arguments[:1], calls) for _ in range(30)),
            "graph_cold_us": statistics.median(
                graphed_row_us(function if variant == "eager" else call, arguments, min(calls, 64)) for _ in range(10)),
        }
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("operations", nargs="*", help=f"of {', '.join(OPERATIONS)} (default: all)")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("skipped: no GPU")
        return 0
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    results = [study(name) for name in (options.operations or OPERATIONS)]
    if options.json:
        print(json.dumps({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "operations": results}))
        return 0
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    for r in results:
        for variant in ("eager", "compile"):
            v = r[variant]
            print(f"{r['operation']:<12} {variant:<8} cold {v['cold_us']:8.2f} us   as a graph {v['graph_cold_us']:8.2f} us"
                  f"   warm {v['warm_us']:8.2f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
