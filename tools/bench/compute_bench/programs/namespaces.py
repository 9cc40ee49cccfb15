# SPDX-License-Identifier: Apache-2.0
"""Libraries under common names: the functions of a library's module, and those that have another name or other arguments there."""
import functools


class Namespace:
    def __getattr__(self, name):
        found = getattr(self.module, name)
        setattr(self, name, found)
        return found


class Given:
    """The inputs of one program, the same in every library."""

    def __init__(self, compute, to=lambda x: x):
        self.compute, self.random, self.to = compute, compute.random.Generator(1), to

    def normal(self, *shape):
        return self.to(self.random.normal(shape))

    def uniform(self, *shape):
        return self.to(self.random.uniform(shape))

    def integers(self, below, *shape):
        return self.to(self.random.integers(shape, 0, below, dtype=self.compute.int64))

    def values(self, numbers):
        return self.to(self.compute.asarray(numbers, dtype=self.compute.float32))


class Ours(Namespace):
    name = "ours"

    def __init__(self):
        import compute
        from compute import grad, nn, optim
        self.module, self.nn, self.grad, self.optim = compute, nn, grad, optim
        self.synchronize = compute.device().synchronize
        self.linear, self.gelu, self.attention, self.layer_norm = nn.linear, nn.gelu, nn.attention, nn.layer_norm
        self.random_normal, self.cummin, self.segment_sum = compute.random.normal, compute.cumulative_min, compute.segment_reduce

    def given(self):
        return Given(self.module)

    def index_add(self, x, indices, rows):
        return self.module.scatter_nd(x, indices[:, None], rows, reduction="add")

    def scatter_min(self, x, indices, values):
        return self.module.scatter(x, indices, values, axis=0, reduction="min")

    def conv(self, x, weight, stride=1):
        return self.nn.convolution(x, weight, strides=stride, padding=weight.shape[-1] // 2)

    def conv_transpose(self, x, weight):
        return self.nn.convolution_transpose(x, weight, strides=2)

    def max_pool(self, x):
        return self.nn.max_pool(x, 2)

    def batch_norm(self, x, scale, bias):
        return self.nn.batch_norm(x, scale, bias)[0]

    def cross_entropy(self, logits, labels):
        return self.module.mean(self.nn.cross_entropy(logits, labels))

    def trained(self, loss, parameters, optimizer, rate, steps):
        """A function that trains for `steps` more steps and returns the last loss."""
        parameters = [self.module.copy(x) for x in parameters]
        both, rule = self.grad.value_and_gradients(loss), getattr(self.optim, optimizer)(parameters, rate)

        def run():
            for _ in range(steps):
                value, gradients = both(parameters)
                rule.step(gradients)
            return value

        return run


class Peer(Namespace):
    def __init__(self, peer, ours):
        self.name, self.module, self.peer, self.compute, self.synchronize = peer.name, peer.module, peer, ours.module, peer.synchronize

    def given(self):
        return Given(self.compute, lambda x: self.peer.array(x.tobytes(), x.dtype.name, x.shape))


class NumPy(Peer):
    """Without gradients."""

    def __init__(self, peer, ours):
        super().__init__(peer, ours)
        np = self.module
        self.clone, self.permute, self.clamp_min, self.cummin = np.copy, np.transpose, np.maximum, np.minimum.accumulate
        for name in ("zeros", "ones", "full", "eye", "linspace"):
            setattr(self, name, functools.partial(getattr(np, name), dtype=np.float32))
        self.random_normal = functools.partial(np.random.default_rng(1).standard_normal, dtype=np.float32)

    def astype(self, x, dtype):
        return x.astype(dtype)

    def erf(self, x):
        """By Abramowitz and Stegun 7.1.26: NumPy has none."""
        np = self.module
        t = 1 / (1 + 0.3275911 * np.abs(x))
        series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
        return np.sign(x) * (1 - series * np.exp(-x * x))

    def topk(self, x, k):
        np = self.module
        found = np.argpartition(x, x.shape[-1] - k, -1)[..., -k:]
        order = np.argsort(-np.take_along_axis(x, found, -1), -1)
        found = np.take_along_axis(found, order, -1)
        return np.take_along_axis(x, found, -1), found

    def index_add(self, x, indices, rows):
        result = x.copy()
        self.module.add.at(result, indices, rows)
        return result

    def scatter_min(self, x, indices, values):
        result = x.copy()
        self.module.minimum.at(result, indices, values)
        return result

    def segment_sum(self, x, offsets):
        return self.module.add.reduceat(x, offsets[:-1])


class Torch(Peer):
    def __init__(self, peer, ours):
        super().__init__(peer, ours)
        torch = self.module
        self.functional = torch.nn.functional
        self.gelu, self.attention = self.functional.gelu, self.functional.scaled_dot_product_attention
        for name in ("zeros", "ones", "full", "eye", "linspace", "arange"):
            setattr(self, name, functools.partial(getattr(torch, name), device=peer.place))
        self.random_normal = functools.partial(torch.randn, device=peer.place)

    def astype(self, x, dtype):
        return x.to(dtype)

    def sort(self, x, axis=-1):
        return self.module.sort(x, axis)[0]

    def cummin(self, x, axis):
        return self.module.cummin(x, axis)[0]

    def index_add(self, x, indices, rows):
        return x.index_add(0, indices, rows)

    def scatter_min(self, x, indices, values):
        return x.scatter_reduce(0, indices, values, "amin")

    def segment_sum(self, x, offsets):
        return self.module.segment_reduce(x, "sum", offsets=offsets)

    def linear(self, x, weight, bias):
        return self.functional.linear(x, weight.T, bias)

    def layer_norm(self, x, scale, bias):
        return self.functional.layer_norm(x, scale.shape, scale, bias)

    def conv(self, x, weight, stride=1):
        return self.functional.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)

    def conv_transpose(self, x, weight):
        return self.functional.conv_transpose2d(x, weight, stride=2)

    def max_pool(self, x):
        return self.functional.max_pool2d(x, 2)

    def batch_norm(self, x, scale, bias):
        return self.functional.batch_norm(x, None, None, scale, bias, training=True)

    def cross_entropy(self, logits, labels):
        return self.functional.cross_entropy(logits, labels)

    def trained(self, loss, parameters, optimizer, rate, steps):
        torch = self.module
        parameters = [x.clone().requires_grad_() for x in parameters]
        rule = getattr(torch.optim, optimizer)(parameters, lr=rate, fused=True)

        def run():
            with torch.enable_grad():
                for _ in range(steps):
                    value = loss(parameters)
                    rule.zero_grad(set_to_none=True)
                    value.backward()
                    rule.step()
            return value.detach()

        return run


PEERS = {"numpy": NumPy, "torch": Torch}
