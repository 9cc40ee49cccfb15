# SPDX-License-Identifier: Apache-2.0
"""Random numbers by Philox 4x32-10. One seed gives the same numbers on every device.

Integers, bits, flags and permutations are the same bits; uniform and normal numbers are the same within the bounds of
docs/ops.md. Draws that compare numbers with such a bound (`gamma`, `poisson`, `binomial`, `categorical`, `choice` with probabilities) repeat on
one device, and may differ on another.

The functions of the module draw from one generator of the process. The shape comes first: `integers(10, 0, 6)` are ten
throws of a die less 1, where NumPy has `integers(0, 6, 10)`.
"""
from __future__ import annotations

import math
import operator
import threading

from . import _core, _dtypes, _errors, _ops
from ._core import Array, array_of as _array_of
from ._creation import _shape, arange as _arange, arrays_of as _arrays_of, has_float64 as _has_float64, is_values as _is_values
from ._manipulation import _axis, broadcast_arrays as _broadcast_arrays


_UNIT = (0.0, 1.0)  # the defaults of uniform and normal


def _check_probability(name, p):
    """Raises ValueError if `p` is a number outside of [0, 1]. Checking an array would wait for it."""
    p = _dtypes.number(p)
    if isinstance(p, _dtypes.NUMBERS) and not isinstance(p, complex) and not 0 <= p <= 1:
        raise ValueError(f"{name}: p is {p}, which is no probability")


def _floats(*values):
    """The values as arrays of one floating-point dtype."""
    given = _arrays_of(*values)
    dtype = _dtypes.result_type(*given, 0.0)
    return tuple(_ops.cast(_array_of(x), dtype=dtype) for x in given)


def _check_bounds(name, lower, upper):
    """Raises ValueError if two numbers are not bounds."""
    lower, upper = _dtypes.number(lower), _dtypes.number(upper)
    if isinstance(lower, (int, float)) and isinstance(upper, (int, float)) and not lower <= upper:
        raise ValueError(f"{name}: [{lower}, {upper}] is not a range")


def _check_deviation(name, deviation):
    """Raises ValueError if `deviation` is a negative number. Checking an array would wait for it."""
    deviation = _dtypes.number(deviation)
    if isinstance(deviation, (int, float)) and deviation < 0:
        raise ValueError(f"{name}: the deviation is {deviation}, which is negative")


def _numpys(function, names, keys, defaults, shape, first, second):
    """The shape and two numbers of a call with NumPy's keywords, such as uniform(-1, 1, size=3): numbers come first there."""
    for name in names:
        if name not in ("size", *keys):
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
    if "size" in names:
        given, shape = [shape, first][:2 if first is not defaults[0] else 1 if shape != () else 0], names["size"]
        first, second = (*given, *defaults[len(given):])
    return () if shape is None else shape, names.get(keys[0], first), names.get(keys[1], second)


def _in_order(function, shape, first, second, defaults):
    """The shape and two numbers, which are in NumPy's order if the last one is a tuple: it is the shape.

    Refuses a shape that is none, and an empty one with numbers: they are in NumPy's order, too.
    """
    if isinstance(second, (tuple, list)):
        return second, shape, first
    if isinstance(shape, (int, float)) and (shape <= 0 or not isinstance(shape, int)) and (first, second) != defaults:
        raise ValueError(f"{function}: the shape, which comes first, is {shape}; for NumPy's order name it, {function}({shape}, {first}, size={second})")
    return shape, first, second


def _different(source, p, count):
    """So many different positions along the last axis, with probabilities in the proportion of `p`."""
    # The largest values of log(p) plus Gumbel noise are successive draws without replacement. The noise is finite, so that a probability of 0 is
    # never chosen.
    p = p if p.dtype is _dtypes.float64 else _ops.cast(p, dtype=_dtypes.float32)
    least = _dtypes.finfo(p.dtype).eps / 4
    drawn = source.uniform(p.shape, least, 1.0, dtype=p.dtype, device=p.device)
    noise = _ops.negative(_ops.log(_ops.negative(_ops.log(drawn))))
    return _ops.top_k(_ops.add(_ops.log(p), noise), k=count, axis=-1)[1]


def _repeated(source, p, count):
    """So many positions along the last axis, with probabilities in the proportion of `p`: where uniform numbers fall among the running sums."""
    p = _ops.cast(p, dtype=_dtypes.float64 if _has_float64(p.device) else _dtypes.float32)
    sums = _ops.cumulative_sum(p, axis=-1)
    drawn = source.uniform((*p.shape[:-1], count), dtype=p.dtype, device=p.device)
    if p.ndim == 1:
        return _ops.minimum(_ops.searchsorted(sums, _ops.multiply(drawn, sums[-1:]), side="right"), p.size - 1)  # p may be all 0
    # The rows follow one another, each from its number to the next one.
    rows = _core.reshape_view(_arange(sums.size // p.shape[-1], device=p.device), (*p.shape[:-1], 1))
    total = sums[..., -1:]
    ends = rows + _ops.where(_ops.logical_and(total > 0, total < math.inf), sums / total, 1)
    found = _ops.searchsorted(_core.reshape_view(ends, (ends.size,)), drawn + rows, side="right")
    return _ops.minimum(found - rows * p.shape[-1], p.shape[-1] - 1)


class Generator:
    """A source of random numbers with a seed and a position, which every call advances."""

    def __init__(self, seed=0):
        self._lock = threading.Lock()
        self.seed(seed)

    def seed(self, seed):
        """Starts over with a seed, an integer in [0, 2^63)."""
        seed = operator.index(seed)
        if not 0 <= seed < 2 ** 63:
            raise ValueError(f"seed: {seed} is not in [0, 2^63)")
        self.state = (seed, 0)

    def __getstate__(self):
        return self.state

    def __setstate__(self, state):
        try:
            seed, offset = map(operator.index, state)
        except (TypeError, ValueError):
            raise ValueError(f"Generator: {state!r} is not a state, which is a seed and a position") from None
        if not 0 <= offset < 2 ** 63:
            raise ValueError(f"Generator: the position {offset} is not in [0, 2^63)")
        self.__init__(seed)
        self.state = (seed, offset)

    def _next(self, count):
        """The seed and the position of so many numbers."""
        with self._lock:
            seed, offset = self.state
            self.state = (seed, offset + count + 8)
        return seed, offset

    def _advance(self, count):
        return dict(zip(("seed", "offset"), self._next(count)))

    def _room(self, shape, dtype, device):
        """An array for random numbers, and their seed and position. Keywords in the call of an op take less time than a dict."""
        out = _core.empty(shape, dtype or _dtypes.DEFAULT_FLOAT, device)
        return out, *self._next(out.size)

    def _draw(self, op, shape, dtype, device, **attributes):
        out, seed, offset = self._room(shape, dtype, device)
        return op(shape=out.shape, dtype=out.dtype, out=out, seed=seed, offset=offset, **attributes)

    def uniform(self, shape=(), minimum=_UNIT[0], maximum=_UNIT[1], *, dtype=None, device=None, **names):
        """Uniformly distributed numbers in [minimum, maximum); with NumPy's keywords, uniform(low, high, size=shape).

        Raises ValueError if the range has no numbers, and OverflowError if it does not fit in the dtype.

        shape              the extents of the result, or one
        minimum, maximum   the ends of the range
        dtype              by default float32, or what set_default_dtype says
        device             a Device or its name

        >>> compute.random.uniform((2, 3), -1, 1).shape == compute.random.uniform(-1, 1, size=(2, 3)).shape
        True
        """
        if minimum is _UNIT[0] and maximum is _UNIT[1] and not names:  # for which nothing needs to be checked
            out, seed, offset = self._room(shape, dtype, device)
            return _ops.random_uniform(shape=out.shape, dtype=out.dtype, out=out, seed=seed, offset=offset)
        if names:
            shape, minimum, maximum = _numpys("uniform", names, ("low", "high"), _UNIT, shape, minimum, maximum)
        shape, minimum, maximum = _in_order("uniform", shape, minimum, maximum, _UNIT)
        ends = [_dtypes.number(minimum), _dtypes.number(maximum)]
        if all(isinstance(end, (int, float)) for end in ends):
            dtype = _dtypes._from_object(dtype or _dtypes.DEFAULT_FLOAT)
            computed = _dtypes.float64 if dtype is _dtypes.float64 else _dtypes.float32
            width = _errors.as_float(ends[1]) - _errors.as_float(ends[0])
            if width < 0:
                raise ValueError(f"uniform: [{minimum}, {maximum}) is not a range; the arguments are the shape, the minimum and "
                                 "the maximum")
            if not width <= _dtypes.finfo(computed).max:  # true of NaN
                raise OverflowError(f"uniform: the width of [{minimum}, {maximum}) does not fit in {computed.name}")
            if max(abs(end) for end in ends) > _dtypes.finfo(dtype).max:
                raise OverflowError(f"uniform: [{minimum}, {maximum}) does not fit in {dtype.name}")
        return self._draw(_ops.random_uniform, shape, dtype, device, minimum=minimum, maximum=maximum)

    def normal(self, shape=(), mean=_UNIT[0], deviation=_UNIT[1], *, dtype=None, device=None, **names):
        """Normally distributed numbers; with NumPy's keywords, normal(loc, scale, size=shape).

        shape             the extents of the result, or one
        mean, deviation   numbers
        dtype             by default float32, or what set_default_dtype says
        device            a Device or its name

        >>> compute.random.normal(3, 10, 0.1).shape
        (3,)
        """
        if names:
            shape, mean, deviation = _numpys("normal", names, ("loc", "scale"), _UNIT, shape, mean, deviation)
        shape, mean, deviation = _in_order("normal", shape, mean, deviation, _UNIT)
        _check_deviation("normal", deviation)
        out, seed, offset = self._room(shape, dtype, device)
        return _ops.random_normal(shape=out.shape, dtype=out.dtype, out=out, seed=seed, offset=offset, mean=mean, deviation=deviation)

    def truncated_normal(self, shape=(), mean=0.0, deviation=1.0, lower=-2.0, upper=2.0, *, dtype=None,
                         device=None):
        """Normally distributed numbers between `lower` and `upper` deviations of the mean."""
        _check_deviation("truncated_normal", deviation)
        _check_bounds("truncated_normal", lower, upper)
        return self._draw(_ops.random_truncated_normal, shape, dtype, device, mean=mean, deviation=deviation,
                          lower=lower, upper=upper)

    def integers(self, shape=(), minimum=0, maximum=2, *, dtype=None, device=None, **names):
        """Random integers in [minimum, maximum); int64 without a dtype. With NumPy's keywords, integers(low, high, size=shape).

        Raises ValueError if there are none, and OverflowError if they do not fit in the dtype.

        shape              the extents of the result, or one
        minimum, maximum   the range, without its upper end
        dtype              an integer dtype
        device             a Device or its name

        >>> compute.random.integers(2, 5, 6)
        Array([5, 5], dtype=int64)
        """
        if "size" in names and shape != ():  # integers(high, size=...) or integers(low, high, size=...)
            minimum, maximum = (shape, minimum) if shape < minimum or shape <= 0 else (0, shape)
            shape = ()
        if names:
            shape, minimum, maximum = _numpys("integers", names, ("low", "high"), (minimum, maximum), shape, minimum, maximum)
        shape, minimum, maximum = _in_order("integers", shape, minimum, maximum, (minimum, maximum))
        dtype = _dtypes._from_object(dtype or _dtypes.DEFAULT_INTEGER)
        minimum, maximum = (_dtypes.number(x) for x in (minimum, maximum))
        if isinstance(minimum, int) and isinstance(maximum, int):
            if minimum >= maximum:
                raise ValueError(f"integers: there are none in [{minimum}, {maximum}); the arguments are the shape, "
                                 "the minimum and the maximum")
            limits = _dtypes.iinfo(dtype)
            if minimum < limits.min or maximum - 1 > limits.max:
                raise OverflowError(f"integers: [{minimum}, {maximum}) does not fit in {dtype.name}")
            if maximum >= 2 ** 63:
                return self._far_integers(shape, minimum, maximum, dtype, device)
        out, seed, offset = self._room(shape, dtype, device)
        return _ops.random_integers(shape=out.shape, dtype=out.dtype, out=out, seed=seed, offset=offset, minimum=minimum, maximum=maximum)

    def _far_integers(self, shape, minimum, maximum, dtype, device):
        """Random integers in [minimum, maximum) of a dtype of 64 bits, where `maximum` does not fit in int64."""
        if maximum - minimum == 2 ** 64:
            found, moved = self.bits(shape, dtype=_dtypes.uint64, device=device), 0
        else:
            moved = maximum - (2 ** 63 - 1)
            found = self._draw(_ops.random_integers, shape, _dtypes.int64, device, minimum=minimum - moved,
                               maximum=maximum - moved)
        if found.dtype is not dtype:
            found = _core.strided_view(found, dtype, found.shape, found.strides, 0)
        return _ops.add(found, moved) if moved else found  # the sum wraps

    def bernoulli(self, shape=(), p=0.5, *, dtype=_dtypes.bool, device=None):
        """1 with probability `p`, else 0.

        >>> compute.random.bernoulli(3, 1.0)
        Array([ True,  True,  True], dtype=bool)
        """
        _check_probability("bernoulli", p)
        return self._draw(_ops.random_bernoulli, shape, dtype, device, p=p)

    def bits(self, shape=(), *, dtype=_dtypes.uint32, device=None):
        """Random bits, as uint32 or uint64."""
        return self._draw(_ops.random_bits, shape, dtype, device)

    def permutation(self, n, *, axis=0, device=None):
        """The integers in [0, n) in random order; of an array, its parts along an axis in random order.

        >>> compute.sort(compute.random.permutation(3))
        Array([0, 1, 2], dtype=int64)
        """
        if isinstance(n, Array) or _is_values(n):
            x = _array_of(n)
            axis = _axis(axis, x.ndim, "permutation")
            return _ops.take(x, self.permutation(x.shape[axis], device=x.device), axis=axis)
        try:
            out = _core.empty((n,), _dtypes.DEFAULT_INTEGER, device)
        except ValueError:
            _errors.check_extents(n=n)
            raise
        return _ops.random_permutation(size=n, dtype=out.dtype, out=out, **self._advance(n))

    def shuffle(self, x, *, axis=0):
        """Puts the parts of `x` along an axis in random order, in place. For a new array use take and permutation."""
        if not isinstance(x, Array):
            _errors.no_array(x)  # whose copy would be shuffled
        axis = _axis(axis, x.ndim, "shuffle")
        x[...] = _ops.take(x, self.permutation(x.shape[axis], device=x.device), axis=axis)

    def choice(self, x, shape=(), replace=True, p=None, axis=0, *, device=None, **names):
        """Random parts of `x` along an axis, or random integers in [0, x) if `x` is an integer.

        `p` is a vector of probabilities, which are divided by their sum; the call waits for it. Without `replace` no part
        is chosen twice. `device` is for an integer `x` without `p`. `size` is another name of `shape`.
        Raises ValueError if there are not so many, or if `p` has no probabilities.

        >>> compute.random.choice([7, 8], 2, p=[0.0, 1.0])
        Array([8, 8], dtype=int64)
        """
        if names:
            return _errors.renamed(self.choice, names, x, shape=shape, replace=replace, p=p, axis=axis, device=device)
        shape = () if shape is None else shape
        if p is not None:
            x, p = _arrays_of(x, p) if isinstance(x, Array) or _is_values(x) else (x, *_arrays_of(p))
        if _is_values(x):
            x = _array_of(x)
        if isinstance(x, Array):
            axis = _axis(axis, x.ndim, "choice")
            n, device = x.shape[axis], x.device
        else:
            try:
                n = operator.index(x)
            except TypeError:
                _errors.no_array(x)
            device = device if p is None else p.device
        shape = _shape(shape)
        count = math.prod(shape)
        if n <= 0 < count or (not replace and count > n):
            raise ValueError(f"choice: {count} of {n}{'' if replace else ' without replacement'}")
        if p is not None and p.shape != (n,):
            raise ValueError(f"choice: probabilities of the shape {p.shape} for {n} parts")
        if p is not None and count > 0:
            if not (float(_ops.min(p)) >= 0 and 0 < float(_ops.max(p)) < math.inf):  # false of NaN
                raise ValueError("choice: p must be finite numbers of at least 0 that are not all 0")
        indices = _core.reshape_view(self._chosen(n, count, replace, p, device), shape)
        return _ops.take(x, indices, axis=axis) if isinstance(x, Array) else indices

    def _chosen(self, n, count, replace, p, device):
        """So many integers in [0, n)."""
        if count == 0:
            return _core.empty((0,), _dtypes.DEFAULT_INTEGER, device)
        if p is None:
            if replace:
                return self.integers((count,), 0, n, device=device)
            return self.permutation(n, device=device)[:count]
        if replace:
            return _repeated(self, p, count)
        if int(_ops.count_nonzero(p)) < count:
            raise ValueError(f"choice: fewer than {count} probabilities are not 0")
        return _different(self, p, count)

    def categorical(self, logits, samples=0):
        """Classes with the probabilities softmax(logits) along the last axis: one for each row, or `samples`."""
        logits = _array_of(logits)
        return _ops.random_categorical(logits, samples=samples, **self._advance(logits.size * max(samples, 1)))

    def gamma(self, alpha):
        """Numbers of the gamma distributions with the shapes `alpha`, an array, and the scale 1."""
        alpha = _array_of(alpha)
        return _ops.random_gamma(alpha, **self._advance(9 * alpha.size))  # a number takes 9 blocks

    def poisson(self, rate):
        """Numbers of the Poisson distributions with the means `rate`, a floating-point array.

        >>> compute.random.poisson([0.0, 0.0])
        Array([0., 0.], dtype=float32)
        """
        rate = _array_of(rate)
        return _ops.random_poisson(rate, **self._advance(9 * rate.size))  # a number takes 9 blocks

    def binomial(self, count, p):
        """Numbers of successes in `count` trials of probability `p`, which are floating-point arrays and broadcast.

        >>> compute.random.binomial([4.0, 9.0], 1.0)
        Array([4., 9.], dtype=float32)
        """
        count, p = _broadcast_arrays(*_floats(count, p))
        return _ops.random_binomial(count, p, **self._advance(9 * count.size))

    def multinomial(self, count, p):
        """How many of `count` trials have each outcome, for the probabilities `p` along its last axis.

        The outcomes are drawn one after the other, each by `binomial` from those that remain.

        >>> compute.random.multinomial([5.0], [[0.0, 1.0]])
        Array([[0., 5.]], dtype=float32)
        """
        count, p = _floats(count, p)
        drawn, rest = [], _ops.sum(p, axes=[-1])
        count, _ = _broadcast_arrays(count, rest)
        for i in range(p.shape[-1]):
            one = p[..., i]
            chance = _ops.clip(_ops.divide(one, _ops.where(_ops.greater(rest, 0), rest, 1)), 0, 1)
            last = i + 1 == p.shape[-1]
            drawn.append(count if last else self.binomial(count, chance))
            count, rest = _ops.subtract(count, drawn[-1]), _ops.subtract(rest, one)
        return _ops.stack(*drawn, axis=-1)

    def dropout(self, x, p=0.5):
        """0 with probability `p`, which is in [0, 1], else x / (1 - p)."""
        _check_probability("dropout", p)
        x = _array_of(x)
        seed, offset = self._next(x.size)
        return _ops.dropout(x, p=p, seed=seed, offset=offset)


_generator = Generator()
seed = _generator.seed
uniform = _generator.uniform
normal = _generator.normal
truncated_normal = _generator.truncated_normal
integers = _generator.integers
bernoulli = _generator.bernoulli
bits = _generator.bits
permutation = _generator.permutation
shuffle = _generator.shuffle
choice = _generator.choice
categorical = _generator.categorical
gamma = _generator.gamma
poisson = _generator.poisson
binomial = _generator.binomial
multinomial = _generator.multinomial
