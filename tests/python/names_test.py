# SPDX-License-Identifier: Apache-2.0
"""Statements as people write them for NumPy, whose values are NumPy's, and for PyTorch; and hints about other names."""
import doctest
import inspect
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import compute as cp
import numpy as np
from compute import _names, grad, linalg, nn, random

from case import FLOATS, INTEGERS, NARROW, Case

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs/guides/names.md"
SETUP = """
a = np.asarray([0.5, -1.25, 3.0, 2.0, -0.75]); b = np.asarray([2.0, 1.0, -1.0, 4.0, 0.25]); n = np.asarray([3, 0, 2, 3, 1])
f = np.asarray([True, False, True, False, True]); p = np.asarray([[1.0, -2.0, 0.5], [0.25, 4.0, -3.0]]); q = np.asarray([[3, 1, 2], [9, 7, 8]])
s = np.asarray([[4.0, 1.0], [2.0, 3.0]]); c = np.asarray([1 + 2j, -3j, 2.5]); h = np.asarray([1.0, float("nan"), float("inf"), -float("inf"), float("nan")])
t = np.reshape(np.arange(24.0), (2, 3, 4))
"""
# `np` is NumPy, or this package.
NUMPY = """
np.array([1.5, 2, 3]); np.array([[1, 2], [3, 4]], dtype=float); np.array(a, dtype="float32"); np.array(5); np.array((1, 2, 3)); np.array([a, b]); np.array([1, 2], ndmin=2)
np.asarray([1, 2], float); np.asanyarray(a); np.ascontiguousarray(p.T); np.copy(a); np.zeros(4); np.zeros((2, 2), dtype=int); np.zeros((2, 3), int); np.ones(3, bool)
np.ones((1, 2), "int16"); np.full((2, 2), 3.5); np.full(3, 7, dtype=float); np.full_like(a, 2.0); np.zeros_like(p); np.ones_like(n); np.empty_like(a).shape; np.eye(3, 4, 1)
np.eye(2, dtype=int); np.identity(2); np.tri(3, 4, 1); np.arange(4, dtype=float); np.arange(1.0, 3.0, 0.5); np.arange(10, 0, -3); np.linspace(0, 2, 5); np.linspace(0, 1, 4, False); np.linspace(-1, 1, 5, dtype=int); np.linspace(0, 30, 11, dtype="uint8"); np.where(n, 1.5, a); np.where(p, 1, 0)
np.linspace(1, 3); np.logspace(0, 3, 4); np.logspace(0, 3, 4, base=2.0); np.geomspace(1, 1000, 4); np.diag(a); np.diag(p); np.diag([1, 2], -1); np.diagflat(q); np.diag(f); np.diagflat(f, 1); np.tril(p); np.triu(p, 1)
np.tril(s, -1); np.meshgrid(a, [1.0, 2.0], indexing="ij"); np.mgrid[0:3, 1:3]; np.mgrid[0:1:5j]; np.ogrid[0:2, 0:3]; np.indices((2, 3)); np.fromiter((i * i for i in range(4)), dtype=float)
np.frombuffer(b"\\x00\\x01\\x02\\x03", dtype=np.uint8); np.frombuffer(b"\\x00\\x01\\x02\\x03", np.uint8, 2, 1); np.fromfunction(lambda i, j: i * 10 + j, (2, 3))
np.concatenate((a, b)); np.concatenate([p, p], axis=1); np.concatenate((p, p), 0); np.concatenate([p, p], axis=None); np.concatenate([a, [7.0]]); np.vstack([a, b]); np.hstack((a, b)); np.hstack([p, p])
np.dstack((a, b)); np.dstack([p, p]); np.column_stack((n, n)); np.stack((a, b)); np.stack([a, b], -1); np.r_[a, 5.0, b]; np.r_[1:4, 0, 9]; np.c_[a, b]; np.c_[p, p]; np.append(a, [1.0, 2.0]); np.append(n, 5)
np.append(p, p, axis=0); np.append(p, p); np.insert(a, 2, 9.0); np.insert(a, [0, 3], 5.0); np.insert(a, [1, 1], [7.0, 8.0]); np.insert(p, 1, [5.0, 6.0], axis=1); np.insert(p, 0, 1.0, axis=0); np.insert(a, -1, 4.0)
np.delete(a, 0); np.delete(a, [0, -1]); np.delete(p, 1, axis=1); np.delete(a, slice(1, 3)); np.delete(a, f.tolist()); np.split(a[:4], 2); np.array_split(a, 3); np.array_split(p, 2, axis=1); np.hsplit(p, 3)
np.vsplit(p, 2); np.dsplit(t, 2); np.tile(a, 2); np.tile([1, 2], (2, 2)); np.repeat(a, 3); np.repeat(p, 2, axis=0); np.repeat(p, 2, 1); np.repeat(a, [1, 0, 2, 0, 1]); np.ravel(p); np.ravel(p.T)
np.transpose(p); np.transpose(t, (1, 0, 2)); np.transpose(t); np.swapaxes(t, 0, 2); np.moveaxis(t, 0, -1); np.rollaxis(t, 2); np.rollaxis(t, 0, 3); np.expand_dims(a, 0); np.expand_dims(a, (0, 2))
np.squeeze(a[None]); np.squeeze(a[None, :, None], axis=0); np.atleast_1d(2.0); np.atleast_2d([1.0, 2.0]); np.atleast_3d(a); np.atleast_3d(p); np.flip(a); np.flip(p, 1); np.flipud(p); np.fliplr(p); np.rot90(p)
np.rot90(p, 2); np.rot90(p, -1); np.roll(a, 2); np.roll(p, 1, axis=0); np.roll(p, 1, 1); np.broadcast_to(a, (2, 5)); np.broadcast_arrays(a, [[1.0], [2.0]]); np.reshape(a, (5, 1)); np.reshape(t, -1)
np.pad(a, 2); np.pad(p, ((1, 0), (0, 2))); np.pad(a, (1, 1), mode="reflect"); np.pad(a, (2, 1), "constant", constant_values=(4, 6)); np.pad(p, 1, constant_values=((1, 2), (3, 4)))
np.sum(a); np.sum(p, 0); np.sum(p, axis=(0, 1)); np.sum(p, axis=1, keepdims=True); np.sum([1, 2, 3]); np.sum(n, dtype=float); np.sum(f); np.sum(range(5)); np.prod(a); np.prod(p, 1); np.max(p, 0); np.min(p, 1)
np.max(p, axis=(0, 1)); np.amax(p, axis=1); np.amin(p); np.mean(p, 0); np.mean([1, 2, 4]); np.mean(n); np.mean(p, axis=1, keepdims=True); np.mean(n, dtype=float); np.std(p, axis=1); np.std(a, ddof=1); np.var(p, 0)
np.var(p, axis=0, ddof=1); np.median(a); np.median(n); np.median(p, axis=0); np.average(a, weights=[1, 2, 3, 4, 5]); np.average(p, 0); np.average(p, 1, [1.0, 2.0, 3.0]); np.percentile(a, 30)
np.percentile(p, [10, 50], axis=1); np.quantile(a, [0.2, 0.8]); np.quantile(a, np.asarray([[0.2], [0.8]])); np.quantile(p, 0.5, axis=(0, 1)); np.ptp(p); np.ptp(p, axis=0); np.all(f); np.any(p > 3, axis=0); np.all(p > -5, 1)
np.argmax(a); np.argmin(p, axis=1); np.argmax(p, 0); np.count_nonzero(n); np.count_nonzero(p > 0, axis=1); np.cumsum(a); np.cumsum(p); np.cumsum(p, 1); np.cumsum(n, dtype=float); np.cumsum(f); np.cumsum(p > 0, axis=1); np.cumprod(p > -9, 1); np.cumprod(a); np.cumprod(p, axis=0)
np.diff(a); np.diff(a, 2); np.diff(p, axis=0); np.diff(p, 1, 0); np.diff(n, prepend=0); np.diff(n, append=[9]); np.nansum(h); np.nanprod(np.asarray([2.0, float("nan")])); np.nanmax(h); np.nanmin(np.asarray([1.0, float("nan")]))
np.nanmean(np.asarray([[1.0, float("nan")], [2.0, 4.0]]), 0); np.nanstd(np.asarray([1.0, float("nan"), 4.0]), ddof=1); np.nanvar(np.asarray([1.0, 2.0, float("nan")])); np.nanargmax(np.asarray([float("nan"), 1.0, 5.0]))
np.nan_to_num(h); np.nan_to_num(h, nan=-1.0, posinf=9.0, neginf=-9.0); np.cov(p); np.cov(a, b); np.cov(p, rowvar=False); np.cov(p, bias=True); np.cov(a, ddof=0); np.corrcoef(a, b)
np.histogram(a, 4); np.histogram(a, bins=[-2, 0, 1, 4]); np.histogram(a, 3, (0, 3)); np.histogram(a, bins=2, density=True); np.histogram(a, bins=3, weights=b)[0]; np.bincount(n); np.bincount(n, minlength=6); np.bincount(n, [1.0, 2, 3, 4, 5])
np.digitize(a, [-1, 0, 1]); np.digitize(a, [2.0, 0.0], right=True); np.sort(a); np.sort(p, 0); np.sort(p, axis=None); np.sort(a, kind="stable"); np.argsort(a); np.argsort(p, axis=0); np.argsort(p, 1, kind="stable"); np.lexsort((b, n))
np.partition(a, 2)[2]; a[np.argpartition(a, 1)[1]]; np.searchsorted([1, 3, 5], [0, 3, 9]); np.searchsorted(np.sort(a), 1.0); np.searchsorted(np.sort(a), b, "right"); np.unique(n); np.unique(n, return_counts=True)
np.unique(n, return_index=True, return_inverse=True); np.unique(h[:3]); np.unique(h, return_counts=True); np.unique([[3, 1], [1, 3]]); np.isin(n, [0, 3]); np.isin(n, [0, 3], invert=True); np.isin([1, 5], n)
np.intersect1d(n, [3, 1, 8]); np.union1d(n, [8, 3]); np.setdiff1d(n, [3]); np.setxor1d(n, [3, 9]); np.where(a > 0, a, 0.0); np.where(f, 1, 2); np.where([True, False], [1, 2], [3, 4]); np.where(a > 0); np.where(a > 0, a, b)
np.nonzero(n); np.nonzero(p > 0); np.argwhere(p > 0); np.argwhere(n); np.flatnonzero(p > 0); np.extract(a > 0, a); np.compress([True, False], p, axis=0); np.take(a, [0, -1]); np.take(p, [0, 4]); np.take(p, [2, 0], axis=1); np.take(a, 2)
np.take_along_axis(p, np.argsort(p, axis=1), axis=1); np.take_along_axis(p, np.argmax(p, axis=1)[:, None], 1); np.select([a > 1, a > 0], [a, -a], 7.0); np.choose([1, 0, 1], [[1, 2, 3], [4, 5, 6]]); np.piecewise(a, [a < 0, a > 1], [-1.0, 1.0])
np.piecewise(a, [a < 0], [lambda v: -v, lambda v: v * 2]); np.unravel_index(7, (3, 4)); np.unravel_index([1, 5], (2, 3)); np.ravel_multi_index(([0, 1], [2, 1]), (2, 3)); p[np.ix_([1, 0], [0, 2])]; p[np.ix_([True, False], [2, 0])]
np.tril_indices(3); np.triu_indices(3, 1); np.diag_indices(2); np.abs(a); np.absolute(c); np.fabs(a); np.sqrt(np.abs(a)); np.square(a); np.cbrt(a); np.exp(a); np.exp([0.0, 1.0]); np.exp2(a); np.expm1(a); np.log(np.abs(a)); np.log2(b * b)
np.log10(b * b); np.log1p(b * b); np.sin(a); np.cos([0.0, 1.0]); np.tan(a); np.arcsin(a / 4); np.arccos(a / 4); np.arctan(a); np.arctan2(a, b); np.sinh(a); np.cosh(a); np.tanh(a); np.arcsinh(a); np.arccosh(b * b + 1); np.arctanh(a / 4)
np.hypot(a, b); np.degrees(a); np.radians(a); np.rad2deg(a); np.deg2rad(a); np.floor(a); np.ceil(a); np.trunc(a); np.fix(a); np.rint(a); np.round(a); np.round(a, 1); np.round(p, decimals=1); np.around(a * 100, -1); np.round(n * 10 + 5, -1)
np.sign(a); np.heaviside(a, 0.5); np.clip(a, 0, 1); np.clip(a, None, 1.0); np.clip(a, a_min=0, a_max=None) if False else np.clip(a, 0, None); np.clip(a, [0, 0, 0, 0, 0], 2.0); np.maximum(a, b); np.maximum(a, [1, 1, 1, 1, 1])
np.minimum(a, 0); np.fmax(h, 0.0); np.fmin(h, [1.0, 2.0, 3.0, 4.0, 5.0]); np.add(a, 1); np.add(a, b); np.subtract(a, [1, 2, 3, 4, 5]); np.multiply(a, b * 1.0); np.divide(a, 2); np.true_divide(a, b); np.floor_divide(a, 2); np.mod(a, 2)
np.remainder(a, b); np.fmod(a, 2); np.divmod(n, 2); np.power(a, 2); np.power(2.0, a); np.float_power(b, 2); np.float_power(n, 2); np.fabs(n); np.negative(a); np.positive(a); np.reciprocal(b); np.copysign(a, b); np.signbit(a); np.nextafter(a, b); np.logaddexp(a, b); np.sinc(a)
np.real(c); np.imag(c); np.conj(c); np.conjugate(c); np.angle(c); np.angle(c, deg=True); np.angle([-1.0, 1.0]); np.isreal(c); np.iscomplex(c); np.iscomplexobj(c); np.isrealobj(a); np.isnan(h); np.isinf(h); np.isfinite([1.0, np.inf]); np.isposinf(h)
np.isneginf(h); np.logical_and(f, a > 0); np.logical_or(f, [False] * 5); np.logical_xor(f, a > 0); np.logical_not(f); np.bitwise_and(n, 1); np.bitwise_or(n, [1, 2, 1, 2, 1]); np.bitwise_xor(n, 3); np.invert(n); np.bitwise_not(f)
np.left_shift(n, 2); np.right_shift(n, 1); np.equal(n, 3); np.not_equal(n, [3, 0, 0, 0, 0]); np.less(a, b); np.less_equal(a, 0); np.greater(a, b); np.greater_equal(a, 0.5); np.isclose(a, a + 1e-9); np.isclose(a, b, 1e-3, 1e-3)
np.allclose(a, [0.5, -1.25, 3.0, 2.0, -0.75]); np.allclose(a, b, rtol=1.0); np.array_equal(a, b); np.array_equal(n, [3, 0, 2, 3, 1]); np.array_equal(h, h, equal_nan=True); np.dot(a, b); np.dot(s, p); np.dot(t, a[:4]); np.dot(a, 2.0)
np.dot(t, t.transpose(0, 2, 1)).shape; np.matmul(s, p); np.matmul(s, [1.0, 2.0]); np.inner(a, b); np.inner(p, p); np.outer(a, b); np.outer(p, a); np.vdot(c, c); np.cross([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]); np.kron(s, s); np.kron([1, 2], [3, 4])
np.tensordot(p, p, axes=2); np.tensordot(p, p, axes=([1], [1])); np.tensordot(s, p, 1); np.einsum("ij,jk->ik", s, p); np.einsum("ii", s); np.einsum("i,i", a, [1.0, 2.0, 3.0, 4.0, 5.0]); np.trace(s); np.trace(t, 1); np.diagonal(s); np.diagonal(t, 0, 1, 2)
np.linalg.norm(a); np.linalg.norm(p); np.linalg.norm(p, axis=0); np.linalg.norm(p, 1); np.linalg.norm(p, np.inf); np.linalg.norm(a, 3); np.linalg.norm(n); np.linalg.norm(p, "fro"); np.linalg.norm(p, axis=1, keepdims=True); np.linalg.norm(t, axis=(1, 2))
np.linalg.norm(t, 1, (0, 2)); np.linalg.norm(t, 1, (0, 2), True); np.linalg.matrix_power(s, 3); np.linalg.multi_dot([s, s, p]); np.polyfit(a, b, 2); np.polyfit([0, 1, 2, 3], [1, 3, 5, 7], 1); np.polyfit(a, b, 1, w=[1, 2, 1, 2, 1])
np.polyfit(a, np.stack([a, b], axis=1), 1); np.polyval([1, 2, 3], a); np.polyval([2.0, 1.0], 3.0); np.interp([0.5, 2.5], [0, 1, 2, 3], [0.0, 10.0, 20.0, 40.0]); np.interp(1.5, [1.0, 2.0], [3.0, 4.0]); np.interp(9.0, [1.0, 2.0], [3.0, 4.0], 0, 7)
np.convolve(a, [1.0, 2.0]); np.convolve([1, 2, 3], [0, 1], "same"); np.correlate(a, [1.0, 0.5], "full"); np.gradient(a); np.gradient(a, 0.5); np.gradient(a, [0, 1, 3, 4, 6]); np.gradient(p, axis=1); np.ndim(p); np.shape(p); np.size(p); np.size(p, 1); np.ndim(3)
np.shape([[1, 2]]); np.isscalar(3.0); np.isscalar(a); np.issubdtype(a.dtype, np.floating); np.issubdtype(n.dtype, np.integer); np.issubdtype(n.dtype, np.floating); np.dtype("float32").itemsize; np.dtype(float).name; np.finfo(np.float32).eps
np.iinfo(np.int16).max; np.promote_types("int8", "int16").name; np.can_cast("int8", "int16"); np.float32([1, 2]); np.int16(7); np.bool_([0, 1]); np.array2string(n); np.may_share_memory(a, a); np.may_share_memory(a, np.copy(a)); np.loadtxt(["1 2", "3 4 # c"])
np.loadtxt(["1,2", "3,4"], delimiter=","); np.loadtxt(["a b", "1 2"], skiprows=1); np.loadtxt(["1 2 3", "4 5 6"], usecols=(0, 2)); np.loadtxt(["1 2", "3 4"], unpack=True); np.loadtxt(["5", "6"], dtype=int); np.loadtxt(["7"], ndmin=1)
a.sum(); p.sum(0); p.sum(axis=1, keepdims=True); p.mean(1); p.std(axis=0, ddof=1); p.var(ddof=1); p.max(1); p.min(axis=0); p.argmax(); p.argmin(1); p.prod(axis=0); f.any(); f.all(); p.cumsum(); p.cumsum(axis=0); p.cumprod(1)
a.argsort(); a.round(1); a.round(); a.clip(0, 1); a.dot(b); s.dot([1.0, 2.0]); c.conj(); c.conjugate(); c.real; c.imag; a.real; a.imag; p.flatten(); p.ravel(); p.reshape(-1); p.reshape(3, 2); p.reshape((1, -1)); p.transpose(); t.transpose(2, 0, 1); p.T; a.T; p.swapaxes(0, 1)
p.squeeze(); a[None].squeeze(0); a.repeat(2); p.repeat(2, axis=1); a.take([1, 2]); p.take([0, 2], axis=1); n.nonzero(); s.trace(); s.diagonal(); p.diagonal(1); a.searchsorted(1.0); a.astype(int); a.astype("float32"); n.astype(float); n.astype(bool); a.copy(); a.tolist()
a.item(1); p.item(4); p.item(1, 2); a.nbytes; a.itemsize; a.size; p.ndim; p.shape; a.dtype.name; a.dtype.kind; f.dtype.kind; n.dtype.itemsize; c.dtype.kind; a.dtype == "float64"; a.dtype != "float32"; a.dtype == np.float64; a.view(np.int64); a.flat[2]; len(p); p.tobytes()
a + [1, 2, 3, 4, 5]; [1, 2, 3, 4, 5] - a; a * (1, 2, 3, 4, 5); p / [[1.0], [2.0]]; a ** [2, 2, 2, 2, 2]; n // [1, 2, 1, 2, 1]; n % [2, 2, 2, 2, 2]; n == [3, 0, 0, 3, 0]; n != [3, 0, 0, 3, 0]; a < [0, 0, 0, 0, 0]; [0, 0, 0, 0, 0] <= a; n & [1, 1, 1, 1, 1]; s @ [1.0, 2.0]
np.unique([[2, 1], [1, 3], [2, 1]], axis=0); np.unique(q, axis=1); np.unique(np.round(t) % 2, axis=0, return_inverse=True)[0]; np.unique([[1, 0], [1, 0], [0, 2]], True, True, True, 0)[1]; np.unique(c[None], axis=1); np.unique(np.asarray([[1.0, float("nan")]] * 2), axis=0)
np.sin(0.5); np.exp(1); np.sqrt(2.0); np.maximum(1, 2.5); np.add(1, 2); np.isnan(float("nan")); np.log(2j); np.round(2.567, 1); np.real(1 + 2j); np.angle(1j); np.repeat(3, 2); np.tile(1.5, 2); np.atleast_1d(2); np.ravel(3); np.mean(5); np.sort([2, 1]); np.cumsum(3)
np.std([1, 2, 4]); np.var(n); np.var(n, ddof=1); np.std(q, axis=1, keepdims=True); np.sum(p, where=[True, False, True]); np.sum(p, 1, where=p > 0); np.sum(n, initial=5); np.prod(p, axis=0, where=p > 0); np.max(p, axis=1, where=p > 0, initial=-1.0)
np.min(n, initial=-7); np.mean(p, axis=1, where=p > -2.5); np.std(p, axis=1, where=p > -2.5); np.var(p, where=p > 0, ddof=1); np.all(p > 0, axis=1, where=p > 0); np.any(p > 0, where=p < 0); np.max(p, 0, initial=2.0, keepdims=True); np.amax(p, axis=0, initial=2.0, where=p > 0); np.amin(p, initial=-7.0, out=np.zeros(())); np.nansum(p, axis=1, where=p > 0); np.nansum(h, initial=2.0, keepdims=True)
np.reshape(p, (3, 2), order="F"); np.reshape(p, -1, order="F"); np.reshape(a[:4], (2, 2), order="F"); np.reshape(p.T, 6, order="A"); np.ravel(p, order="F"); np.ravel(t.transpose(1, 0, 2), order="K"); p.ravel(order="C"); p.ravel("F"); p.flatten("F"); p.reshape(3, 2, order="F")
np.array(a, order="C"); np.zeros(2, "d"); np.asarray([1, 2], "i2"); np.dtype("<f4").name; np.dtype("f8").name; np.dtype("?").kind; np.result_type("i4", "f8").name; np.linspace(start=0, stop=1, num=3); np.linspace(0, 1, 5, retstep=True); np.linspace(0, 1, 4, endpoint=False, retstep=True)[1]
np.arange(start=1, stop=4); np.full((2, 3), [1, 2, 3]); np.full_like(p, [[1], [2]]); np.meshgrid(a, b, sparse=True); np.meshgrid(a, [1.0], sparse=True, indexing="ij"); np.trapezoid(a, x=[0, 1, 3, 4, 6]) if hasattr(np, "trapezoid") else np.trapz(a, x=[0, 1, 3, 4, 6]); np.repeat(a, repeats=2)
np.moveaxis(t, source=0, destination=1); np.take(a, indices=[1, 0]); np.quantile(a, q=0.3); np.median(p, axis=0, overwrite_input=False); np.einsum(p, [0, 1], [1, 0]); np.einsum(s, [0, 1], p, [1, 2]); np.einsum(t, [0, ..., 1], [0, ...]); np.einsum("ij,jk", s, p, optimize=True)
np.size(p, -1); np.intersect1d(n, [3, 1, 8], return_indices=True); np.unravel_index([3, 5], (2, 3), order="F"); np.add(a, b, dtype="float32"); np.power(n, 2, dtype=float); np.isinf(h, np.zeros(5, bool)); np.exp(a, np.zeros(5)); np.divide(a, b, out=np.zeros(5), where=b > 0)
np.sqrt(a, where=a > 0, out=np.zeros(5)); np.logical_not(f, where=f, out=np.ones(5, bool)); np.interp([0.5, 3.0], [0, 1, 2], [1j, 2.0, 3 + 1j]); np.nan_to_num(np.asarray([1 + 1j, complex(float("nan"), 2)])); np.loadtxt(["1;2"], delimiter=";", converters={1: lambda text: float(text) * 10})
np.vander([1, 2, 3]); np.vander(a, 3, increasing=True); np.hanning(5); np.hamming(4); np.blackman(6); np.bartlett(4); np.bartlett(1); np.hanning(0); list(np.ndindex(2, 2)); list(np.ndindex((3,))); np.trim_zeros([0, 1, 0, 2, 0]); np.trim_zeros(a); np.trim_zeros([0, 0, 1], "b"); np.trim_zeros([0, 0])
np.nancumsum(h[:1]); np.nancumsum([[1.0, float("nan")], [3.0, 4.0]], axis=0); np.nancumprod([2.0, float("nan"), 3.0]); np.ediff1d(p); np.ediff1d(n, to_begin=[9], to_end=[7, 7]); np.histogram2d(a, b, 3); np.histogram2d(a, b, bins=[[-2, 0, 3], [0, 1, 4]], weights=b); np.histogram2d(a, b, (2, 4), density=True)
np.histogram2d(a, b, 2, range=[[-1, 1], [0, 3]]); np.tril_indices_from(p); np.triu_indices_from(p, 1); np.diag_indices_from(s); np.modf(h[1:4]); np.modf([-1.5, -0.0]); np.ldexp(a, [1, 2, 3, -1, 0]); np.logaddexp2(a, b); np.logaddexp2([1000.0, -np.inf], [1001.0, -np.inf]); np.unwrap([0.0, 3.0, 6.5, 0.5, -3.0])
np.unwrap(p, axis=0, period=2.0); np.unwrap(a * 4, discont=4.0); np.polyadd([1, 2], [1, 0, 3]); np.polysub(a, [1.0, 2.0]); np.polymul([1, 2], [1, 3]); np.polyder([1, 2, 3, 4], 2); np.polyder([5]); np.polyint([1, 2, 3]); np.polyint([1.0, 2.0], 2, [1, 2]); np.array_equiv(a, p[0]); np.array_equiv([1, 2], [[1, 2], [1, 2]])
np.roots([1, -3, 2]) + 0j; np.roots([0.0, 2.0, 0.0, -8.0, 0.0]).real; np.roots([3]) + 0j; np.roots([1, 0, 0]) + 0j; np.roots([1, 0, 1]); np.block([[s, np.ones((2, 1))], [a[:3]]]); np.block([a, 5.0]); np.block(a); list(np.ndenumerate(q)); np.linalg.cond(s)
np.linalg.cond(s, 1); np.linalg.lstsq(p.T, a[:3], rcond=None)[0]; np.linalg.svd(p, compute_uv=False); np.linalg.inv(np.asarray([[2, 1], [1, 1]])); np.linalg.matrix_power(np.asarray([[1, 1], [1, 0]]), 10); np.fft.fft2(p); np.fft.ifft2(s); np.fft.rfft2(t); np.fft.irfft2(p); np.fft.fftfreq(6, 0.5); np.fft.fft(a, 8); np.gcd(n, 6); np.gcd([12, -18], [8, 0]); np.lcm(n, [4, 1, 6, 9, -2]); np.apply_along_axis(np.sum, 1, p); np.apply_along_axis(lambda v: v[::-1] * 2, 0, p); np.apply_along_axis(np.diag, 1, t); np.apply_along_axis(np.cumsum, 1, t); n.dtype == int; a.dtype == float; np.add.reduce(p); np.multiply.reduce(p, axis=1); np.maximum.reduce([a, b]); np.logical_or.reduce([f, a > 0]); np.logical_and.reduce(p > -3, axis=None); np.add.accumulate(p, axis=1); np.minimum.accumulate(a); np.subtract.outer(a, n); np.power.outer([1, 2], [[2], [3]])
np.add.at(n, [0, 0, -1], 2) or n; np.maximum.at(a, [1, 1], [9.0, 2.0]) or a; np.add.at(p, ([0, 0], [1, 1]), 1.0) or p; np.multiply.at(p, [1, 1], [1.0, 2.0, 3.0]) or p; np.add.reduce(p, axis=1, keepdims=True, initial=3.0); np.fromstring("1, 2", sep=","); np.fromstring("1 2 3", int, 2, sep=" "); divmod(n, 2); divmod(7, n + 1); p.item((1, 2)); a.view(); np.arange(a[0], b[3])
np.lib.stride_tricks.sliding_window_view(a, 3); np.lib.stride_tricks.sliding_window_view(p, (2, 2)); np.lib.stride_tricks.sliding_window_view(t, 2, axis=1); np.lib.stride_tricks.as_strided(n, (2, 2), (8, 16)); np.random.multivariate_normal([0, 0], [[1, 0], [0, 1]], 5).shape; np.random.default_rng(1).multivariate_normal([0], [[1]], (2, 3)).shape
[1.0, 2.0] @ s; a[[0, 2]]; a[[True, False, True, False, True]]; a[a > 0]; p[:, [0, 2]]; p[1]; p[..., 0]; a[::-1]; a[np.newaxis]; p[[0, 1], [1, 2]]; np.s_[1:3]; np.index_exp[0, 1]; np.vander if False else 1; np.pi; np.e; np.inf; np.newaxis
"""
# Of PyTorch, beside the value as NumPy has it.
TORCH = """
torch.tensor([1.0, 2.0]) | [1.0, 2.0]; torch.tensor([[1, 2]], dtype=torch.float32) | [[1.0, 2.0]]; torch.as_tensor([1, 2]) | [1, 2]; torch.from_numpy(numpy.arange(3)) | [0, 1, 2]; torch.zeros(2, 3) | np.zeros((2, 3)); torch.ones(2) | [1.0, 1.0]
torch.full((2,), 1.5) | [1.5, 1.5]; torch.arange(3) | [0, 1, 2]; torch.linspace(0, 1, steps=3) | [0, 0.5, 1]; torch.eye(2) | np.eye(2); torch.rand(2, 3).shape | (2, 3); torch.randn(4).shape | (4,); torch.randint(0, 9, (2, 2)).shape | (2, 2); torch.randint(5, (3,)).shape | (3,)
torch.sort(torch.randperm(4)) | [0, 1, 2, 3]; torch.rand_like(p).shape | (2, 3); torch.cat([a, b]) | np.concatenate([a, b]); torch.cat((p, p), dim=1) | np.concatenate((p, p), 1); torch.stack([a, b], dim=1) | np.stack([a, b], 1); torch.unsqueeze(a, 0) | a[None]
a.unsqueeze(-1) | a[:, None]; torch.squeeze(a[None], dim=0) | a; p.view(-1) | p.ravel(); p.view(3, 2) | p.reshape(3, 2); p.permute(1, 0) | p.T; torch.permute(t, (2, 0, 1)) | t.transpose(2, 0, 1); p.t() | p.T; torch.transpose(t, 0, 2) | t.transpose(2, 1, 0)
torch.flatten(t, start_dim=1) | t.reshape(2, 12); t.flatten(1) | t.reshape(2, 12); torch.movedim(t, 0, 2) | np.moveaxis(t, 0, 2); a.expand(2, 5) | np.broadcast_to(a, (2, 5)); a[None].expand(3, -1) | np.broadcast_to(a, (3, 5)); torch.flip(p, [1]) | p[:, ::-1]; torch.flip(p, dims=(0,)) | p[::-1]
torch.roll(a, 1, dims=0) | np.roll(a, 1); torch.chunk(a, 2)[0] | a[:3]; a.chunk(3)[2] | a[4:]; torch.unbind(p)[1] | p[1]; torch.narrow(a, 0, 1, 2) | a[1:3]; torch.tensor_split(a, 2, dim=0)[1] | a[3:]; p.sum(dim=1) | p.sum(1); torch.sum(p, dim=0, keepdim=True) | p.sum(0, keepdims=True)
torch.sum(p, (0, 1)) | p.sum(); torch.mean(p, dim=1) | p.mean(1); p.mean(0) | p.mean(0); torch.prod(p, dim=0) | p.prod(0); torch.std(p, dim=0, correction=1) | p.std(0, ddof=1); torch.var(p, dim=0, unbiased=True) | p.var(0, ddof=1); torch.var(p, unbiased=False) | p.var(); torch.argmax(p, dim=1) | p.argmax(1)
p.argmin(dim=0) | p.argmin(0); torch.amax(p, dim=1) | p.max(1); torch.all(p > -9, dim=0) | [True, True, True]; torch.any(p > 3, dim=1, keepdim=True) | [[False], [True]]; torch.cumsum(p, dim=1) | p.cumsum(1); torch.cumprod(a, dim=0) | a.cumprod(); torch.norm(a) | np.linalg.norm(a)
torch.norm(p, p=1) | np.abs(p).sum(); torch.norm(p, dim=1) | np.linalg.norm(p, axis=1); a.norm() | np.linalg.norm(a); torch.linalg.norm(p, dim=0) | np.linalg.norm(p, axis=0); torch.linalg.vector_norm(a) | np.linalg.norm(a); torch.quantile(a, 0.5) | np.median(a); torch.nansum(h[:2]) | 1.0
torch.topk(a, 2).values | [3.0, 2.0]; a.topk(2, largest=False).indices | [1, 4]; torch.topk(p, 1, dim=0)[0] | p.max(0)[None]; torch.argsort(a, descending=True) | np.argsort(-a); torch.argsort(p, dim=0) | p.argsort(0); torch.unique(n) | [0, 1, 2, 3]; torch.unique(n, return_counts=True)[1] | [1, 1, 1, 2]
torch.gather(p, 1, torch.tensor([[0], [2]])) | [[1.0], [-3.0]]; torch.gather(p, 0, torch.tensor([[1, 0]])) | [[0.25, -2.0]]; torch.index_select(p, 1, torch.tensor([2, 0])) | p[:, [2, 0]]; torch.masked_fill(a, a > 0, 9.0) | np.where(a > 0, 9.0, a); a.masked_fill(a < 0, 0) | np.maximum(a, 0)
torch.masked_select(a, a > 0) | a[a > 0]; torch.take_along_dim(p, torch.argsort(p, dim=1), dim=1) | np.sort(p, 1); torch.repeat_interleave(a, 2) | np.repeat(a, 2); torch.bucketize(a, [0.0, 1.0]) | np.searchsorted([0.0, 1.0], a); torch.clamp(a, min=0) | np.maximum(a, 0); torch.clamp(a, -1, 1) | np.clip(a, -1, 1)
a.clamp(max=1) | np.minimum(a, 1); torch.relu(a) | np.maximum(a, 0); torch.sigmoid(a) | 1 / (1 + np.exp(-a)); torch.softmax(p, dim=1).sum(1) | [1.0, 1.0]; p.softmax(dim=0).sum(0) | [1.0, 1.0, 1.0]; torch.log_softmax(p, dim=1).exp().sum(1) | [1.0, 1.0]; torch.logsumexp(p, dim=1) | np.log(np.exp(p).sum(1))
torch.mul(a, 2) | a * 2; torch.sub(a, b) | a - b; torch.div(a, 2) | a / 2; torch.neg(a) | -a; torch.add(a, b, alpha=2) | a + 2 * b; torch.eq(n, 3) | n == 3; torch.ge(a, b) | a >= b; torch.lerp(a, b, 0.5) | (a + b) / 2; torch.mm(s, p) | s @ p; torch.bmm(s[None], p[None]) | (s @ p)[None]; torch.mv(s, s[0]) | s @ s[0]
torch.dot(a, b) | a @ b; torch.outer(a, b) | np.outer(a, b); torch.addmm(s, s, s, beta=2.0) | 2 * s + s @ s; torch.addmm(s[0], s, s) | s[0] + s @ s; torch.addmm(s[0], s, s, alpha=2) | s[0] + 2 * s @ s; torch.diag(a) | np.diag(a); torch.tril(p, diagonal=1) | np.tril(p, 1); torch.tensordot(p, p, dims=2) | (p * p).sum(); torch.nan_to_num(h, nan=0.0, posinf=1.0, neginf=-1.0) | [1.0, 0, 1, -1, 0]; torch.numel(p) | 6; p.numel() | 6
p.dim() | 2; a.abs() | np.abs(a); a.exp() | np.exp(a); b.pow(2) | b * b; a.add(1) | a + 1; a.mul(b) | a * b; a.sqrt().isnan() | a < 0; a.eq(0.5) | a == 0.5; a.float().dtype.name | "float32"; a.double().dtype.name | "float64"; n.long().dtype.name | "int64"; a.int() | a.astype(int); n.bool() | n != 0; a.half().dtype.name | "float16"
a.to(torch.float32).dtype.name | "float32"; a.to("cpu") | a; a.to(device="cpu", dtype=torch.float32).dtype.name | "float32"; a.to(n) | a.astype(int); a.type_as(n) | a.astype(int); a.cpu() | a; a.numpy() | a; a.detach().cpu().numpy() | a; a.clone() | a; a.contiguous() | a; torch.clone(a) | a; torch.is_tensor(a) | True
torch.linspace(start=0, end=1, steps=3) | [0, 0.5, 1]; torch.logspace(start=0, end=2, steps=3) | [1.0, 10, 100]; torch.arange(start=1, end=3) | [1, 2]; torch.mean(p, 1, True) | p.mean(1, keepdims=True); p.sum(0, True) | p.sum(0, keepdims=True); torch.any(p > 3, 1, True) | [[False], [True]]
torch.div(a, b, rounding_mode="trunc") | np.trunc(a / b); torch.div(n - 2, 2, rounding_mode="trunc") | [0, -1, 0, 0, 0]; torch.div(a, 2, rounding_mode="floor") | a // 2; torch.diagonal(t, dim1=1, dim2=2) | np.diagonal(t, 0, 1, 2); torch.repeat_interleave(n) | [0, 0, 0, 2, 2, 3, 3, 3, 4]
torch.nonzero(n, as_tuple=True)[0] | [0, 2, 3, 4]; torch.unique(q, dim=0) | np.unique(q, axis=0); n.repeat_interleave(2) | np.repeat(n, 2); torch.add(a, b, alpha=2, out=torch.zeros(5)) | a + 2 * b; torch.einsum(s, [0, 1], p, [1, 2], [0, 2]) | s @ p; torch.topk(a, k=1).indices | [2]
torch.aminmax(p, dim=1)[1] | p.max(1); torch.kthvalue(n, 2)[0] | 1; p.kthvalue(1, dim=0, keepdim=True)[1] | p.argmin(0)[None]; torch.frac(a) | a - np.trunc(a); torch.addcmul(a, a, b, value=0.5) | a + 0.5 * a * b; torch.addcdiv(a, a, b) | a + a / b; torch.ger(a, b) | np.outer(a, b)
torch.is_floating_point(a) | True; a.is_complex() | False; torch.get_default_dtype().name | "float64"; torch.clone(b).sqrt_() | np.sqrt(b); torch.clone(a).exp_() | np.exp(a); torch.clone(a).neg_().pow_(2) | a * a; torch.clone(a).uniform_(2, 3) > 2 | a > -9; torch.clone(a).normal_(mean=9).shape | (5,)
a.new_zeros(2) | [0.0, 0.0]; n.new_tensor([1, 2]) | [1, 2]; a.new_full((2,), 3) | [3.0, 3.0]; p.view_as(torch.zeros(3, 2)) | p.reshape(3, 2); a.expand_as(torch.zeros(2, 5)) | np.broadcast_to(a, (2, 5)); a.lerp(b, 0.5) | (a + b) / 2; a.fmod(2) | np.fmod(a, 2); n.bitwise_and(1) | n & 1; a.less(b) | a < b; h.nansum() | np.nansum(h)
torch.cartesian_prod(n[:2], q[0]) | [[3, 3], [3, 1], [3, 2], [0, 3], [0, 1], [0, 2]]; torch.cdist(p, p[:1]) | np.linalg.norm(p - p[0], axis=1)[:, None]; torch.cdist(p, p, p=1.0)[0, 1] | np.abs(p[0] - p[1]).sum(); torch.inverse(s) | np.linalg.inv(s); torch.det(s) | np.linalg.det(s); torch.normal(p, np.zeros((2, 3))) | p
torch.normal(0.0, 1.0, size=(2, 3)).shape | (2, 3); torch.bernoulli(np.asarray([0.0, 1.0])) | [0.0, 1.0]; torch.multinomial(np.asarray([0.0, 1.0, 0.0]), 2, replacement=True) | [1, 1]; torch.sort(torch.multinomial(np.asarray([[1.0, 0.0, 2.0]]), 2)) | [[0, 2]]; t.transpose(1, 2) | t.transpose(0, 2, 1); torch.nn.one_hot(n, num_classes=4) | np.eye(4)[n]
torch.diag_embed(p) | np.stack([np.diag(p[0]), np.diag(p[1])]); torch.histc(a, bins=3, min=-1, max=2) | np.histogram(a, 3, (-1, 2))[0] + 0.0; torch.histc(a, 4) | np.histogram(a, 4)[0] + 0.0; torch.special.expit(a) | 1 / (1 + np.exp(-a)); a.type(torch.int32) | a.astype(int); a.unfold(0, 2, 2) | np.stack([a[:2], a[2:4]]); t.unfold(1, 2, 1)[1, 0] | t[1, 0:2].T
torch.split(a, 2, dim=0)[2] | a[4:]; torch.split(p, [1, 2], dim=1)[1] | p[:, 1:]; torch.FloatTensor([1.0]) + 0.5 | [1.5]; torch.nn.mse_loss(a, b) | np.mean((a - b) ** 2); torch.nn.l1_loss(a, b, reduction="sum") | np.abs(a - b).sum(); torch.nn.nll_loss(p, n[:1] * [1, 0] - 1) | -(p[0, 2] + p[1, -1]) / 2
torch.nn.kl_div(p, np.abs(p), reduction="batchmean") | (np.abs(p) * (np.log(np.abs(p)) - p)).sum() / 2; torch.nn.normalize(p) | p / np.linalg.norm(p, axis=1, keepdims=True); torch.nn.cosine_similarity(p, q + 0.0)[0] | p[0] @ q[0] / np.linalg.norm(p[0]) / np.linalg.norm(q[0] + 0.0)
torch.nn.pad(p, (1, 0, 0, 2), value=7.0) | np.pad(p, ((0, 2), (1, 0)), constant_values=7.0); torch.nn.pad(t, (1, 1), mode="replicate") | np.pad(t, ((0, 0), (0, 0), (1, 1)), mode="edge"); torch.nn.conv1d(t[:, :, :3], t[:1, :, :2], stride=1)[0, 0, 0] | (t[0, :, :2] * t[0, :, :2]).sum(); torch.nn.max_pool2d(t[None], 2)[0, 1, 0] | [17.0, 19.0]
torch.nn.avg_pool2d(t[None], (1, 2))[0, 0, 0] | [0.5, 2.5]; torch.nn.adaptive_avg_pool2d(t[None], (1, 2))[0, 0] | [[4.5, 6.5]]; torch.nn.scaled_dot_product_attention(t, t * 0, t)[0, 0] | t[0].mean(0)
torch.max(p, dim=1).values | p.max(1); torch.max(p, dim=1, keepdim=True)[1] | p.argmax(1)[:, None]; p.min(dim=0)[0] | p.min(0); torch.sort(p, dim=1)[1] | p.argsort(1); p.sort(dim=0, descending=True).values | -np.sort(-p, 0); p.size() | (2, 3); p.size(-1) | 3; p.size | 6
torch.nn.functional.relu(p) | np.maximum(p, 0); torch.nn.functional.linear(p, q + 0.0, b[:2]) | p @ q.T + b[:2]; torch.nn.functional.cross_entropy(p, n[1:3]) | np.log(np.exp(p).sum(1)).mean() - (p[0, 0] + p[1, 2]) / 2; torch.nn.functional.embedding(n, t[0].T) | t[0].T[n]
torch.nn.functional.cross_entropy(p, np.asarray([1, -100])) | np.log(np.exp(p[0]).sum()) - p[0, 1]; torch.nn.functional.cross_entropy(p, np.full((2, 3), 1 / 3)) | (np.log(np.exp(p).sum(1)) - p.mean(1)).mean(); torch.nn.functional.one_hot(n) | np.eye(4)[n]; torch.nn.functional.dropout(p, 0.9, training=False) | p
torch.nn.functional.softmax(p, dim=1) | np.exp(p) / np.exp(p).sum(1, keepdims=True); torch.nn.functional.softplus(p, beta=2) | np.log1p(np.exp(2 * p)) / 2; torch.nn.functional.relu6(p * 9) | np.clip(p * 9, 0, 6); torch.nn.functional.layer_norm(p, (3,), eps=0.0) | (p - p.mean(1, keepdims=True)) / p.std(1, keepdims=True)
torch.nn.functional.group_norm(p[:, :, None], 1, eps=0.0)[:, :, 0] | (p - p.mean(1, keepdims=True)) / p.std(1, keepdims=True); torch.nn.functional.batch_norm(p, None, None, training=True, eps=0.0)[0] | np.sign(p[0] - p[1]); torch.nn.functional.rms_norm(p, (3,), eps=0.0) | p / np.sqrt((p * p).mean(1, keepdims=True))
torch.nn.functional.binary_cross_entropy_with_logits(a, f + 0.0, pos_weight=2.0) | ((1 - f) * np.log1p(np.exp(a)) + f * 2 * np.log1p(np.exp(-a))).mean(); torch.nn.functional.binary_cross_entropy(b[4:], f[4:] + 0.0) | -np.log(0.25); torch.nn.functional.huber_loss(a, b, delta=2.0, reduction="sum") | 0.5 * 1.5 ** 2 + 2 * 1.25 + 2 * 3 + 2 + 0.5
torch.nn.functional.smooth_l1_loss(a[:1], b[:1]) | 1.0; torch.nn.functional.interpolate(t[None], scale_factor=(1, 2)) | t[None].repeat(2, 3); torch.nn.functional.max_pool1d(t, 2) | t[..., 1::2]; torch.nn.functional.leaky_relu(a, negative_slope=0.5) | np.where(a < 0, a / 2, a)
torch.nn.functional.conv_transpose1d(t[:1, :, :2], t[:1, :, :1].transpose(1, 0, 2))[0, 0] | t[0, :, 0] @ t[0, :, :2]; torch.nn.functional.gelu(a, approximate="tanh").shape | (5,); torch.nn.functional.hardtanh(a) | np.clip(a, -1, 1); torch.nn.functional.relu(torch.clone(a), inplace=True) | np.maximum(a, 0); torch.nn.functional.mse_loss(a, b) | np.mean((a - b) ** 2)
torch.cummax(p, dim=1).values | np.maximum.accumulate(p, axis=1); torch.cummax(n, 0)[1] | [0, 0, 0, 3, 3]; p.cummin(dim=0)[0] | np.minimum.accumulate(p); torch.cummin(h, 0)[0] | [1.0] + [float("nan")] * 4; p.split(1, dim=0)[1] | p[1:]; p.split([1, 2], 1)[1] | p[:, 1:]; p.scatter(1, torch.tensor([[0], [2]]), 9.0)[1, 2] | 9.0
torch.scatter_add(p, 0, torch.zeros(2, 3).long(), torch.ones(2, 3))[0] | p[0] + 2; n.scatter_add(0, torch.tensor([1, 1]), torch.tensor([4, 5, 6])) | [3, 9, 2, 3, 1]; torch.zeros(3).index_add(0, torch.tensor([0, 2, 2]), torch.tensor([1.0, 2.0, 3.0]), alpha=2) | [2.0, 0, 10]; p.stride(1) | 1; p.element_size() | 8; t.unflatten(2, (2, -1)) | t.reshape(2, 3, 2, 2)
torch.block_diag(p, [[1.0]]) | np.block([[p, np.zeros((2, 1))], [np.zeros((1, 3)), np.ones((1, 1))]]); torch.combinations(n[:3], 2, True) | [[3, 3], [3, 0], [3, 2], [0, 0], [0, 2], [2, 2]]; p.tile(2, 1) | np.tile(p, (2, 1)); p.where(p > 0, 0.0) | np.where(p > 0, p, 0); s.inverse().det() | 0.1; p.hsplit(3)[1] | p[:, 1:2]; n.short() | n; a.histc(4) | np.histogram(a, 4)[0] + 0.0
torch.nn.functional.softmin(p, dim=1).sum(1) | [1.0, 1.0]; torch.nn.functional.glu(t) | t[..., :2] / (1 + np.exp(-t[..., 2:])); torch.nn.functional.prelu(p, [0.5, 1.0, 0.25]) | np.where(p < 0, p * [0.5, 1, 0.25], p); torch.nn.functional.threshold(p, 0.3, -1.0) | np.where(p > 0.3, p, -1); torch.nn.functional.pairwise_distance(p, q * 1.0, eps=0.0) | np.linalg.norm(p - q, axis=1)
torch.roll(a, shifts=2) | np.roll(a, 2); h.nan_to_num(7.0, posinf=1.0) | np.nan_to_num(h, nan=7.0, posinf=1.0); p.sort(descending=True)[0] | -np.sort(-p); torch.nn.functional.unfold(t[None], (2, 2), padding=(1, 0), stride=2)[0, 3] | [1.0, 3, 9, 11]; torch.zeros(2, requires_grad=False) | [0.0, 0]; torch.tensor([1.0], requires_grad=False) | [1.0]
torch.cuda.is_available() == (torch.cuda.device_count() > 0) | True; a.is_cuda == (a.device.type == "cuda") | True; a.device.name.startswith(a.device.type) | True
isinstance(a, torch.Tensor) | True; torch.float.name | "float32"; torch.long.name | "int64"; torch.double.name | "float64"; torch.isclose(a, a) | [True] * 5; torch.bincount(n) | [1, 1, 1, 2]; torch.erf(a[:0]).shape | (0,); a.matmul(b) | a @ b; torch.special if False else 1 | 1; a.tile(2) | np.tile(a, 2); a.tolist() | a.tolist()
"""


def statements(text):
    return [one.strip() for line in text.strip().splitlines() for one in line.split("; ")]


def names(module):
    found = {"np": module, "torch": module, "numpy": np}
    exec(SETUP, found)
    return found


@unittest.skipIf(NARROW, "each op takes a compilation")
class Statements(Case):
    def setUp(self):
        super().setUp()
        cp.set_default_dtype(cp.float64)
        self.addCleanup(cp._dtypes.set_setting, "COMPUTE_FLOAT", None)

    def check(self, statement, actual, expected):
        if isinstance(expected, (tuple, list)) and isinstance(actual, (tuple, list)):
            self.assertEqual(len(actual), len(expected), statement)
            for one, other in zip(actual, expected):
                self.check(statement, one, other)
        elif isinstance(expected, (np.ndarray, np.generic, int, float, complex)) or isinstance(actual, cp.Array):
            got, expected = np.asarray(actual), np.asarray(expected)
            self.assertEqual(got.shape, expected.shape, statement)
            if expected.dtype.kind != "f" or got.dtype.kind != "i":
                self.assertEqual(got.dtype.kind, expected.dtype.kind, statement)
            np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-9, err_msg=statement)
        else:
            self.assertEqual(actual, expected, statement)

    def test_numpy(self):
        listed = statements(NUMPY)
        self.assertGreater(len(listed), 400)
        failed = []
        for statement in listed:
            with np.errstate(all="ignore"):
                expected = eval(statement, names(np))
            try:
                self.check(statement, eval(statement, names(cp)), expected)
            except (Exception, AssertionError) as error:  # pylint: disable=broad-except
                failed.append(f"{statement}: {type(error).__name__}: {error}")
        self.assertEqual(failed, [])

    def test_pytorch(self):
        listed = statements(TORCH)
        self.assertGreater(len(listed), 120)
        failed = []
        for statement in listed:
            code, _, value = statement.partition(" | ")
            expected = eval(value, names(np))
            try:
                self.check(statement, eval(code, names(cp)), expected)
            except (Exception, AssertionError) as error:  # pylint: disable=broad-except
                failed.append(f"{statement}: {type(error).__name__}: {error}")
        self.assertEqual(failed, [])

    def test_in_place(self):
        for statement, name in {
                "np.add(a, b, out=a)": "a", "np.exp(a, out=b)": "b", "np.sum(p, axis=1, out=b[:2])": "b", "np.cumsum(a, out=b)": "b", "np.matmul(s, s, out=p[:, :2])": "p", "np.clip(a, 0, 1, out=a)": "a",
                "np.put(a, [0, -1], [7.0, 8.0])": "a", "np.putmask(a, a < 0, b)": "a", "np.copyto(a, b)": "a", "np.copyto(a, 3.0)": "a", "np.fill_diagonal(s, 9.0)": "s", "a.fill(2.0)": "a", "a.sort()": "a",
                "p.sort(axis=0)": "p", "np.put_along_axis(p, np.asarray([[0], [1]]), 5.0, 1)": "p", "np.nan_to_num(h, copy=False)": "h", "np.round(a, 1, out=b)": "b", "np.concatenate([a[:2], a[:3]], out=b)": "b",
                "np.fill_diagonal(t[:, :2, :2], 9.0)": "t", "np.fill_diagonal(p.T, 5.0)": "p", "np.fill_diagonal(q, 5)": "q", "setattr(c, 'real', 5.0)": "c", "setattr(c, 'imag', [1.0, float('inf'), 3.0])": "c",
                "np.median(p, axis=0, out=a[:3])": "a", "np.quantile(p, 0.25, axis=0, out=a[:3])": "a", "np.sum(p, axis=0, initial=1.0, out=a[:3])": "a", "a.__iadd__([1, 2, 3, 4, 5])": "a", "a.__setitem__(slice(0, 2), [5.0, 6.0])": "a", "np.mean(p, axis=0, out=a[:3])": "a"}.items():
            ours, theirs = names(cp), names(np)
            eval(statement, ours), eval(statement, theirs)
            self.check(statement, ours[name], theirs[name])
        self.assertEqual(cp.in1d([[1, 2], [3, 4]], [2, 3]).tolist(), [False, True, True, False])  # which NumPy 2.4 has no more
        x = cp.asarray([1.0, 2.0])
        self.assertIs(x.add_(1).mul_(2).sub_([1, 1]).div_(2), x)
        self.assertEqual(x.tolist(), [1.5, 2.5])
        self.assertEqual(x.masked_fill_(x > 2, 0).clamp_(0, 1).tolist(), [1, 0])
        self.assertEqual(x.copy_([3, 4]).tolist(), [3, 4])
        self.assertEqual((x.fill_(7).tolist(), x.zero_().tolist()), ([7, 7], [0, 0]))
        out = cp.zeros(2)
        self.assertIs(cp.add(x, 1, out=out), out)
        self.assertIs(cp.sum(cp.ones((2, 2)), axis=0, out=out), out)
        m, one = cp.zeros((2, 3)), cp.asarray([[0], [2]])
        self.assertEqual(m.scatter_(1, one, 1.0).scatter_add_(1, one, cp.ones((2, 3))).tolist(), [[2, 0, 0], [0, 0, 2]])
        self.assertEqual(m.index_add_(1, cp.asarray([1, 1]), cp.ones((2, 2)), alpha=3).tolist(), [[2, 6, 0], [0, 6, 2]])
        self.assertEqual((m.index_fill(0, [1], 4).tolist(), m.index_fill_(1, 0, 7).tolist()), ([[2, 6, 0], [4, 4, 4]], [[7, 6, 0], [7, 6, 2]]))
        with self.assertRaisesRegex(TypeError, "put: list is not a compute.Array"):
            cp.put([1], 0, 1)

    def test_random_numbers(self):
        generator = random.default_rng(3)
        for call, shape, bounds in (
                (lambda: random.rand(2, 3), (2, 3), (0, 1)), (lambda: random.randn(4), (4,), (-9, 9)), (lambda: random.randint(2, 5, size=(3, 2)), (3, 2), (2, 4)), (lambda: random.randint(3, size=2), (2,), (0, 2)),
                (lambda: random.random((2, 2)), (2, 2), (0, 1)), (lambda: random.random(), (), (0, 1)), (lambda: random.exponential(2.0, 3), (3,), (0, 99)), (lambda: random.exponential([1, 2]), (2,), (0, 99)), (lambda: generator.exponential(size=2), (2,), (0, 99)), (lambda: random.lognormal(0, 0.1, size=2), (2,), (0.3, 3)),
                (lambda: generator.lognormal(0, 0.1, 3), (3,), (0.3, 3)), (lambda: random.standard_normal(3), (3,), (-9, 9)), (lambda: random.uniform(-2, -1, size=3), (3,), (-2, -1)),
                (lambda: random.uniform(low=5, high=6, size=(1, 2)), (1, 2), (5, 6)), (lambda: random.uniform(size=3), (3,), (0, 1)), (lambda: random.uniform(5, 6, (2, 2)), (2, 2), (5, 6)), (lambda: random.normal(9, 0.01, (2,)), (2,), (8, 10)), (lambda: random.integers(3, 5, [4]), (4,), (3, 4)), (lambda: random.normal(100, 1, size=5), (5,), (80, 120)),
                (lambda: random.normal(loc=-50, scale=0.5, size=5), (5,), (-60, -40)), (lambda: random.integers(10, size=4), (4,), (0, 9)), (lambda: random.integers(-5, 0, size=4), (4,), (-5, -1)),
                (lambda: random.integers(low=7, high=8, size=2), (2,), (7, 7)), (lambda: random.choice(5, size=3), (3,), (0, 4)), (lambda: random.choice([10, 20], 4), (4,), (10, 20)), (lambda: random.permutation([4, 5, 6]), (3,), (4, 6)),
                (lambda: generator.random(3), (3,), (0, 1)), (lambda: generator.normal(10, 0.1, 4), (4,), (8, 12)), (lambda: generator.uniform(3, 4, (2, 2)), (2, 2), (3, 4)), (lambda: generator.integers(3), (), (0, 2)),
                (lambda: generator.integers(1, 3, 5, endpoint=True), (5,), (1, 3)), (lambda: generator.choice(4, 2, replace=False), (2,), (0, 3)), (lambda: generator.permutation(6), (6,), (0, 5)), (lambda: generator.standard_normal((2, 1)), (2, 1), (-9, 9))):
            found = np.asarray(call())
            self.assertEqual(found.shape, shape)
            self.assertTrue((found >= bounds[0]).all() and (found <= bounds[1]).all(), (found, bounds))
        self.assertEqual(random.default_rng(5).random(3).tolist(), random.default_rng(5).random(3).tolist())
        for wrong in (lambda: random.uniform(0, 1, wide=3), lambda: random.normal(low=3), lambda: cp.sum(cp.ones(2), dimension=0), lambda: cp.sum(cp.ones(2), axis=0, dim=0)):
            with self.assertRaises(TypeError):
                wrong()

    def test_masked_halves(self):
        x = cp.full((70000,), 3.0, dtype=cp.float16)
        self.assert_same(cp.mean(x, where=x > 0), np.float16(3))
        self.assert_same(cp.var(x, where=x > 0), np.float16(0))

    def test_extremes_of_integers(self):
        for dtype in INTEGERS:
            limits = np.iinfo(dtype)
            x = np.array([0, 1, 6, limits.max, limits.min, limits.min], dtype)
            y = np.array([3, 0, 4, 2, 6, limits.max], dtype)
            for name in ("fmin", "fmax", "gcd"):
                self.assert_same(getattr(cp, name)(self.device_array(x), self.device_array(y)), getattr(np, name)(x, y), note=f"{name} {dtype}")
            self.assert_same(cp.gcd(self.device_array(x), 6), np.gcd(x, np.array(6, dtype)))
            self.assert_same(cp.lcm(6, self.device_array(x[:3])), np.lcm(x[:3], np.array(6, dtype)))
        for function in (cp.gcd, cp.lcm):
            for wrong in (2.5, [1.0, 2.0], cp.asarray([True, False]), [1j]):
                for arguments in ((wrong, 4), (4, wrong), (cp.asarray([4, 6]), wrong)):
                    with self.assertRaisesRegex(TypeError, "not an integer dtype"):
                        function(*arguments)

    def test_powers_of_two(self):
        places = np.array([-5000, -1100, -150, -30, 0, 14, 40, 149, 270, 2097, 5000], np.int32)
        for dtype in FLOATS + ("float16",):
            x = np.array([[0], [-1.5], [np.inf], [np.finfo(dtype).max], [np.finfo(dtype).tiny]], dtype)
            with np.errstate(over="ignore"):
                self.assert_same(cp.ldexp(self.device_array(x), self.device_array(places)), np.ldexp(x, places), note=dtype)
        x = cp.asarray([0.5, -3.0, np.inf], dtype=cp.float16)
        self.assert_same(cp.logaddexp2(x, 1.5), np.logaddexp2(np.asarray(x, np.float64), 1.5).astype(np.float16))
        for pair in ([1.0, 1.0], [np.inf, np.inf], [-2.0, -2.0]):
            found = grad.gradients(lambda x: cp.logaddexp2(x[0], x[1]))(cp.asarray(pair, dtype=cp.float64))
            self.assert_same(found, np.float64([0.5, 0.5]))

    def test_halves_are_rounded_once(self):
        x, y, z = ((self.random.normal(size=200) * 3).astype(np.float16) for _ in range(3))
        a, b, c = map(self.device_array, (x, y, z))
        wide = [values.astype(np.float64) for values in (x, y, z)]
        for found, expected in ((cp.logaddexp2(a, b), np.logaddexp2(*wide[:2])), (cp.lerp(a, b, 0.3), wide[0] + 0.3 * (wide[1] - wide[0])), (cp.addcmul(a, b, c, value=0.5), wide[0] + wide[1] * wide[2] * 0.5),
                                (cp.addcdiv(a, b, c), wide[0] + wide[1] / wide[2]), (cp.median(a), np.median(wide[0])), (cp.nanquantile(a, 0.3), np.quantile(wide[0], 0.3))):
            self.assertIs(found.dtype, cp.float16)
            np.testing.assert_allclose(np.asarray(found, np.float64), expected, rtol=2.0 ** -11 * 1.02, atol=1e-5)

    def test_parts_of_flags(self):
        self.assert_same(cp.isreal([True, False]), np.array([True, True]))
        self.assert_same(cp.iscomplex(cp.asarray([True, False])), np.array([False, False]))

    def test_order_of_arguments(self):
        for wrong in (lambda: random.uniform(-1, 0, 100), lambda: random.normal(0.5, 2.0, 10), lambda: random.normal(0, 1, 5)):
            with self.assertRaisesRegex(ValueError, "for NumPy's order name it, .*size="):
                wrong()

    def test_files(self):
        x, y = cp.asarray([[1.0, 2.0], [3.0, 4.0]]), cp.asarray([5, 6])
        with tempfile.TemporaryDirectory() as folder:
            for save, name in ((cp.savez, "a.npz"), (cp.savez_compressed, "b.npz"), (cp.savez, "c")):
                path = os.path.join(folder, name)
                save(path, x, second=y)
                path = path if path.endswith(".npz") else path + ".npz"
                with np.load(path) as theirs:
                    self.assertEqual({key: value.tolist() for key, value in theirs.items()}, {"arr_0": x.tolist(), "second": [5, 6]})
                with cp.load(path) as ours:
                    self.assertEqual(ours.files, ["arr_0", "second"])
                self.assertEqual({key: value.tolist() for key, value in ours.items()}, {"arr_0": x.tolist(), "second": [5, 6]})
            np.savez(os.path.join(folder, "d.npz"), m=np.arange(6).reshape(2, 3).T)
            self.assert_same(cp.load(os.path.join(folder, "d.npz"))["m"], np.arange(6).reshape(2, 3).T)
            with open(os.path.join(folder, "d.npz"), "rb") as file:
                data = file.read()
            for at in range(0, len(data), 7):
                try:
                    cp.load(io.BytesIO(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1:]))
                except (ValueError, TypeError):
                    pass
            cp.savetxt(os.path.join(folder, "e.txt"), x, fmt="%.3f", delimiter=",", header="two columns")
            self.assert_same(cp.loadtxt(os.path.join(folder, "e.txt"), delimiter=","), np.loadtxt(os.path.join(folder, "e.txt"), delimiter=","))
        file = io.BytesIO()
        cp.save(file, x)
        cp.save(file, y)
        cp.save(file, [7, 8])
        file.seek(0)
        self.assertEqual([cp.load(file).tolist() for _ in range(3)], [x.tolist(), [5, 6], [7, 8]])
        file.seek(0)
        self.assertEqual(np.load(file).tolist(), x.tolist())
        file = io.BytesIO()
        cp.save(file, {"x": x})
        file.seek(0)
        self.assertEqual(cp.load(file)["x"].tolist(), x.tolist())
        with self.assertRaisesRegex(TypeError, "^save: the first argument is Array; expected a path"):
            cp.save(x, 3)
        with tempfile.TemporaryDirectory() as folder:
            cp.save(x, folder + "/x.npy")  # PyTorch's order
            self.assertEqual(cp.load(folder + "/x.npy").tolist(), x.tolist())
        with self.assertRaisesRegex(ValueError, "^loadtxt: line 2 has 1 columns"):
            cp.loadtxt(["1 2", "3"])

    def test_printing(self):
        x = cp.asarray([1.23456789, 1e-10])
        with cp.printoptions(precision=3, suppress=True):
            self.assertEqual(str(x), "[1.235 0.   ]")
        before = cp.get_printoptions()
        cp.set_printoptions(threshold=4, edgeitems=1)
        self.assertEqual(str(cp.arange(9)), "[0 ... 8]")
        cp.set_printoptions(**before)
        self.assertEqual(cp.array2string(cp.asarray([0.123456]), precision=2), "[0.12]")
        self.assertEqual(cp.size(cp.zeros((2, 3, 4)), (0, 2)), 8)  # which NumPy 2.4 has


class Names(Case):
    def test_hints(self):
        self.assertGreater(sum(map(len, _names._HINTS.values())), 100)
        for owner, module in {"compute": cp, "compute.linalg": linalg, "compute.random": random, "compute.nn": nn, "compute.Array": cp.ones(2)}.items():
            for name in _names._HINTS[owner]:
                with self.assertRaisesRegex(AttributeError, f"no attribute '{name}'[:;] "):
                    getattr(module, name)
                self.assertNotIn(name, dir(module))
                self.assertFalse(hasattr(module, name))
            with self.assertRaisesRegex(AttributeError, "no attribute 'nosuch'$"):
                module.nosuch
        for call, message in ((lambda: cp.min(cp.ones(2), cp.ones(2), keepdims=True, where=True), "minimum"),
                              (lambda: cp.errstate(all="raise"), "can only be ignored"), (lambda: cp.max(cp.ones(2), where=[True, False]), "where needs initial"),
                              (lambda: cp.nan_to_num(cp.ones(2), 0.0), "nan=0.0"), (lambda: cp.exp(cp.ones(2), where=[True, False]), "where needs out"), (lambda: cp.exp(cp.ones(2), cp.ones(2), 3), "exp takes 1 argument, not 3"),
                              (lambda: cp.array([1], order="F"), "row-major"), (lambda: cp.asarray(["a"]), "arrays hold numbers"), (lambda: cp.dtype("S10"), "expected bool"), (lambda: setattr(cp.ones(2), "imag", 1), "imaginary parts"),
                              (lambda: cp.sum(cp.ones(2), dimension=0), "expected axis, dtype, out, keepdims"), (lambda: cp.load("x.npy", mmap_mode="r"), "numpy.load"),
                              (lambda: cp.pad(cp.ones(2), 1, "reflect", reflect_type="odd"), "expected mode"), (lambda: cp.array([1], ndmax=2), "expected dtype"), (lambda: cp.set_printoptions(sign="+"), "expected precision"),
                              (lambda: cp.loadtxt(["1"], quotechar="'"), "expected dtype"), (lambda: cp.Array([1.0]), "use compute.asarray"), (lambda: cp.add.at(cp.ones(2), [True, False], 1), "use nonzero"), (lambda: cp.add.reduceat(cp.ones(2), [0]), "segment_reduce"), (lambda: cp.hypot.reduce(cp.ones(2)), "use a loop"),
                              (lambda: cp.randn(2, requires_grad=True), "use compute.grad"), (lambda: cp.arange(3, requires_grad=True), "use compute.grad")):
            with self.assertRaisesRegex((TypeError, NotImplementedError), message):
                call()

    def test_guide(self):
        text = GUIDE.read_text(encoding="utf-8")
        same = text.partition("## The same names")[2].partition("These differ")[0]
        listed = set(re.findall(r"`([\w.]+)`", same))
        self.assertGreater(len(listed), 290)
        x = cp.ones((2, 2))
        for name in listed:
            value = x if name.startswith("x.") else cp
            for part in name.removeprefix("x.").split("."):
                self.assertTrue(hasattr(value, part), name)
                value = getattr(value, part)
        offered = set(_names.COMPUTE) | {f"linalg.{name}" for name in _names.LINALG} | {f"nn.{name}" for name in _names.NN} | {f"random.{name}" for name in _names.RANDOM}
        self.assertEqual(offered - listed, set(), "names that the guide does not list")
        table = text.partition("## Other names")[2]
        for name in re.findall(r"^\| `(?:x\.)?(\w+)", table, re.MULTILINE):
            self.assertTrue(any(name in hints for hints in _names._HINTS.values()) or any(hasattr(owner, name) for owner in (cp, nn, x)), name)

    def test_what_modules_offer(self):
        for module in (cp, linalg, nn, random, grad):
            found = [name for name in dir(module) if inspect.ismodule(getattr(module, name))]
            self.assertEqual([name for name in found if not getattr(module, name).__name__.startswith("compute")], [], module.__name__)
            self.assertFalse({"annotations", "math", "operator", "builtins", "threading"} & set(dir(module)))
        self.assertIn("concatenate", dir(cp))
        imported = {}
        exec("from compute import *", imported)
        self.assertEqual({"int", "float", "sum", "bool", "divmod"} & set(imported), set())
        self.assertLess({"concatenate", "asarray", "linalg", "float32", "Array"}, set(imported))
        self.assertIn("cumsum", dir(cp.ones(1)))

    @unittest.skipIf(NARROW, "the device is part of the text of an array")
    def test_examples(self):
        """The examples of docstrings. Devices may round the last digit otherwise."""
        class Near(doctest.OutputChecker):
            def check_output(self, want, got, optionflags):
                number = r"-?\d+\.\d+"
                return super().check_output(want, got, optionflags) or (
                    re.sub(r"\s+", "", re.sub(number, "", want)) == re.sub(r"\s+", "", re.sub(number, "", got)) and
                    np.allclose(*(list(map(float, re.findall(number, text))) for text in (want, got)), rtol=1e-6, atol=0))

        modules = {name: module for name, module in sys.modules.items() if name.startswith("compute.") and hasattr(module, "__file__")}
        documented = [(name, row) for name, row in cp._ops.ROWS.items()]
        for module in modules.values():
            documented += [(name, value) for name, value in vars(module).items()
                           if (inspect.isfunction(value) or inspect.isclass(value)) and value.__module__ == module.__name__]
        count = 0
        for name, value in documented:
            for example in doctest.DocTestFinder().find(value, name, globs={"compute": cp, "io": io}):
                out = []
                result = doctest.DocTestRunner(Near()).run(example, out=out.append)
                self.assertEqual(result.failed, 0, "".join(out))
                count += result.attempted
                own = getattr(value, "__name__", name) if example.name == name else example.name.rpartition(".")[2]
                if example.examples and not own.startswith("_"):
                    self.assertIn(own, "".join(one.source for one in example.examples), "the example is another function's")
        self.assertGreater(count, 380)

    def test_dtypes(self):
        for dtype in cp._dtypes.ALL:
            if dtype not in (cp.bfloat16, *cp._dtypes.FLOAT8):
                theirs = np.dtype(dtype.name)
                self.assertEqual((dtype.kind, dtype.itemsize, dtype.name), (theirs.kind, theirs.itemsize, theirs.name))
            self.assertTrue(dtype == dtype.name and dtype.name == dtype and not dtype != dtype.name and hash(dtype) == hash(dtype.name))
            self.assertEqual(dtype(1).dtype, dtype)
        self.assertTrue(cp.int64 == int and cp.bool == bool and cp.get_default_dtype() == float and cp.float64 == np.float64 and cp.int32 != int and cp.int8 != dict)
        self.assertFalse(cp.float32 == "float64" or cp.float32 == 3 or cp.float32 == cp.float64)
        self.assertEqual(cp.bfloat16.kind, "f")
        self.assertEqual({"float32": 1}[cp.float32], 1)

    def test_memory_of_arrays(self):
        x = cp.asarray(np.arange(6.0, dtype=np.float32).reshape(2, 3), device="cpu", copy=True)
        for view in (x, x[:, ::2], x.T, x[0, 1], x[:0]):
            interface = view.__array_interface__

            class Other:
                __array_interface__ = interface

            found = np.asarray(Other())
            np.testing.assert_array_equal(found, np.asarray(view))
        found = np.asarray(type("Other", (), {"__array_interface__": x.__array_interface__})())
        x[0, 0] = 9
        self.assertEqual(found[0, 0], 9)
        del view
        before = len(cp._array._exposed)
        del x
        self.assertLess(len(cp._array._exposed), before)
        with self.assertRaises(AttributeError):
            cp.ones(1, dtype=cp.bfloat16, device="cpu").__array_interface__

    def test_import_time(self):
        """Aliases cost an import nothing but their table: no other module of Python is imported for them."""
        code = "import sys; import compute; print([name for name in ('inspect', 'zipfile', 'itertools_', 'numpy', 'secrets', 'doctest') if name in sys.modules])"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "COMPUTE_LOG": "off"})
        self.assertEqual(found.stdout.strip(), "[]")
