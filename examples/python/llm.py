#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Continues a text with a language model of the Llama family: Llama, SmolLM2, TinyLlama, Qwen2.

    COMPUTE_DEVICE=cuda0 python3 llm.py MODEL TEXT [--chat] [--tokens N] [--dtype float32|bfloat16|float16] [--eager]
                                        [--temperature T] [--top-k K] [--top-p P] [--seed N]

MODEL is a GGUF file, or a folder with *.safetensors, config.json and tokenizer.json. Weights that are quantised in the
file stay so: Q8_0, Q4_0 and Q4_1 with their codes as they are, Q4_K and Q6_K in a plainer layout. With a temperature
of 0 the likeliest token is taken; else one is drawn from the K likeliest and from those that have the probability P
together, the same ones for the same seed. Speeds go to the standard error.
"""
import argparse
import codecs
import heapq
import json
import math
import mmap
import pathlib
import re
import struct
import sys
import time

import compute as cp
from compute import nn

BLOCK = 256  # places by which the cache grows, and most tokens of a prompt at a time


class ModelError(Exception):
    """What is wrong with a model's file."""


# ---- Weights --------------------------------------------------------------------------------------------------------


def q8_0(raw, halves):
    return [raw[..., 2:] ^ 128, halves[..., 0]], 8, 32


def q4_0(raw, halves):
    return [raw[..., 2:], halves[..., 0]], 4, 32


def q4_1(raw, halves):
    return [raw[..., 4:], halves[..., 0], halves[..., 1]], 4, 32


SCALE = cp.expression("convert(d, float32) * convert(s, float32)", "d", "s")


def q4_k(raw, halves):
    """Eight groups of 32 with scales and minima of 6 bits; a byte has numbers of two groups."""
    a, b, c = raw[..., 4:8], raw[..., 8:12], raw[..., 12:16]
    scales = cp.concat([a & 63, (c & 15) | (a >> 6 << 4)], axis=-1)
    minima = cp.concat([b & 63, (c >> 4) | (b >> 6 << 4)], axis=-1)
    codes = cp.reshape(raw[..., 16:], (*raw.shape[:2], 4, 32))
    codes = cp.reshape(cp.stack([codes & 15, codes >> 4], axis=3), (*raw.shape[:2], 8, 2, 16))
    packed = codes[..., 0, :] | (codes[..., 1, :] << 4)
    return [packed, SCALE(halves[..., 0:1], scales), -SCALE(halves[..., 1:2], minima)], 4, 32


def q6_k(raw, halves):
    """Sixteen groups of 16, of numbers from -32 to 31 whose low four and high two bits are apart."""
    low = cp.reshape(raw[..., :128], (*raw.shape[:2], 2, 2, 32))
    low = cp.concat([low & 15, low >> 4], axis=3)
    high = cp.reshape(raw[..., 128:192], (*raw.shape[:2], 2, 1, 32))
    high = cp.concat([high >> shift & 3 for shift in (0, 2, 4, 6)], axis=3)
    scales = SCALE(halves[..., 104:105], raw[..., 192:208].view(cp.int8))
    return [low | (high << 4), scales, scales * -32.0], 8, 16


PLAIN = {0: ("float32", 4), 1: ("float16", 2), 30: ("bfloat16", 2), "F8_E4M3": ("float8_e4m3fn", 1),
         "F8_E5M2": ("float8_e5m2", 1)}
PACKED = {2: (q4_0, 32, 18), 3: (q4_1, 32, 20), 8: (q8_0, 32, 34), 12: (q4_k, 256, 144), 14: (q6_k, 256, 210)}


class Tensor:
    """A tensor in a mapped file, whose rows have k numbers."""

    def __init__(self, name, kind, shape, data, start):
        if kind not in PLAIN and kind not in PACKED:
            raise ModelError(f"tensor {name} is of type {kind}, which this program does not read")
        self.name, self.kind, self.shape = name, kind, shape
        numbers, size = (1, PLAIN[kind][1]) if kind in PLAIN else PACKED[kind][1:]
        if not shape or shape[-1] % numbers:
            raise ModelError(f"tensor {name} has the shape {shape}, which is not in blocks of {numbers}")
        end = start + math.prod(shape) // numbers * size
        if end > len(data):
            raise ModelError(f"the file ends within the tensor {name}: {len(data)} bytes of {end}")
        self.bytes, self.size = data[start:end], size
        if start % 4:
            self.bytes = memoryview(bytearray(self.bytes))

    def mapped(self, code):
        """The tensor's memory as elements of one of the types of memoryview."""
        return cp.asarray(self.bytes.cast(code), device="cpu", copy=False)

    def numbers(self, dtype, device):
        """The tensor as an array."""
        if self.kind not in PLAIN:
            raise ModelError(f"tensor {self.name} is quantised; only matrices may be")
        x = self.mapped({4: "f", 2: "H", 1: "B"}[self.size]).view(getattr(cp, PLAIN[self.kind][0]))
        return cp.asarray(cp.astype(cp.reshape(x, self.shape), dtype), copy=True).to_device(device)

    def packed(self):
        """Packed numbers, scales and perhaps offsets, as nn.quantize makes them, with their bits and group."""
        blocks = len(self.bytes) // self.size // self.shape[0]
        raw = cp.reshape(self.mapped("B"), (self.shape[0], blocks, self.size))
        halves = cp.reshape(self.mapped("H").view(cp.float16), (self.shape[0], blocks, self.size // 2))
        arrays, bits, group = PACKED[self.kind][0](raw, halves)
        return [cp.reshape(x, (self.shape[0], x.size // self.shape[0])) for x in arrays], bits, group


class Matrix:
    """Weights [n, k] of one tensor, or of several one below the other, quantised or not."""

    def __init__(self, tensors, dtype, device):
        self.dtype, self.parts = dtype, []  # each: arrays, bits (0: numbers), group
        for tensor in tensors:
            if len(tensor.shape) != 2 or tensor.shape[1] != tensors[0].shape[1]:
                raise ModelError(f"tensor {tensor.name} has the shape {tensor.shape}, not [n, {tensors[0].shape[-1]}]")
            arrays, bits, group = ([tensor.numbers(dtype, "cpu")], 0, 0) if tensor.kind in PLAIN else tensor.packed()
            if self.parts and self.parts[-1][1:] == (bits, group) and len(self.parts[-1][0]) == len(arrays):
                arrays = [cp.concat(pair, axis=0) for pair in zip(self.parts.pop()[0], arrays)]
            self.parts.append((arrays, bits, group))
        self.parts = [([cp.asarray(x, copy=True).to_device(device) for x in arrays], *form)
                      for arrays, *form in self.parts]
        self.rows = sum(tensor.shape[0] for tensor in tensors)
        self.columns = tensors[0].shape[1]

    def __call__(self, x):
        found = [nn.quantized_matmul(x, *arrays, bits=bits, group_size=group) if bits
                 else nn.linear(x, arrays[0], transpose_weight=True) for arrays, bits, group in self.parts]
        return found[0] if len(found) == 1 else cp.concat(found, axis=-1)

    def taken(self, indices):
        """Rows as numbers."""
        (arrays, bits, group), = self.parts
        arrays = [nn.embedding(x, indices) for x in arrays]
        return nn.dequantize(*arrays, bits=bits, group_size=group, dtype=self.dtype) if bits else arrays[0]


# ---- Files ----------------------------------------------------------------------------------------------------------

FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class Gguf:
    """The facts and the tensors of a GGUF file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.at = 4
        try:
            version, tensors, facts = self.read("IQQ")
            if version not in (2, 3):
                raise ModelError(f"version {version} of GGUF is unknown; 2 and 3 are read")
            self.facts = {self.text(): self.value(*self.read("I")) for _ in range(facts)}
            infos = []
            for _ in range(tensors):
                name, (rank,) = self.text(), self.read("I")
                infos.append((name, tuple(reversed(self.read(f"{min(rank, 9)}Q"))), *self.read("IQ")))
        except (struct.error, UnicodeDecodeError, OverflowError, MemoryError):
            raise ModelError(f"the header is broken near byte {self.at}") from None
        align = self.facts.get("general.alignment", 32)
        start = -(-self.at // align) * align
        view = memoryview(self.data)
        self.tensors = {name: Tensor(name, kind, shape, view, start + offset) for name, shape, kind, offset in infos}

    def read(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def text(self):
        size, = self.read("Q")
        return self.read(f"{size}s")[0].decode()

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            kind, count = self.read("IQ")
            if kind in (8, 9):
                return [self.value(kind) for _ in range(count)]
            return list(self.read(f"{count}{FORMATS.get(kind)}"))
        if kind not in FORMATS:
            raise ModelError(f"a fact is of type {kind}, which GGUF does not have")
        return self.read(FORMATS[kind])[0]

    def config(self):
        family = self.facts.get("general.architecture")
        if family not in ("llama", "qwen2"):
            raise ModelError(f"the architecture is {family!r}; llama and qwen2 are read")
        fact = lambda name, *other: found(self.facts, f"{family}.{name}", *other)  # noqa: E731
        heads, width = fact("attention.head_count"), fact("embedding_length")
        if "rope_freqs.weight" in self.tensors or fact("rope.scaling.type", "none") != "none":
            raise ModelError("scaled rotary embeddings are not read")
        return {"layers": fact("block_count"), "heads": heads, "shared": fact("attention.head_count_kv", heads),
                "features": fact("attention.key_length", width // heads), "context": fact("context_length"),
                "epsilon": fact("attention.layer_norm_rms_epsilon"), "base": fact("rope.freq_base", 10000.0),
                "interleaved": family == "llama"}

    def tokenizer(self):
        fact = lambda name, *other: found(self.facts, f"tokenizer.ggml.{name}", *other)  # noqa: E731
        model, tokens, kinds = fact("model"), fact("tokens"), fact("token_type", None)
        if model not in ("gpt2", "llama"):
            raise ModelError(f"the tokenizer is {model!r}; gpt2 and llama are read")
        is_bytes = model == "gpt2"
        special = [i for i, kind in enumerate(kinds or []) if kind in (3, 4)]
        merges = {tuple(pair.split(" ", 1)): i for i, pair in enumerate(fact("merges"))} if is_bytes else None
        start = fact("bos_token_id", None) if fact("add_bos_token", not is_bytes) else None
        scores, split = (None, fact("pre", "gpt-2")) if is_bytes else (fact("scores"), None)
        return Tokenizer({token: i for i, token in enumerate(tokens)}, special, merges, scores, split, start,
                         {fact("eos_token_id", None)}, not is_bytes and fact("add_space_prefix", True))


def found(facts, name, *other):
    if name not in facts and not other:
        raise ModelError(f"the file does not state {name}")
    return facts.get(name, *other)


NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "model.layers": "blk",
         "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
         "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


class Safetensors:
    """The same of a folder with files of Hugging Face."""

    def __init__(self, folder):
        self.folder, self.tensors = folder, {}
        for path in sorted(folder.glob("*.safetensors")):
            with open(path, "rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            try:
                size, = struct.unpack_from("<Q", data)
                header = json.loads(data[8:8 + size])
            except (struct.error, ValueError, OverflowError):
                raise ModelError(f"the header of {path.name} is broken") from None
            header.pop("__metadata__", None)
            for name, entry in header.items():
                kind = {"F32": 0, "F16": 1, "BF16": 30}.get(entry["dtype"], entry["dtype"])
                for theirs, ours in NAMES.items():
                    name = name.replace(theirs, ours)
                if name.endswith(("_scale", "_scale_inv")):
                    raise ModelError(f"tensor {name} scales others, which this program does not do")
                start = 8 + size + entry["data_offsets"][0]
                self.tensors[name] = Tensor(name, kind, tuple(entry["shape"]), memoryview(data), start)
        if not self.tensors:
            raise ModelError("there is no *.safetensors in the folder")

    def read(self, name):
        try:
            return json.loads((self.folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ModelError(f"{name} cannot be read: {error}") from None

    def config(self):
        facts = self.read("config.json")
        if facts.get("model_type") not in ("llama", "qwen2"):
            raise ModelError(f"the architecture is {facts.get('model_type')!r}; llama and qwen2 are read")
        if facts.get("rope_scaling"):
            raise ModelError("scaled rotary embeddings are not read")
        heads, width = found(facts, "num_attention_heads"), found(facts, "hidden_size")
        return {"layers": found(facts, "num_hidden_layers"), "heads": heads,
                "shared": facts.get("num_key_value_heads", heads), "features": facts.get("head_dim") or width // heads,
                "context": facts.get("max_position_embeddings", 2048), "epsilon": found(facts, "rms_norm_eps"),
                "base": facts.get("rope_theta", 10000.0), "interleaved": False}

    def tokenizer(self):
        facts, more = self.read("tokenizer.json"), self.read("config.json")
        model = facts["model"]
        if model.get("type", "BPE") != "BPE":
            raise ModelError(f"the tokenizer is {model['type']!r}; BPE is read")
        vocabulary = dict(model["vocab"]) | {token["content"]: token["id"] for token in facts.get("added_tokens", [])}
        pairs = (pair.split(" ", 1) if isinstance(pair, str) else pair for pair in model["merges"])
        merges = {tuple(pair): i for i, pair in enumerate(pairs)}
        splits = json.dumps(facts.get("pre_tokenizer"))
        is_bytes = "ByteLevel" in splits
        pre = "smollm" if "Digits" in splits else "qwen2" if "(?i:" in splits else "gpt-2"
        ends = more.get("eos_token_id")
        return Tokenizer(vocabulary, [token["id"] for token in facts.get("added_tokens", [])], merges, None,
                         pre if is_bytes else None, None if is_bytes else more.get("bos_token_id"),
                         set(ends) if isinstance(ends, list) else {ends}, not is_bytes)


def open_model(path):
    path = pathlib.Path(path)
    if path.is_dir():
        return Safetensors(path)
    with open(path, "rb") as file:
        magic = file.read(4)
    if magic != b"GGUF":
        raise ModelError("it does not begin with GGUF; give a GGUF file, or a folder with *.safetensors")
    return Gguf(path)


# ---- Tokens ---------------------------------------------------------------------------------------------------------

# Letters are [^\W\d_] here, and what is neither a letter, a digit nor a space is [^\s\w] or _.
WORDS = (r"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
LATER = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|(?:[^\r\n\w]|_)?[^\W\d_]+|\d{1,%d}| ?(?:[^\s\w]|_)+[\r\n]*|\s*[\r\n]+|"
         r"\s+(?!\S)|\s+")
SPLITS = {"gpt-2": WORDS, "smollm": WORDS, "qwen2": LATER % 1, "llama-bpe": LATER % 3}


def merged(pieces, rank):
    """Neighbours are joined, those of the least rank first, until no two have one."""
    pieces, count = list(pieces), len(pieces)
    before, after, heap = list(range(-1, count - 1)), list(range(1, count + 1)), []

    def offer(i):
        if 0 <= i and after[i] < count:
            found = rank(pieces[i], pieces[after[i]])
            if found is not None:
                heapq.heappush(heap, (found, i, pieces[i], pieces[after[i]]))

    for i in range(count):
        offer(i)
    while heap:
        _, i, left, right = heapq.heappop(heap)
        j = after[i]
        if pieces[i] != left or j >= count or pieces[j] != right:
            continue  # one of them was joined meanwhile
        pieces[i], pieces[j], after[i] = left + right, None, after[j]
        if after[j] < count:
            before[after[j]] = i
        offer(before[i])
        offer(i)
    return [piece for piece in pieces if piece is not None]


class Tokenizer:
    """Texts as tokens: byte-level BPE, if there is a way to split words, or SentencePiece's, by merges or scores."""

    def __init__(self, vocabulary, special, merges, scores, split, start, ends, has_prefix):
        if split is not None and split not in SPLITS:
            raise ModelError(f"words are split in the way {split!r}; known are {', '.join(SPLITS)}")
        self.vocabulary, self.split, self.start, self.ends, self.has_prefix = vocabulary, split, start, ends, has_prefix
        self.texts = {i: token for token, i in vocabulary.items()}
        names = sorted((self.texts[i] for i in special), key=len, reverse=True)
        self.special, self.is_special = set(special), re.compile("|".join(map(re.escape, names)) or "(?!)")
        self.rank = (lambda left, right: merges.get((left, right))) if merges is not None else self.by_score
        self.scores = scores
        plain = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b]
        others = [b for b in range(256) if b not in plain]
        self.letters = {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(others)}
        self.of_letters = {letter: b for b, letter in self.letters.items()}

    def by_score(self, left, right):
        i = self.vocabulary.get(left + right)
        return None if i is None else -self.scores[i]

    def encode(self, text):
        tokens = [] if self.start is None else [self.start]
        at = 0
        for match in self.is_special.finditer(text):
            tokens += [*self.plain(text[at:match.start()]), self.vocabulary[match[0]]]
            at = match.end()
        return tokens + self.plain(text[at:])

    def plain(self, text):
        if not text:
            return []
        if self.split is None:
            words = [(" " * self.has_prefix + text).replace(" ", "\u2581")]
        else:
            parts = re.split(r"(\d)", text) if self.split == "smollm" else [text]
            words = ["".join(self.letters[b] for b in word.encode())
                     for part in parts for word in re.findall(SPLITS[self.split], part)]
        return [token for word in words for piece in merged(word, self.rank) for token in self.of_piece(piece)]

    def of_piece(self, piece):
        if piece in self.vocabulary:
            return [self.vocabulary[piece]]
        return [self.vocabulary[name] for name in (f"<0x{b:02X}>" for b in piece.encode()) if name in self.vocabulary]

    def decode(self, token):
        """The bytes of a token."""
        text = self.texts.get(token, "")
        if token in self.special:
            return b"" if token in self.ends else text.encode()
        if self.split is not None:
            return bytes(self.of_letters[letter] for letter in text)
        is_byte = re.fullmatch("<0x[0-9A-F]{2}>", text)
        return bytes([int(text[3:5], 16)]) if is_byte else text.replace("\u2581", " ").encode()

    def chat(self, text):
        """The text as a user's message that is to be answered."""
        if "<|im_start|>" in self.vocabulary:
            return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
        return f"<|user|>\n{text}</s>\n<|assistant|>\n"


# ---- The network ----------------------------------------------------------------------------------------------------

SWIGLU = cp.expression("g / (1 + exp(-g)) * u", "g", "u")


class Model:
    """The network with its cache of keys and values, which holds the tokens that it has read."""

    def __init__(self, path, dtype=cp.float32, device=None):
        file = open_model(path)
        self.config, self.tokenizer, self.tensors = file.config(), file.tokenizer(), file.tensors
        self.dtype, self.device = dtype, cp.device(device)
        self.embedding = self.matrix("token_embd")
        self.head = self.matrix("output") if "output.weight" in self.tensors else self.embedding
        self.norm = self.vector("output_norm.weight")
        self.layers = [self.layer(f"blk.{i}.") for i in range(self.config["layers"])]
        self.size, self.caches, self.graph = 0, [], None
        self.following = None  # the token that the graph will read; None: not even its place

    def get(self, name):
        if name not in self.tensors:
            raise ModelError(f"the file lacks the tensor {name}")
        return self.tensors[name]

    def matrix(self, *names):
        return Matrix([self.get(f"{name}.weight") for name in names], self.dtype, self.device)

    def vector(self, *names):
        parts = [self.get(name).numbers(self.dtype, self.device) for name in names]
        return parts[0] if len(parts) == 1 else cp.concat(parts, axis=0)

    def layer(self, name):
        c = self.config
        projections = [f"{name}attn_{x}" for x in "qkv"]
        layer = {"norm": self.vector(f"{name}attn_norm.weight"), "qkv": self.matrix(*projections), "bias": None,
                 "out": self.matrix(f"{name}attn_output"), "norm2": self.vector(f"{name}ffn_norm.weight"),
                 "up": self.matrix(f"{name}ffn_gate", f"{name}ffn_up"), "down": self.matrix(f"{name}ffn_down")}
        if f"{name}attn_q.bias" in self.tensors:
            layer["bias"] = self.vector(*(f"{x}.bias" for x in projections))
        if layer["qkv"].rows != (c["heads"] + 2 * c["shared"]) * c["features"]:
            raise ModelError(f"{name}attn_q, k and v have {layer['qkv'].rows} rows, which are not those of the heads")
        return layer

    def grow(self, wanted):
        """Makes room for so many tokens, in whole blocks."""
        room = self.caches[0][0].shape[0] if self.caches else 0
        if wanted <= room:
            return
        c, room = self.config, -(-wanted // BLOCK) * BLOCK
        old, self.graph, self.following = self.caches, None, None
        self.caches = [tuple(cp.zeros((room, c["shared"], c["features"]), dtype=self.dtype, device=self.device)
                             for _ in range(2)) for _ in range(c["layers"])]
        for before, now in zip(old, self.caches):
            for x, y in zip(before, now):
                y[:self.size] = x[:self.size]

    def network(self, tokens, places, seen, mask=None, all_logits=False):
        """The logits behind the last token or behind each; `places` are those of the tokens, of `seen` in the cache."""
        c = self.config
        count, heads, shared = tokens.shape[0], c["heads"], c["shared"]
        x = self.embedding.taken(tokens)
        steps = places
        if isinstance(places, slice):
            steps = cp.arange(places.start, places.stop, dtype=cp.int32, device=self.device)
        for layer, (keys, values) in zip(self.layers, self.caches):
            qkv = layer["qkv"](nn.rms_norm(x, layer["norm"], epsilon=c["epsilon"]))
            qkv = qkv if layer["bias"] is None else qkv + layer["bias"]
            qkv = cp.reshape(qkv, (count, heads + 2 * shared, c["features"]))
            turned = nn.rotary_embedding(cp.permute_dims(qkv[:, :heads + shared], (1, 0, 2)), steps, base=c["base"],
                                         interleaved=c["interleaved"])
            keys[places] = cp.permute_dims(turned[heads:], (1, 0, 2))
            values[places] = qkv[:, heads + shared:]
            # Heads that share keys are queries of one head if there is one token, so that keys are read once.
            q = turned[:heads] if count > 1 else cp.reshape(turned[:heads], (shared, heads // shared, c["features"]))
            y = nn.attention(q[None], cp.permute_dims(keys[:seen], (1, 0, 2))[None],
                             cp.permute_dims(values[:seen], (1, 0, 2))[None], mask, causal=count > 1)[0]
            x = x + layer["out"](cp.reshape(y if count == 1 else cp.permute_dims(y, (1, 0, 2)), (count, -1)))
            h = layer["up"](nn.rms_norm(x, layer["norm2"], epsilon=c["epsilon"]))
            half = h.shape[1] // 2
            x = x + layer["down"](SWIGLU(h[:, :half], h[:, half:]))
        return self.head(nn.rms_norm(x if all_logits else x[-1:], self.norm, epsilon=c["epsilon"]))

    def read(self, tokens, all_logits=False):
        """Reads tokens behind those in the cache; returns the logits behind the last one, or behind each."""
        if self.size + len(tokens) > self.config["context"]:
            raise ModelError(f"{self.size + len(tokens)} tokens do not fit in the context of {self.config['context']}")
        logits, self.following = [], None
        for at in range(0, len(tokens), BLOCK):
            part = cp.asarray(tokens[at:at + BLOCK], dtype=cp.int32, device=self.device)
            end = self.size + part.shape[0]
            self.grow(end)
            logits.append(self.network(part, slice(self.size, end), end, None, all_logits))
            self.size = end
        return cp.concat(logits, axis=0) if all_logits else logits[-1]

    def record(self):
        """Records the network for one token, which is the likeliest one behind it at the end."""
        room = self.caches[0][0].shape[0]
        self.token, self.place = (cp.zeros(1, dtype=cp.int32, device=self.device) for _ in range(2))
        slots = cp.arange(room, dtype=cp.int32, device=self.device)
        with cp.graph.record(self.device) as self.graph:
            self.logits = self.network(self.token, self.place, room, slots <= self.place)
            self.token[...] = cp.astype(cp.argmax(self.logits, axis=1), cp.int32)
            self.place[...] = self.place + 1

    def step(self, token, is_eager=False):
        """The same as read for one token, in a recorded graph."""
        if is_eager:
            return self.read([token])
        self.grow(self.size + 1)
        if self.graph is None:
            self.record()
        if token != self.following:
            self.token[...] = cp.asarray([token], dtype=cp.int32)
        if self.following is None:
            self.place[...] = cp.asarray([self.size], dtype=cp.int32)
        self.graph.run()
        self.size += 1
        self.following = -1
        return self.logits

    def likeliest(self, logits):
        """The token of the greatest logit; the graph has found it already."""
        if self.graph is None or logits is not self.logits:
            return int(cp.argmax(logits))
        self.following = int(self.token)
        return self.following

    def generate(self, tokens, choose=None, is_eager=False):
        """Yields tokens behind the given ones, up to one that ends the text or the end of the context."""
        logits = self.read(tokens)
        while True:
            token = choose(logits) if choose else self.likeliest(logits)
            yield token
            if token in self.tokenizer.ends or self.size == self.config["context"]:
                return
            logits = self.step(token, is_eager)


def sampler(temperature, top_k, top_p, seed):
    """A function that draws a token by its logits; None for temperature 0."""
    if temperature == 0:
        return None
    generator = cp.random.Generator(seed)

    def choose(logits):
        count = logits.shape[1]
        values, tokens = cp.top_k(cp.astype(logits[0], cp.float32), min(top_k or count, count))
        values, tokens = values.tolist(), tokens.tolist()
        weights = [math.exp((value - values[0]) / temperature) for value in values]
        kept, total, wanted = 0, 0.0, top_p * sum(weights)
        while kept < len(weights) and total < wanted:
            total += weights[kept]
            kept += 1
        at = float(generator.uniform((), device="cpu")) * total
        for token, weight in zip(tokens[:kept], weights):
            at -= weight
            if at < 0:
                return token
        return tokens[max(kept - 1, 0)]

    return choose


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--chat", action="store_true", help="the text is a user's message")
    parser.add_argument("--tokens", type=int, default=200, help="tokens at most")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"), help="of activations")
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--top-k", type=int, default=40, help="0 for all")
    parser.add_argument("--top-p", type=float, default=0.95)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--eager", action="store_true", help="without a recorded graph")
    options = parser.parse_args()

    begin = time.perf_counter()
    try:
        model = Model(options.model, getattr(cp, options.dtype))
        prompt = model.tokenizer.encode(model.tokenizer.chat(options.text) if options.chat else options.text)
        if not prompt:
            raise ModelError("the text has no tokens")
        loaded = time.perf_counter()
        utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        count = 0
        for token in model.generate(prompt, sampler(options.temperature, options.top_k, options.top_p, options.seed),
                                    options.eager):
            if count == 0:
                first = time.perf_counter()
            print(utf8.decode(model.tokenizer.decode(token)), end="", flush=True)
            count += 1
            if count == options.tokens:
                break
    except (ModelError, OSError) as error:
        raise SystemExit(f"{options.model}: {error}") from None
    end = time.perf_counter()
    print(utf8.decode(b"", final=True))
    answer = f", {count} of the answer at {(count - 1) / (end - first):.1f}/s" if count > 1 else ""
    print(f"{model.device}: loaded in {loaded - begin:.1f} s, {len(prompt)} tokens of the prompt at "
          f"{len(prompt) / (first - loaded):.1f}/s{answer}", file=sys.stderr)


if __name__ == "__main__":
    main()
