# SPDX-License-Identifier: Apache-2.0
"""Samples three models of PyMC in the mode COMPUTE and in PyTensor's own, and compares the posterior means.

    pip install pymc==5.28.5 pytensor==2.38.2
    COMPUTE_DEVICE=cpu python pymc_models.py [DRAWS]

A mean may differ by four times its Monte-Carlo error. Exits with 1 if one differs by more.
"""
import sys
import time
import warnings

import arviz
import numpy as np
import pymc as pm
import pytensor

import compute_pytensor

warnings.simplefilter("ignore")


def linear(random):
    x = random.normal(size=(200, 3))
    y = x @ [1.0, -2.0, 0.5] + random.normal(size=200) * 0.7 + 0.3
    a, b, s = pm.Normal("a", 0, 5), pm.Normal("b", 0, 5, shape=3), pm.HalfNormal("s", 2)
    pm.Normal("y", a + pm.math.dot(x, b), s, observed=y)


def schools(random):
    y, sigma = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    mu, tau, z = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5), pm.Normal("z", 0, 1, shape=8)
    pm.Normal("y", mu + tau * z, sigma, observed=y)


def poisson(random):
    group = random.integers(0, 4, 300)
    count = random.poisson(np.exp(np.array([0.2, 0.8, 1.2, -0.3])[group]))
    base, offset = pm.Normal("base", 0, 1), pm.StudentT("offset", nu=4, mu=0, sigma=1, shape=4)
    pm.Poisson("count", pm.math.exp(base + offset[group]), observed=count)


def sampled(model, mode, draws):
    """The summary of a model, and the seconds that it took."""
    begin = time.perf_counter()
    with pytensor.config.change_flags(mode=mode), pm.Model():
        model(np.random.default_rng(1))
        found = pm.sample(draws=draws, tune=draws, chains=2, cores=1, random_seed=3, progressbar=False, compute_convergence_checks=False)
    return arviz.summary(found, round_to=6), time.perf_counter() - begin


def main(draws):
    worst = 0.0
    for model in (linear, schools, poisson):
        (ours, seconds), (other, other_seconds) = (sampled(model, mode, draws) for mode in (compute_pytensor.COMPUTE, "NUMBA"))
        print(f"{model.__name__}: {seconds:.1f} s in COMPUTE, {other_seconds:.1f} s in NUMBA")
        for name in ours.index:
            error = np.hypot(ours["mcse_mean"][name], other["mcse_mean"][name])
            ratio = abs(ours["mean"][name] - other["mean"][name]) / error
            worst = max(worst, ratio)
            print(f"  {name:<10} {ours['mean'][name]:9.4f} {other['mean'][name]:9.4f}   {ratio:.1f} errors apart, r_hat {ours['r_hat'][name]:.3f}")
    print(compute_pytensor.placement_report())
    return int(not worst <= 4)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1500))
