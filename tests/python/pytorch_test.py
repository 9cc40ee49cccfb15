# SPDX-License-Identifier: Apache-2.0
"""Names that PyTorch alone has, as statements with their values in NumPy; see names_test.py."""
import math
import unittest

import compute as cp
import numpy as np

import names_test
from case import NARROW, Case

F = cp.nn.functional
TORCH = """
torch.complex(a, b) | a + 1j * b; torch.polar(b, a) | b * np.exp(1j * a); torch.view_as_real(c) | np.stack([c.real, c.imag], -1); torch.view_as_complex(p[:, :2]) | p[:, 0] + 1j * p[:, 1]; torch.adjoint(p * 1j) | -1j * p.T; c[None].mH | c.conj()[:, None]
torch.std_mean(p, dim=1)[0] | p.std(1, ddof=1); torch.std_mean(p, dim=1, unbiased=False)[0] | p.std(1); torch.var_mean(p)[0] | p.var(ddof=1); torch.var_mean(p, dim=(0, 1), keepdim=True, correction=0)[1] | p.mean(keepdims=True); p.std(dim=1) | p.std(1, ddof=1); torch.var(p, dim=0, unbiased=False) | p.var(0); p.std(dim=[0, 1]) | p.std(ddof=1)
torch.logcumsumexp(p, dim=1) | np.log(np.cumsum(np.exp(p), 1)); torch.logcumsumexp(p * 1000, 1) | np.logaddexp.accumulate(p * 1000, axis=1); torch.mode(n)[0] | 3; n.mode().indices | 3; torch.mode(q, dim=0, keepdim=True)[0] | q.min(0, keepdims=True); torch.msort(q) | np.sort(q, 0)
torch.unique_consecutive(n) | n; torch.unique_consecutive(np.repeat(n, 2), return_counts=True)[1] | [2] * 5; torch.unique_consecutive([1, 1, 2], return_inverse=True)[1] | [0, 0, 1]; torch.unique_consecutive(np.repeat(q, 2, 0), dim=0) | q; torch.median(p, dim=1).values | np.median(p, 1); p.median(dim=0)[1] | p.argmin(0); torch.median(q, dim=1, keepdim=True)[0] | [[2], [8]]
torch.scatter_reduce(a, 0, n % 2, b, "sum")[0] | 0.5 + 1.0 - 1.0; torch.scatter_reduce(a, 0, n % 2, b, "amax")[1] | 4.0; a.scatter_reduce(0, n % 2, b, reduce="mean", include_self=False)[1] | (2 + 4 + 0.25) / 3; torch.scatter_reduce(n, 0, n, n, "prod", include_self=False)[3] | 9; torch.scatter_reduce(n, 0, n, n, "amin", include_self=False)[:2] | [0, 1]
torch.index_copy(p, 1, torch.tensor([2, 0]), s) | np.stack([s[:, 1], p[:, 1], s[:, 0]], 1); torch.index_fill(p, 0, torch.tensor([1]), 7.0) | np.stack([p[0], p[0] * 0 + 7]); a.index_put((torch.tensor([0, 0]),), torch.tensor([1.0, 2.0]), accumulate=True)[0] | 3.5; p.index_put((torch.tensor([1]), torch.tensor([-1])), torch.tensor([9.0]))[1, 2] | 9.0
torch.masked_scatter(a, a < 0, b) | np.asarray([0.5, 2.0, 3.0, 2.0, 1.0]); torch.select(p, 1, 2) | p[:, 2]; p.select(0, -1) | p[1]; torch.nonzero(q > 6, as_tuple=False) | np.argwhere(q > 6); torch.tril_indices(3, 2, offset=-1) | np.stack(np.tril_indices(3, -1, 2)); torch.triu_indices(row=2, col=3) | np.stack(np.triu_indices(2, 0, 3))
torch.max(a, b) | np.maximum(a, b); torch.min(p, s[:, :1]) | np.minimum(p, s[:, :1]); a.max(b) | np.maximum(a, b); torch.searchsorted([1.0, 3.0], a, right=True) | np.searchsorted([1.0, 3.0], a, side="right"); p.squeeze(dim=0) | p; torch.squeeze(t[:, :1], dim=(0, 1)) | t[:, 0]; p.unsqueeze(dim=1) | p[:, None]; torch.unsqueeze(a, dim=-1) | a[:, None]
torch.addmv(a[:2], p, q[0] + 0.0, beta=2) | 2 * a[:2] + p @ q[0]; torch.addr(s, s[0], s[1], alpha=2) | s + 2 * np.outer(s[0], s[1]); torch.addbmm(s, t[:, :2, :3], t[:, :3, :2]) | s + (t[:, :2, :3] @ t[:, :3, :2]).sum(0); torch.addmm(a[:3], s, p) | a[:3] + s @ p; torch.chain_matmul(s, s, p) | s @ s @ p; torch.matrix_power(s, 3) | s @ s @ s
torch.dist(a, b) | np.linalg.norm(a - b); torch.dist(a, b, p=1) | np.abs(a - b).sum(); torch.pdist(p) | [np.linalg.norm(p[0] - p[1])]; torch.renorm(p, 2, 0, 3.0) | np.stack([p[0], p[1] * 3 / np.linalg.norm(p[1])]); torch.svd(s)[1] | np.linalg.svd(s)[1]; torch.logdet(s) | np.log(10.0); torch.slogdet(s)[1] | np.log(10.0); torch.pinverse(p) | np.linalg.pinv(p)
torch.cholesky_solve(s, [[2.0, 0], [1, 3]]) | np.linalg.solve([[4.0, 2], [2, 10]], s); torch.cholesky_inverse([[2.0, 1.0], [0, 3]], upper=True) | np.linalg.inv(np.asarray([[4.0, 2], [2, 10]])); torch.linalg.solve_triangular(s, s, upper=True) | np.linalg.solve(np.triu(s), s); torch.linalg.solve_triangular(s, p.T, upper=False, left=False) | p.T @ np.linalg.inv(np.tril(s))
torch.matrix_exp(s * 0) | np.eye(2); torch.linalg.vander(a) | np.vander(a, increasing=True); torch.vander(a, N=2) | np.vander(a, 2); torch.as_strided(a, (2, 2), (1, 2), 1) | [[-1.25, 2.0], [3.0, -0.75]]; torch.range(1, 2, 0.5) | [1.0, 1.5, 2]; torch.scalar_tensor(3) | 3.0; torch.t(p) | p.T; torch.diag_embed(a[:2], offset=1) | np.diag(a[:2], 1)
torch.hann_window(5) | np.hanning(6)[:5]; torch.hann_window(5, periodic=False) | np.hanning(5); torch.hamming_window(4) | np.hamming(5)[:4]; torch.blackman_window(4, False) | np.blackman(4); torch.bartlett_window(5) | np.bartlett(6)[:5]; torch.cumulative_trapezoid(p) | (np.cumsum((p[:, 1:] + p[:, :-1]) / 2, 1)); torch.cumulative_trapezoid(p, dx=2.0, dim=0) | p.sum(0)[None]
torch.logit([0.25, 0.5]) | np.log([1 / 3, 1.0]); torch.logit([0.0], eps=0.25) | np.log([1 / 3]); torch.rsub(a, 1, alpha=2) | 1 - 2 * a; torch.special.entr([0.0, 1.0, 0.5]) | [0, 0, 0.5 * np.log(2)]; torch.special.xlog1py([0.0, 2.0], [-1.0, 1.0]) | [0, 2 * np.log(2)]; torch.special.ndtr([0.0]) | [0.5]; torch.is_nonzero(a[0]) | True; torch.is_signed(n) | True; a.is_same_size(b) | True
p.repeat(1, 2) | np.tile(p, (1, 2)); a.repeat(2, 1, 1) | np.tile(a, (2, 1, 1)); a.repeat(2) | np.repeat(a, 2); t.sum_to_size(1, 4) | t.sum((0, 1))[None]; a.data | a; a.requires_grad | False; p.is_contiguous() | True; p.T.is_contiguous() | False; p.is_contiguous == 1 | True; a.pin_memory() | a; a.bernoulli(1.0) | [1.0] * 5
torch.Tensor([1, 2]) | [1.0, 2]; torch.Tensor(2, 3).shape | (2, 3); isinstance(a, torch.Tensor) | True; torch.Size([2, 3]) == p.shape | True; torch.FloatTensor(2, 3).shape | (2, 3); torch.zeros(size=(2,)) | [0.0, 0]; torch.ones(2, layout=None) | [1.0, 1]; torch.full(size=(2,), fill_value=3) | [3, 3]; torch.rand(size=(2, 3)).shape | (2, 3); a.new_zeros(size=(2,)) | [0.0, 0]
torch.transpose(t, dim0=0, dim1=2) | t.transpose(2, 1, 0); p.transpose(dim0=0, dim1=1) | p.T; p.transpose(dim0=0, dim1=-2) | p; t.permute(dims=(2, 0, 1)) | t.transpose(2, 0, 1); torch.permute(t, dims=(1, 0, 2)) | t.transpose(1, 0, 2); torch.swapdims(p, dim0=0, dim1=1) | p.T; torch.tile(a, dims=(2,)) | np.tile(a, 2); torch.rot90(p, 1, dims=(0, 1)) | np.rot90(p); a.add(other=b, alpha=2) | a + 2 * b; torch.pow(b, exponent=2) | b * b; torch.mul(input=a, other=b) | a * b
torch.scatter(p, 1, torch.tensor([[0], [2]]), torch.tensor([[7.0], [8.0]])) | [[7.0, -2, 0.5], [0.25, 4, 8]]; torch.scatter(p, dim=0, index=torch.tensor([[1, 1, 1]]), value=0.0)[1] | [0.0, 0, 0]; torch.einsum("ij,jk->ik", [s, p]) | s @ p; torch.logspace(0, 1, 2, device="cpu") | [1.0, 10]; torch.nn.functional.nll_loss(p, n[2:3] * [0, 1], weight=b[:3], reduction="sum") | -(2 * p[0, 0] - p[1, 2])
"""
FUNCTIONAL = """
F.celu(a, 2.0) | np.where(a > 0, a, 2 * np.expm1(a / 2)); F.hardshrink(a, 0.6) | np.where(np.abs(a) > 0.6, a, 0); F.softshrink(a) | np.sign(a) * np.maximum(np.abs(a) - 0.5, 0); F.tanhshrink(a) | a - np.tanh(a); F.rrelu(a) | np.where(a < 0, a * 11 / 48, a); F.gumbel_softmax(p, dim=1).sum(1) | [1.0, 1]; F.gumbel_softmax(p, hard=True).sum(1) | [1.0, 1]
F.cosine_embedding_loss(p, q + 0.0, [1, -1], reduction="none")[1] | max(p[1] @ q[1] / np.linalg.norm(p[1]) / np.linalg.norm(q[1] + 0.0), 0); F.margin_ranking_loss(a, b, f * 2.0 - 1, margin=0.5) | np.maximum(0.5 - (f * 2 - 1) * (a - b), 0).mean(); F.hinge_embedding_loss(a, f * 2 - 1) | np.where(f, a, np.maximum(1 - a, 0)).mean(); F.soft_margin_loss(a, f * 2.0 - 1) | np.log1p(np.exp(-(f * 2 - 1) * a)).mean()
F.multi_margin_loss(p, n[2:4] - 1) | np.mean([sum(max(0, 1 - p[i, y] + p[i, k]) for k in range(3) if k != y) / 3 for i, y in enumerate(n[2:4] - 1)]); F.multilabel_soft_margin_loss(p, q % 2 + 0.0) | -np.mean((q % 2) * -np.log1p(np.exp(-p)) + (1 - q % 2) * (-np.log1p(np.exp(p))))
F.triplet_margin_loss(p, p + 1, p * 2, eps=0.0, reduction="none") | np.maximum(math.sqrt(3) - np.linalg.norm(p, axis=1) + 1, 0); F.triplet_margin_with_distance_loss(p, p, p + 9, distance_function=lambda x, y: (x - y).sum(1)) | 28.0; F.gaussian_nll_loss(a, b, b * b, full=True) | (0.5 * (np.log(b * b) + (a - b) ** 2 / (b * b)) + 0.5 * np.log(2 * np.pi)).mean(); F.poisson_nll_loss(a, b) | (np.exp(a) - a * b).mean()
F.cross_entropy(p, n[2:4] - 1, weight=[1.0, 2.0, 0.5]) | (lambda l: -(2 * l[0, 1] + 0.5 * l[1, 2]) / 2.5)(p - np.log(np.exp(p).sum(1, keepdims=True))); F.cross_entropy(p, n[2:4] - 1, weight=[1.0, 2.0, 0.5], label_smoothing=0.3, reduction="sum") | (lambda l: -0.7 * (2 * l[0, 1] + 0.5 * l[1, 2]) - 0.1 * (l * [1, 2, 0.5]).sum())(p - np.log(np.exp(p).sum(1, keepdims=True)))
F.kl_div(p, p, log_target=True) | 0.0; F.instance_norm(t, eps=0.0) | (t - t.mean(2, keepdims=True)) / t.std(2, keepdims=True); F.local_response_norm(t, 3, alpha=3.0, beta=1.0, k=2.0)[:, 1] | t[:, 1] / (2 + (t ** 2).sum(1)); F.bilinear(p, p, t[:, :, :3]) | np.einsum("ni,kij,nj->nk", p, t[:, :, :3], p); F.dropout2d(t[None], 0.5, training=False) | t[None]; F.alpha_dropout(a) | a
F.adaptive_avg_pool1d(t, 3) | np.stack([t[..., :2].mean(-1), t[..., 1:3].mean(-1), t[..., 2:].mean(-1)], -1); F.adaptive_avg_pool2d(t, (None, 1))[..., 0] | t.mean(-1); F.adaptive_avg_pool1d([[1, 2, 4, 5]], 2) | [[1.5, 4.5]]; F.adaptive_max_pool2d(t, 2) | t[:, 1:][..., 1::2]; F.lp_pool1d(t, 2, 2) | np.sqrt(t[..., ::2] ** 2 + t[..., 1::2] ** 2); F.max_pool3d(t[None, None, :, :2], (2, 2, 2))[0, 0, 0] | [[17.0, 19.0]]; F.avg_pool2d(t[None], 2, padding=1, count_include_pad=False)[0, 0, 0] | [0.0, 1.5, 3.0]
F.interpolate(t, size=6) | t[..., [0, 0, 1, 2, 2, 3]]; F.interpolate(t, scale_factor=0.5, mode="linear") | (t[..., ::2] + t[..., 1::2]) / 2; F.interpolate(t, size=7, mode="linear", align_corners=True)[0, 0] | np.arange(7) / 2; F.interpolate(t[None], size=(3, 2), mode="area") | t[None].reshape(1, 2, 3, 2, 2).mean(-1); F.interpolate(t[None], scale_factor=2, mode="bilinear")[0, 0, 0] | [0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3.0]
F.interpolate(t * 0 + 2, size=9, mode="linear") | np.full((2, 3, 9), 2.0); F.interpolate((t * 0 + 2)[None], size=(5, 9), mode="bicubic") | np.full((1, 2, 5, 9), 2.0); F.interpolate(t, size=4, mode="nearest-exact") | t; F.upsample(t, scale_factor=2) | t.repeat(2, 2); F.interpolate(np.arange(32.0)[None, None].astype("f"), size=82)[0, 0, 40:43] | [15.0, 15.0, 16.0]; F.interpolate(t[None], scale_factor=(2, 3)) | t[None].repeat(2, 2).repeat(3, 3); F.interpolate(t, scale_factor=1.5) | t[..., [0, 0, 1, 2, 2, 3]]; F.interpolate(t, scale_factor=2.25, mode="nearest-exact") | t[..., [int((i + 0.5) / 2.25) for i in range(9)]]; F.interpolate(t.reshape(1, 1, -1)[..., :10], scale_factor=2.05) | t.reshape(1, 1, -1)[..., [int(i / 2.05) for i in range(20)]]
F.pixel_shuffle(t.reshape(1, 4, 2, 3), 2)[0, 0] | [[0.0, 6, 1, 7, 2, 8], [12, 18, 13, 19, 14, 20], [3, 9, 4, 10, 5, 11], [15, 21, 16, 22, 17, 23]]; F.pixel_unshuffle(F.pixel_shuffle(t.reshape(1, 4, 2, 3), 2), 2) | t.reshape(1, 4, 2, 3); F.channel_shuffle(t.reshape(1, 6, 2, 2), 2)[0, 1] | t.reshape(6, 2, 2)[3]
F.fold(F.unfold(t[None], 2), (3, 4), 2)[0] | t * np.outer([1, 2, 1], [1, 2, 2, 1]); F.fold(F.unfold(t[None], (3, 2), padding=1, stride=2), (3, 4), (3, 2), padding=1, stride=2)[0, :, 0] | t[:, 0]; F.grid_sample(t[None], F.affine_grid([[[1.0, 0, 0], [0, 1, 0]]], (1, 2, 3, 4))) | t[None]; F.grid_sample(t[None], F.affine_grid([[[1.0, 0, 0], [0, 1, 0]]], (1, 2, 3, 4), True), mode="nearest", align_corners=True) | t[None]
F.grid_sample(t[None], [[[[-1.0, -1.0], [0.0, 0.0], [9.0, 0.0]]]])[0, 0, 0] | [0.0, 5.5, 0.0]; F.grid_sample(t[None], [[[[-1.0, -1.0], [9.0, 9.0]]]], padding_mode="border")[0, 1, 0] | [12.0, 23.0]; F.grid_sample(torch.tile(torch.arange(60.0), (1, 1, 50, 1)).half(), torch.tensor([[[[1.0, 1.0]]]]).half(), align_corners=True).item() | 59.0
"""
# What stands before `|` writes to x, a copy of the array behind it; then comes the value.
IN_PLACE = """
x.add_(1, alpha=2) | a | a + 2; x.sub_(b, alpha=3) | a | a - 3 * b; x.div_(2, rounding_mode="floor") | a | a // 2; x.lerp_(b, 0.25) | a | a + 0.25 * (b - a); x.addcmul_(a, b, value=0.5) | a | a + 0.5 * a * b; x.addcdiv_(a, b) | a | a + a / b; x.addmm_(s, p, beta=2) | p | 2 * p + s @ p; x.fmod_(2) | a | np.fmod(a, 2)
x.masked_fill_(torch.tensor([[True], [False]]), 0.0) | p | p * [[0], [1]]; x.masked_scatter_(a < 0, b) | a | np.asarray([0.5, 2.0, 3.0, 2.0, 1.0]); x.fill_diagonal_(9.0) | s | np.asarray([[9.0, 1], [2, 9]]); x.index_put_((torch.tensor([0, 0]),), torch.tensor([1.0, 2.0]), accumulate=True) | a | np.asarray([3.5, -1.25, 3.0, 2.0, -0.75])
x.index_copy_(0, torch.tensor([1]), s[:1] + 0.0) | s | np.stack([s[0], s[0]]); x.put_(torch.tensor([4]), torch.tensor([7.0])) | p | np.asarray([[1.0, -2, 0.5], [0.25, 7, -3]]); x.scatter_reduce_(0, n % 2, b, reduce="amin", include_self=False) | a | np.asarray([-1.0, 0.25, 3.0, 2.0, -0.75]); x.scatter_(1, torch.tensor([[0], [1]]), 1.0, reduce="add") | s | s + np.eye(2)
x.cumsum_(0) | a | np.cumsum(a); x.tril_() | s | np.tril(s); x.clamp_min_(0) | a | np.maximum(a, 0); x.clip_(0, 1) | a | np.clip(a, 0, 1); x.nan_to_num_(1.0, 2.0, 3.0) | h | np.asarray([1.0, 1, 2, 3, 1]); x.copysign_(b) | a | np.copysign(a, b); x.erfc_().sub_(1).neg_() | a * 0 | a * 0; x.logical_and_(f) | ~f | f & ~f; x.renorm_(2, 0, 3.0)[1] | p | p[1] * 3 / np.linalg.norm(p[1])
x.detach_().requires_grad_(False) | a | a; x.bernoulli_(0.0) | a | a * 0; x.random_(5, 6) | n | n * 0 + 5; x.exponential_().gt(0) | a | a > -9; x.eq_(b) | a | (a == b) * 1.0; x.__setitem__(0, 1) or x | ~f | np.asarray([True, True, False, True, False]); x.__setitem__([1, 2], 0) or x | f | f & [True, False, False, True, True]
"""


def split(text):
    return [one.split(" | ") for one in names_test.statements(text)]


@unittest.skipIf(NARROW, "each op takes a compilation")
class Statements(names_test.Statements):
    maxDiff = None
    # Those of the base class.
    test_numpy = test_pytorch = test_in_place = test_random_numbers = test_masked_halves = test_order_of_arguments = None
    test_files = test_printing = None

    def compare(self, cases):
        failed = []
        for code, *rest in cases:
            theirs, ours = names_test.names(np) | {"math": math}, names_test.names(cp) | {"F": F, "math": math, "numpy": np}
            if len(rest) == 2:
                ours["x"] = cp.asarray(eval(rest[0], theirs), copy=True)
            try:
                self.check(code, eval(code, ours), eval(rest[-1], theirs))
            except (Exception, AssertionError) as error:  # pylint: disable=broad-except
                failed.append(f"{code}: {type(error).__name__}: {error}")
        self.assertEqual(failed, [])

    def test_torch_alone(self):
        self.compare(split(TORCH))

    def test_functional(self):
        self.compare(split(FUNCTIONAL))

    def test_methods_in_place(self):
        self.compare(split(IN_PLACE))


@unittest.skipIf(NARROW, "each op takes a compilation")
class Others(Case):
    def test_generators(self):
        draws = (lambda g: cp.rand(4, generator=g), lambda g: cp.randn(4, generator=g), lambda g: cp.randint(0, 99, (4,), generator=g), lambda g: cp.randperm(8, generator=g),
                 lambda g: cp.normal(0.0, 1.0, size=4, generator=g), lambda g: cp.bernoulli(cp.full(9, 0.5), generator=g), lambda g: cp.multinomial(cp.ones(9), 3, generator=g),
                 lambda g: cp.zeros(4).normal_(generator=g), lambda g: cp.zeros(4).uniform_(generator=g), lambda g: cp.zeros(4).exponential_(generator=g))
        for draw in draws:
            self.assertEqual(draw(cp.Generator().manual_seed(3)).tolist(), draw(cp.Generator("cpu").manual_seed(3)).tolist())
        self.assertEqual(cp.Generator().manual_seed(7).initial_seed(), 7)
        self.assertIs(cp.manual_seed(5), cp.random._generator)
        found = np.asarray(cp.zeros(4000).exponential_(2.0))
        self.assertLess(abs(found.mean() - 0.5), 0.05)
        dropped = np.asarray(F.dropout2d(cp.ones((40, 30, 2, 2)), 0.25))
        self.assertEqual(set(np.unique(np.ptp(dropped.reshape(1200, 4), axis=1))), {0})
        self.assertLess(abs(dropped.mean() - 1), 0.1)
        kept = np.asarray(F.alpha_dropout(cp.asarray(np.random.default_rng(0).normal(size=20000).astype(np.float32)), 0.3, training=True))
        self.assertLess(max(abs(kept.mean()), abs(kept.std() - 1)), 0.05)

    def test_no_grad(self):
        def function(x):
            with cp.no_grad():
                factor = cp.sum(x[:2]) + x.reshape(-1)[0]
                self.assertIsInstance(factor, cp.Array)
                with cp.enable_grad():
                    self.assertNotIsInstance(x * 2, cp.Array)
                self.assertFalse(cp.is_grad_enabled())
            return cp.sum(x * factor)

        self.assertEqual(cp.grad.gradients(function)(cp.asarray([1.0, 2.0])).tolist(), [4, 4])
        self.assertTrue(cp.is_grad_enabled())

        @cp.no_grad()
        def constant(x):
            return x * 3

        self.assertEqual(cp.grad.gradients(lambda x: cp.sum(x * constant(x)))(cp.asarray([2.0])).tolist(), [6])
        cp.set_grad_enabled(False)
        self.assertFalse(cp.is_grad_enabled())
        with cp.set_grad_enabled(True):
            self.assertTrue(cp.is_grad_enabled())
        cp.set_grad_enabled(True)
        with cp.inference_mode():
            self.assertFalse(cp.is_grad_enabled())

    def test_gradients(self):
        """Those of functions made of others, by differences of their values in float64."""
        x = np.asarray([[0.3, -0.8, 1.1], [0.9, 0.2, -0.4]])
        image = x.reshape(1, 1, 2, 3)
        labels = cp.asarray([2, 0])
        for function, at in (
                (lambda v: cp.sum(cp.logcumsumexp(v, 1) * x), x), (lambda v: F.cross_entropy(v, labels, weight=cp.asarray([1.0, 2.0, 0.5], dtype=cp.float64)), x),
                (lambda v: F.interpolate(v, size=(3, 5), mode="bilinear").square().sum(), image), (lambda v: F.interpolate(v, scale_factor=2, mode="bicubic").square().sum(), image),
                (lambda v: F.grid_sample(v, F.affine_grid(cp.asarray([[[0.9, 0.1, 0.0], [-0.2, 0.8, 0.1]]], dtype=cp.float64), (1, 1, 2, 2))).square().sum(), image),
                (lambda v: F.grid_sample(image, F.affine_grid(v, (1, 1, 3, 2))).square().sum(), np.asarray([[[0.9, 0.1, 0.03], [-0.2, 0.8, 0.1]]])),
                (lambda v: F.fold(F.unfold(v, 2), (2, 3), 2).square().sum(), image), (lambda v: F.multi_margin_loss(v, labels), x), (lambda v: F.triplet_margin_loss(v, v * 2, v * 0.5, margin=9.0), x),
                (lambda v: cp.scatter_reduce(v, 1, cp.asarray([[0, 0, 2], [1, 1, 1]]), v * v, "sum").square().sum(), x), (lambda v: cp.std(v, dim=1).sum(), x), (lambda v: v.renorm(2, 0, 0.5).square().sum(), x),
                (lambda v: F.adaptive_avg_pool2d(v, (1, 2)).square().sum(), image), (lambda v: F.celu(v).sum(), x), (lambda v: cp.max(v, cp.asarray(x[::-1].copy())).square().sum(), x)):
            found = np.asarray(cp.grad.gradients(function)(cp.asarray(at)))
            for index in np.ndindex(at.shape):
                moved = np.zeros_like(at)
                moved[index] = 1e-6
                slope = (float(function(cp.asarray(at + moved))) - float(function(cp.asarray(at - moved)))) / 2e-6
                self.assertAlmostEqual(found[index], slope, delta=1e-6)

    def test_gradients_where_parts_meet(self):
        for function in (lambda v: cp.sum(F.celu(v, 2.0)), lambda v: cp.sum(cp.celu(v)), lambda v: cp.sum(F.elu(v))):
            self.assertEqual(cp.grad.gradients(function)(cp.zeros(2)).tolist(), [1, 1])

    def test_refusals(self):
        x = cp.ones((2, 3))
        for call, message in ((lambda: x.requires_grad_(), "value_and_gradients"), (lambda: setattr(x, "requires_grad", True), "value_and_gradients"), (lambda: x.type(), "x.dtype"), (lambda: cp.zeros(), "needs a shape"),
                              (lambda: cp.zeros(2, wide=3), "unexpected keyword argument 'wide'"), (lambda: cp.view_as_real(x), "not complex"), (lambda: F.interpolate(x[None], size=6, antialias=True), "antialias"),
                              (lambda: F.max_pool2d(x[None, None], 2, ceil_mode=True), "ceil_mode"), (lambda: F.grid_sample(x[None, None], cp.zeros((1, 1, 1, 2)), padding_mode="reflection"), "use 'bilinear'"), (lambda: cp.tril_indices(3, 3, offset=1, wide=2), "'wide'")):
            with self.assertRaisesRegex((TypeError, NotImplementedError), message):
                call()
        for call, message in ((lambda: cp.scatter_reduce(x, 0, x, x, "max"), "expected 'sum'"), (lambda: F.interpolate(x[None], size=6, mode="cubic"), "expected 'nearest'"), (lambda: cp.view_as_complex(x), "extent 2")):
            with self.assertRaisesRegex(ValueError, message):
                call()
        with self.assertRaisesRegex(AttributeError, "lower one"):
            x.median()
        with self.assertRaisesRegex(TypeError, "cannot be set to 2"):
            (x > 0)[0] = 2
        with cp.device("cpu"):
            cp.set_default_device("cpu")
            self.assertEqual(cp.ones(1).device.name, "cpu")
            cp.set_default_device(None)


if __name__ == "__main__":
    unittest.main()
