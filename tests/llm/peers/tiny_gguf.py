#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a language model of two random layers that speaks printable noise: tiny_gguf.py FILE

The same bytes every time, no dependencies. A token is a byte. What a real server does with a model
(streams, usage, truncation, answers forced into a schema) can be seen without anybody's weights.
"""
import random
import struct
import sys

EMBED, HEADS, LAYERS, FEED, CONTEXT = 64, 4, 2, 160, 8192
VOCAB = 3 + 256
EOS = 2
NORMAL_SCALE = 0.02

TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:\n{% endif %}"
)


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def array(kind, code, values):
    body = b"".join(text(v) if kind == 8 else struct.pack(code, v) for v in values)
    return struct.pack("<IIQ", 9, kind, len(values)) + body


def u32(value):
    return struct.pack("<II", 4, value)


def f32(value):
    return struct.pack("<If", 6, value)


def string(value):
    return struct.pack("<I", 8) + text(value)


def boolean(value):
    return struct.pack("<I?", 7, value)


def metadata():
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [2, 3, 3] + [6] * 256
    return [
        ("general.architecture", string("llama")),
        ("general.name", string("kernelpro-noise")),
        ("general.alignment", u32(32)),
        ("llama.context_length", u32(CONTEXT)),
        ("llama.embedding_length", u32(EMBED)),
        ("llama.block_count", u32(LAYERS)),
        ("llama.feed_forward_length", u32(FEED)),
        ("llama.attention.head_count", u32(HEADS)),
        ("llama.attention.head_count_kv", u32(HEADS)),
        ("llama.attention.layer_norm_rms_epsilon", f32(1e-5)),
        ("llama.rope.dimension_count", u32(EMBED // HEADS)),
        ("llama.vocab_size", u32(VOCAB)),
        ("tokenizer.ggml.model", string("llama")),
        ("tokenizer.ggml.tokens", array(8, "", tokens)),
        ("tokenizer.ggml.scores", array(6, "<f", [0.0] * VOCAB)),
        ("tokenizer.ggml.token_type", array(5, "<i", kinds)),
        ("tokenizer.ggml.bos_token_id", u32(1)),
        ("tokenizer.ggml.eos_token_id", u32(EOS)),
        ("tokenizer.ggml.unknown_token_id", u32(0)),
        ("tokenizer.ggml.add_space_prefix", boolean(False)),
        ("tokenizer.chat_template", string(TEMPLATE)),
    ]


def noise(rng, rows, columns):
    return [[rng.gauss(0, NORMAL_SCALE) for _ in range(columns)] for _ in range(rows)]


def embeddings(rng):
    """Dimension 0 is the same everywhere, dimension 1 marks the line end before an answer."""
    rows = noise(rng, VOCAB, EMBED)
    for token, row in enumerate(rows):
        row[0] = 1.0
        row[1] = 1.0 if token == 3 + ord("\n") else 0.0
    return rows


def output(rng):
    """Only printable bytes, and an end with about one in thirty, but never as the first token."""
    rows = noise(rng, VOCAB, EMBED)
    for token, row in enumerate(rows):
        printable = 3 + 0x20 <= token < 3 + 0x7F
        row[0] = 1.0 if printable else -4.0
        row[1] = 0.0
    rows[EOS][0] = 1.05
    rows[EOS][1] = -6.0
    return rows


def tensors():
    rng = random.Random(20240229)
    ones = [1.0] * EMBED
    yield "token_embd.weight", embeddings(rng)
    yield "output_norm.weight", [ones]
    yield "output.weight", output(rng)
    for layer in range(LAYERS):
        yield f"blk.{layer}.attn_norm.weight", [ones]
        yield f"blk.{layer}.ffn_norm.weight", [ones]
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield f"blk.{layer}.{part}.weight", noise(rng, EMBED, EMBED)
        yield f"blk.{layer}.ffn_gate.weight", noise(rng, FEED, EMBED)
        yield f"blk.{layer}.ffn_up.weight", noise(rng, FEED, EMBED)
        yield f"blk.{layer}.ffn_down.weight", noise(rng, EMBED, FEED)


def padded(data, alignment=32):
    return data + b"\0" * (-len(data) % alignment)


def main():
    infos, data, count = b"", b"", 0
    for name, rows in tensors():
        shape = [len(rows[0])] + ([len(rows)] if len(rows) > 1 else [])
        infos += text(name) + struct.pack("<I", len(shape))
        infos += b"".join(struct.pack("<Q", size) for size in shape)
        infos += struct.pack("<IQ", 0, len(data))
        data = padded(data + b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows))
        count += 1
    pairs = metadata()
    head = b"GGUF" + struct.pack("<IQQ", 3, count, len(pairs))
    head += b"".join(text(key) + value for key, value in pairs) + infos
    with open(sys.argv[1], "wb") as file:
        file.write(padded(head) + data)


if __name__ == "__main__":
    main()
