# SPDX-License-Identifier: Apache-2.0
"""Calls of PyTorch whose kernels experts tuned: hardly any finding about them can be right.

    python tuned_torch.py list             names, one a line
    python tuned_torch.py time [NAME]      NAME,median_us of 11 cold calls (L2 flushed)
    python tuned_torch.py profile [NAME]   each twice warm, then once in the profiler's range

tuned.toml says which kernels of a call count.
"""

import statistics
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit("tuned_torch.py: PyTorch is not installed; install torch with CUDA, or skip this file")


def cases():
    """Yields (name, function that prepares the inputs and returns the call)."""
    half = torch.bfloat16

    def rand(*shape, dtype=torch.float32):
        return torch.rand(*shape, device="cuda", dtype=dtype) - 0.5

    def softmax():
        x = rand(65536, 1024)
        return lambda: torch.softmax(x, dim=-1)

    def layer_norm():
        x, w, b = rand(65536, 1024), rand(1024), rand(1024)
        return lambda: F.layer_norm(x, (1024,), w, b)

    def gelu():
        x = rand(64 << 20, dtype=half)
        return lambda: F.gelu(x)

    def add():
        x, y = rand(64 << 20), rand(64 << 20)
        return lambda: x + y

    def copy():
        x, y = rand(128 << 20), rand(128 << 20)
        return lambda: y.copy_(x)

    def embedding():
        table = rand(50000, 1024, dtype=half)
        ids = torch.randint(0, 50000, (65536,), device="cuda")
        return lambda: F.embedding(ids, table)

    def total():
        x = rand(128 << 20)
        return lambda: x.sum()

    def row_sum():
        x = rand(16384, 8192)
        return lambda: x.sum(dim=-1)

    def conv2d():
        x = rand(64, 128, 56, 56, dtype=half).contiguous(memory_format=torch.channels_last)
        w = rand(128, 128, 3, 3, dtype=half).contiguous(memory_format=torch.channels_last)
        return lambda: F.conv2d(x, w, padding=1)

    def attention():
        q, k, v = (rand(8, 16, 4096, 128, dtype=half) for _ in range(3))
        return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=False)

    def linear():
        x, w = rand(8192, 4096, dtype=half), rand(4096, 4096, dtype=half)
        return lambda: F.linear(x, w)

    return [
        ("torch_softmax", softmax),
        ("torch_layer_norm", layer_norm),
        ("torch_gelu", gelu),
        ("torch_add", add),
        ("torch_copy", copy),
        ("torch_embedding", embedding),
        ("torch_sum", total),
        ("torch_row_sum", row_sum),
        ("torch_conv2d", conv2d),
        ("torch_attention", attention),
        ("torch_linear", linear),
    ]


def median_microseconds(call):
    scratch = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    times = []
    for _ in range(11):
        scratch.fill_(1)
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        stop.record()
        stop.synchronize()
        times.append(1000 * start.elapsed_time(stop))
    return statistics.median(times)


def profile(call):
    """One call in the profiler's range; the names of ncu's kernels tell the calls apart."""
    torch.cuda.profiler.start()
    call()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def main(mode, only):
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True  # cuDNN picks its fastest kernel in the warm calls
    for name, prepare in cases():
        if only and name != only:
            continue
        if mode == "list":
            print(name, flush=True)
            continue
        call = prepare()
        call()
        call()
        torch.cuda.synchronize()
        if mode == "time":
            print(f"{name},{median_microseconds(call):.3f}", flush=True)
        elif mode == "profile":
            profile(call)
            print(name, flush=True)
        else:
            sys.exit(f"tuned_torch.py: unknown mode '{mode}': use list, time or profile")
        del call
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "list", sys.argv[2] if len(sys.argv) > 2 else "")
