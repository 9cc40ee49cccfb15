# SPDX-License-Identifier: Apache-2.0
"""Random variables on the device's generators.

The generator of NumPy that a program passes stays what identifies the stream: each draw takes one integer from it, which
seeds the device's generator. So one seed gives the same numbers on every device, but other numbers than NumPy.
"""
from __future__ import annotations

import numpy as np
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.type import TensorType

import compute as cp

from ..lowering import DEVICE, HOST, HostOnly, Lowered, lowers
from ..values import device, dtype_of, has_dtype, to_device, to_host

try:
    from pytensor.tensor.random.utils import custom_rng_deepcopy
except ImportError:
    from copy import deepcopy as custom_rng_deepcopy

_FLOATS = ("float32", "float64")

# What the standard draws become: u is uniform in [0, 1), z normal, and the parameters are a, b, c.
_OF_UNIFORM = {
    "uniform": "a + (b - a) * u",
    "exponential": "-a * log1p(-u)",
    "gumbel": "a - b * log(-log1p(-u))",
    "logistic": "a + b * (log(u) - log1p(-u))",
    "laplace": "a - b * where(u < 0.5, -1.0, 1.0) * log1p(-abs(2.0 * u - 1.0))",
    "cauchy": "a + b * tan(3.141592653589793 * (u - 0.5))",
    "halfcauchy": "a + b * tan(1.5707963267948966 * u)",
    "pareto": "b * exp(-log1p(-u) / a)",
    "weibull": "exp(log(-log1p(-u)) / a)",
    "triangular": "where(u < (b - a) / (c - a), a + sqrt(u * (c - a) * (b - a)), c - sqrt((1.0 - u) * (c - a) * (c - b)))",
    "truncexpon": "b + c * -log1p(u * expm1(-a))",
}
_OF_NORMAL = {
    "normal": "a + b * z",
    "lognormal": "exp(a + b * z)",
    "halfnormal": "a + b * abs(z)",
}


def _shape(size, arrays):
    return tuple(int(x) for x in size) if size is not None else cp.broadcast_shapes(*(x.shape for x in arrays))


def _generator(rng):
    return cp.random.Generator(int(rng.integers(2 ** 63 - 1)))


def _mapped(text, drawn, count, out):
    names = ["a", "b", "c"][:count]
    evaluate = cp.Expression(text, drawn, *names).evaluator()
    target = dtype_of(out)

    def draw(rng, size, *arrays):
        shape = _shape(size, arrays)
        generator = _generator(rng)
        arrays = [cp.astype(x, target, copy=False) for x in arrays]
        base = (generator.uniform if drawn == "u" else generator.normal)(shape, dtype=target, device=device())
        return evaluate([base, *arrays], (), None)[0]
    return draw


def _gamma_of(generator, alpha, shape, target):
    return generator.gamma(cp.asarray(cp.broadcast_to(cp.astype(alpha, target, copy=False), shape), copy=True))


def _gamma(out):
    target = dtype_of(out)

    def draw(rng, size, alpha, scale):
        return cp.multiply(_gamma_of(_generator(rng), alpha, _shape(size, (alpha, scale)), target), cp.astype(scale, target, copy=False))
    return draw


def _beta(out):
    target = dtype_of(out)

    def draw(rng, size, a, b):
        generator, shape = _generator(rng), _shape(size, (a, b))
        x, y = _gamma_of(generator, a, shape, target), _gamma_of(generator, b, shape, target)
        return x / (x + y)
    return draw


def _invgamma(out):
    target = dtype_of(out)

    def draw(rng, size, shape, scale):
        return cp.astype(scale, target, copy=False) / _gamma_of(_generator(rng), shape, _shape(size, (shape, scale)), target)
    return draw


def _student(out):
    target = dtype_of(out)

    def draw(rng, size, df, loc, scale):
        generator, shape = _generator(rng), _shape(size, (df, loc, scale))
        df, loc, scale = (cp.astype(x, target, copy=False) for x in (df, loc, scale))
        z = generator.normal(shape, dtype=target, device=device())
        return loc + scale * z * cp.sqrt(0.5 * df / _gamma_of(generator, df * 0.5, shape, target))
    return draw


def _dirichlet(out):
    target = dtype_of(out)

    def draw(rng, size, alpha):
        shape = alpha.shape if size is None else (*(int(x) for x in size), alpha.shape[-1])
        x = _gamma_of(_generator(rng), alpha, shape, target)
        return x / cp.sum(x, axis=-1, keepdims=True)
    return draw


def _bernoulli(out):
    target = dtype_of(out)

    def draw(rng, size, p):
        u = _generator(rng).uniform(_shape(size, (p,)), dtype=cp.float32 if p.dtype is not cp.float64 else cp.float64, device=device())
        return cp.astype(u < p, target, copy=False)
    return draw


def _geometric(out):
    target = dtype_of(out)

    def draw(rng, size, p):
        dtype = p.dtype if p.dtype in (cp.float32, cp.float64) else cp.float32
        p = cp.astype(p, dtype, copy=False)
        u = _generator(rng).uniform(_shape(size, (p,)), dtype=dtype, device=device())
        return cp.astype(cp.maximum(cp.ceil(cp.log1p(-u) / cp.log1p(-p)), 1.0), target)
    return draw


def _integers(out):
    target = dtype_of(out)
    span = cp.Expression("convert(convert(low, int64) + convert(bits >> convert(1, uint64), int64) % "
                         "max(convert(high, int64) - convert(low, int64), convert(1, int64)), int64)", "low", "high", "bits").evaluator()

    def draw(rng, size, low, high):
        bits = _generator(rng).bits(_shape(size, (low, high)), dtype=cp.uint64, device=device())
        return cp.astype(span((low, high, bits), (), None)[0], target, copy=False)
    return draw


def _categorical(out):
    target = dtype_of(out)

    def draw(rng, size, p):
        batch = p.shape[:-1] if size is None else tuple(int(x) for x in size)
        # Gumbel noise: a float32 of the generator is never 1.
        dtype = p.dtype if p.dtype in (cp.float32, cp.float64) else cp.float32
        logits = cp.log(cp.astype(p, dtype, copy=False))
        u = _generator(rng).uniform((*batch, p.shape[-1]), dtype=dtype, device=device())
        return cp.astype(cp.argmax(logits - cp.log(-cp.log1p(-u)), axis=-1), target, copy=False)
    return draw


def _counts(name):
    """A distribution of counts, in float64 where the device has it."""
    def distribution(out):
        target, computed = dtype_of(out), dtype_of("float64" if has_dtype("float64") else "float32")

        def draw(rng, size, *arrays):
            generator, arrays = _generator(rng), [cp.astype(x, computed, copy=False) for x in arrays]
            if name == "multinomial":
                count, p = arrays
                shape = cp.broadcast_shapes(count.shape, p.shape[:-1]) if size is None else tuple(int(x) for x in size)
                arrays = [cp.broadcast_to(count, shape), cp.broadcast_to(p, (*shape, p.shape[-1]))]
            else:
                arrays = [cp.broadcast_to(x, _shape(size, arrays)) for x in arrays]
            return cp.astype(getattr(generator, name)(*arrays), target, copy=False)
        return draw
    return distribution


def _multivariate_normal(out):
    target = dtype_of(out)

    def draw(rng, size, mean, cov):
        mean, cov = cp.astype(mean, target, copy=False), cp.astype(cov, target, copy=False)
        batch = cp.broadcast_shapes(mean.shape[:-1], cov.shape[:-2]) if size is None else tuple(int(x) for x in size)
        factor = cp.linalg.cholesky(cov)
        z = _generator(rng).normal((*batch, mean.shape[-1]), dtype=target, device=device())
        found = mean + cp.squeeze(cp.matmul(factor, cp.expand_dims(z, axis=-1)), axis=-1)
        found[(0,) * found.ndim].item()  # raises if the covariance is not positive definite
        return found
    return draw


_DRAWS = {"gamma": _gamma, "beta": _beta, "invgamma": _invgamma, "t": _student, "dirichlet": _dirichlet, "bernoulli": _bernoulli,
          "geometric": _geometric, "integers": _integers, "categorical": _categorical, "multivariate_normal": _multivariate_normal,
          **{name: _counts(name) for name in ("binomial", "multinomial", "poisson")}}


_WHOLE = ("bernoulli", "binomial", "categorical", "geometric", "integers", "multinomial", "poisson")


@lowers(RandomVariable)
def _random_variable(op, node, placed):
    name, out = op.name, node.outputs[1].type.dtype
    _, size, *parameters = node.inputs
    if type(op).__module__ != "pytensor.tensor.random.basic":
        raise HostOnly("random variables of other packages draw by NumPy")
    if not all(isinstance(x.type, TensorType) for x in parameters):
        raise HostOnly("a parameter that is no tensor")
    text = _OF_UNIFORM.get(name) or _OF_NORMAL.get(name)
    if text is not None:
        if out not in _FLOATS:
            raise HostOnly(f"draws of {out}")
        draw = _mapped(text, "u" if name in _OF_UNIFORM else "z", len(parameters), out)
    elif name in _DRAWS:
        if out not in _FLOATS and name not in _WHOLE:
            raise HostOnly(f"draws of {out}")
        draw = _DRAWS[name](out)
        if getattr(op, "method", "cholesky") != "cholesky":
            raise HostOnly(f"multivariate_normal by {op.method}")
    else:
        raise HostOnly(f"the distribution {name}")
    is_inplace = op.inplace

    def run(rng, size, *arrays):
        if not is_inplace:
            rng = custom_rng_deepcopy(rng)
        try:
            return rng, draw(rng, size, *arrays)
        except cp.NumericalError:  # NumPy's function raises its own error, or finds a result
            found = op.rng_fn(rng, *(to_host(x) for x in arrays), None if size is None else tuple(size))
            return rng, to_device(np.asarray(found, out))
    return Lowered(run, [HOST, HOST, *[DEVICE] * len(parameters)], [HOST, DEVICE])

