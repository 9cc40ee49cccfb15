# SPDX-License-Identifier: Apache-2.0
"""keras.random on the generators of the library: a seed gives the same numbers on every device."""
from __future__ import annotations

import compute as cp
from keras.src.backend import config
from keras.src.backend.common.symbolic_scope import in_symbolic_scope
from keras.src.random.seed_generator import SeedGenerator, draw_seed, make_default_seed

from . import recording
from .variable import cast, convert_to_numpy, convert_to_tensor, dtype_of


def number(seed):
    """The seed of the library that is drawn from one of Keras, which is two integers of 32 bits."""
    seed, count = convert_to_numpy(draw_seed(seed)).tolist()
    return (int(seed) & 0x7FFFFFFF) << 32 | int(count) & 0xFFFFFFFF


def _generator(seed):
    """A generator for one call."""
    slots = recording.seeds()
    if slots is None:
        return cp.random.Generator(number(seed))
    slot = cp.graph.slot(cp.int64)
    slots.append((slot, seed))
    generator = cp.random.Generator()
    generator.state = (slot, 0)
    return generator


def _extents(shape):
    return tuple(int(n) for n in shape)


def _dtype(dtype):
    return dtype_of(dtype or config.floatx())


def _drawn(shape, dtype, seed, draw):
    """draw(generator, shape), in a dtype. Where only shapes are asked for, zeros."""
    if in_symbolic_scope():
        return cp.zeros(_extents(shape), dtype=_dtype(dtype))
    return cast(draw(_generator(seed), _extents(shape)), _dtype(dtype))


def _computed(dtype):
    return cp.float64 if _dtype(dtype) is cp.float64 else cp.float32


def _is_number(*xs):
    return all(isinstance(x, (int, float)) for x in xs)


def normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    return _drawn(shape, dtype, seed, lambda generator, shape: _scaled(
        generator.normal(shape, dtype=_computed(dtype)), mean, stddev))


def _scaled(x, mean, stddev):
    if _is_number(mean, stddev):
        return x * stddev + mean
    return x * cast(stddev, x.dtype) + cast(mean, x.dtype)


def uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
    def draw(generator, shape):
        if _is_number(minval, maxval) and minval <= maxval:
            return generator.uniform(shape, float(minval), float(maxval), dtype=_computed(dtype))
        low, high = (cast(x, _computed(dtype)) for x in (minval, maxval))
        return low + generator.uniform(shape, dtype=_computed(dtype)) * (high - low)

    return _drawn(shape, dtype, seed, draw)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    return _drawn(shape, dtype, seed, lambda generator, shape: _scaled(
        generator.truncated_normal(shape, dtype=_computed(dtype)), mean, stddev))


def randint(shape, minval, maxval, dtype="int32", seed=None):
    dtype = dtype_of(dtype)

    def draw(generator, shape):
        low, high = (x if isinstance(x, int) else int(convert_to_tensor(x)) for x in (minval, maxval))
        return generator.integers(shape, low, high, dtype=cp.int64)

    return _drawn(shape, dtype, seed, draw)


def categorical(logits, num_samples, dtype="int32", seed=None):
    logits = convert_to_tensor(logits)
    if in_symbolic_scope():
        return cp.zeros((logits.shape[0], num_samples), dtype=dtype_of(dtype))
    logits = logits if logits.dtype in (cp.float32, cp.float64) else cast(logits, cp.float32)
    return cast(_generator(seed).categorical(logits, num_samples), dtype)


def dropout(inputs, rate, noise_shape=None, seed=None):
    inputs = convert_to_tensor(inputs)
    if in_symbolic_scope() or rate == 0:
        return inputs
    if rate >= 1:
        return cp.zeros_like(inputs)
    generator = _generator(seed)
    if noise_shape is None or tuple(noise_shape) == tuple(inputs.shape):
        return generator.dropout(inputs, float(rate))
    shape = [inputs.shape[i] if n is None else int(n) for i, n in enumerate(noise_shape)]
    return cp.where(generator.bernoulli(shape, 1 - float(rate)), inputs / (1 - rate), 0)


def shuffle(x, axis=0, seed=None):
    x = convert_to_tensor(x)
    if in_symbolic_scope():
        return x
    return cp.take(x, _generator(seed).permutation(x.shape[axis]), axis=axis)


def gamma(shape, alpha, dtype=None, seed=None):
    def draw(generator, shape):
        return generator.gamma(cp.copy(cp.broadcast_to(cast(alpha, _computed(dtype)), shape)))

    return _drawn(shape, dtype, seed, draw)


def beta(shape, alpha, beta, dtype=None, seed=None):
    def draw(generator, shape):
        one, other = (generator.gamma(cp.copy(cp.broadcast_to(cast(x, _computed(dtype)), shape))) for x in (alpha, beta))
        return one / (one + other)

    return _drawn(shape, dtype, seed, draw)


def binomial(shape, counts, probabilities, dtype=None, seed=None):
    def draw(generator, shape):
        return generator.binomial(*(cp.broadcast_to(cast(x, cp.float32), shape) for x in (counts, probabilities)))

    return _drawn(shape, dtype, seed, draw)
