# SPDX-License-Identifier: Apache-2.0
"""Random numbers by Philox 4x32-10. One seed gives the same bits on every device."""
from __future__ import annotations

import math
import threading

from . import _core, _dtypes, _ops
from ._creation import _shape


class Generator:
    """A source of random numbers with a seed and a position, which every call advances."""

    def __init__(self, seed=0):
        self._lock = threading.Lock()
        self.seed(seed)

    def seed(self, seed):
        """Starts over with a seed, an integer in [0, 2^63)."""
        self.state = (int(seed), 0)

    def _advance(self, count):
        with self._lock:
            seed, offset = self.state
            self.state = (seed, offset + count + 8)
        return {"seed": seed, "offset": offset}

    def _draw(self, op, shape, dtype, device, **attributes):
        shape = _shape(shape)
        out = _core.empty(shape, dtype, device)
        return op(shape=shape, dtype=out.dtype, out=out, **self._advance(math.prod(shape)), **attributes)

    def uniform(self, shape=(), minimum=0.0, maximum=1.0, *, dtype=_dtypes.float32, device=None):
        """Uniformly distributed numbers in [minimum, maximum)."""
        return self._draw(_ops.random_uniform, shape, dtype, device, minimum=minimum, maximum=maximum)

    def normal(self, shape=(), mean=0.0, deviation=1.0, *, dtype=_dtypes.float32, device=None):
        """Normally distributed numbers."""
        return self._draw(_ops.random_normal, shape, dtype, device, mean=mean, deviation=deviation)

    def truncated_normal(self, shape=(), mean=0.0, deviation=1.0, lower=-2.0, upper=2.0, *, dtype=_dtypes.float32,
                         device=None):
        """Normally distributed numbers between `lower` and `upper` deviations of the mean."""
        return self._draw(_ops.random_truncated_normal, shape, dtype, device, mean=mean, deviation=deviation,
                          lower=lower, upper=upper)

    def integers(self, shape=(), minimum=0, maximum=2, *, dtype=_dtypes.int64, device=None):
        """Random integers in [minimum, maximum)."""
        return self._draw(_ops.random_integers, shape, dtype, device, minimum=minimum, maximum=maximum)

    def bernoulli(self, shape=(), p=0.5, *, dtype=_dtypes.bool, device=None):
        """1 with probability `p`, else 0."""
        return self._draw(_ops.random_bernoulli, shape, dtype, device, p=p)

    def bits(self, shape=(), *, dtype=_dtypes.uint32, device=None):
        """Random bits, as uint32 or uint64."""
        return self._draw(_ops.random_bits, shape, dtype, device)

    def permutation(self, n, *, device=None):
        """The integers in [0, n) in random order."""
        return _ops.argsort(self.bits((n,), dtype=_dtypes.uint64, device=device))

    def categorical(self, logits, samples=0):
        """Classes with the probabilities softmax(logits) along the last axis."""
        return _ops.random_categorical(logits, samples=samples, **self._advance(logits.size * max(samples, 1)))

    def gamma(self, alpha):
        """Numbers of the gamma distributions with the shapes `alpha` and the scale 1."""
        return _ops.random_gamma(alpha, **self._advance(8 * alpha.size))

    def dropout(self, x, p=0.5):
        """0 with probability `p`, else x / (1 - p)."""
        return _ops.dropout(x, p=p, **self._advance(x.size))


_generator = Generator()
seed = _generator.seed
uniform = _generator.uniform
normal = _generator.normal
truncated_normal = _generator.truncated_normal
integers = _generator.integers
bernoulli = _generator.bernoulli
bits = _generator.bits
permutation = _generator.permutation
categorical = _generator.categorical
gamma = _generator.gamma
