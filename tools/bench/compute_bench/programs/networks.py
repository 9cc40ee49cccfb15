# SPDX-License-Identifier: Apache-2.0
"""Training steps of networks, with the gradients and optimizers of each library."""
from . import field

networks = field("networks")


def product(given, *shape):
    """A weight of a product whose results are about as large as its operands."""
    return given.normal(*shape) * shape[0] ** -0.5


def kernel(given, *shape):
    return given.normal(*shape) * (2 / (shape[1] * shape[2] * shape[3])) ** 0.5


@networks("MLP with AdamW", quick=32, full=1024)
def mlp(xp, given, n):
    x, labels = given.normal(n, 784), given.integers(10, n)
    widths = (784, 512, 512, 10)
    parameters = [w for a, b in zip(widths, widths[1:]) for w in (product(given, a, b), xp.zeros(b))]

    def loss(p):
        h = xp.relu(xp.linear(x, p[0], p[1]))
        h = xp.relu(xp.linear(h, p[2], p[3]))
        return xp.cross_entropy(xp.linear(h, p[4], p[5]), labels)

    return xp.trained(loss, parameters, "AdamW", 1e-3, 4)


@networks("residual network with SGD", quick=2, full=64, tolerance=1e-3)
def residual_network(xp, given, n):
    images, labels = given.normal(n, 3, 32, 32), given.integers(10, n)
    parameters = []
    for outputs, inputs, size in ((32, 3, 3), (32, 32, 3), (32, 32, 3), (64, 32, 3), (64, 64, 3), (64, 32, 1)):
        parameters += [kernel(given, outputs, inputs, size, size), xp.ones(outputs), xp.zeros(outputs)]
    parameters += [product(given, 64, 10), xp.zeros(10)]

    def loss(p):
        def layer(x, i, stride=1):
            weight, scale, bias = p[3 * i:3 * i + 3]
            return xp.batch_norm(xp.conv(x, weight, stride), scale, bias)

        x = xp.relu(layer(images, 0))
        x = xp.relu(layer(xp.relu(layer(x, 1)), 2) + x)
        x = xp.relu(layer(xp.relu(layer(x, 3, 2)), 4) + layer(x, 5, 2))
        return xp.cross_entropy(xp.linear(xp.mean(x, (2, 3)), p[-2], p[-1]), labels)

    return xp.trained(loss, parameters, "SGD", 0.01, 2)


@networks("transformer encoder with AdamW", quick=1, full=16)
def transformer(xp, given, n):
    width, heads, length, layers = 256, 8, 64, 2
    x, labels = given.normal(n, length, width), given.integers(10, n)
    parameters = []
    for _ in range(layers):
        parameters += [xp.ones(width), xp.zeros(width), product(given, width, 3 * width), xp.zeros(3 * width), product(given, width, width),
                       xp.zeros(width), xp.ones(width), xp.zeros(width), product(given, width, 4 * width), xp.zeros(4 * width),
                       product(given, 4 * width, width), xp.zeros(width)]
    parameters += [product(given, width, 10), xp.zeros(10)]

    def loss(p):
        h = x
        for i in range(0, 12 * layers, 12):
            parts = xp.reshape(xp.linear(xp.layer_norm(h, p[i], p[i + 1]), p[i + 2], p[i + 3]), (n, length, 3, heads, width // heads))
            q, k, v = (xp.permute(parts[:, :, j], (0, 2, 1, 3)) for j in range(3))
            seen = xp.reshape(xp.permute(xp.attention(q, k, v), (0, 2, 1, 3)), (n, length, width))
            h = h + xp.linear(seen, p[i + 4], p[i + 5])
            inner = xp.gelu(xp.linear(xp.layer_norm(h, p[i + 6], p[i + 7]), p[i + 8], p[i + 9]))
            h = h + xp.linear(inner, p[i + 10], p[i + 11])
        return xp.cross_entropy(xp.linear(xp.mean(h, 1), p[-2], p[-1]), labels)

    return xp.trained(loss, parameters, "AdamW", 1e-4, 2)


@networks("LSTM by hand with AdamW", quick=4, full=64)
def lstm(xp, given, n):
    steps, inputs, width = 32, 64, 128
    x, target = given.normal(n, steps, inputs), given.normal(n, width)
    parameters = [product(given, inputs, 4 * width), product(given, width, 4 * width), xp.zeros(4 * width)]

    def loss(p):
        h = c = xp.zeros((n, width))
        for t in range(steps):
            gates = x[:, t] @ p[0] + h @ p[1] + p[2]
            take, keep, show = (xp.sigmoid(gates[:, i * width:(i + 1) * width]) for i in range(3))
            c = keep * c + take * xp.tanh(gates[:, 3 * width:])
            h = show * xp.tanh(c)
        return xp.mean((h - target) ** 2)

    return xp.trained(loss, parameters, "AdamW", 1e-3, 1)


@networks("U-Net with AdamW", quick=1, full=16, tolerance=1e-3)
def u_net(xp, given, n):
    images, target = given.normal(n, 1, 64, 64), given.uniform(n, 1, 64, 64)
    shapes = ((16, 1, 3, 3), (32, 16, 3, 3), (64, 32, 3, 3), (64, 32, 2, 2), (32, 64, 3, 3), (32, 16, 2, 2), (16, 32, 3, 3), (1, 16, 3, 3))
    parameters = [kernel(given, *shape) for shape in shapes]

    def loss(p):
        first = xp.relu(xp.conv(images, p[0]))
        second = xp.relu(xp.conv(xp.max_pool(first), p[1]))
        third = xp.relu(xp.conv(xp.max_pool(second), p[2]))
        second = xp.relu(xp.conv(xp.concatenate([xp.conv_transpose(third, p[3]), second], 1), p[4]))
        first = xp.relu(xp.conv(xp.concatenate([xp.conv_transpose(second, p[5]), first], 1), p[6]))
        return xp.mean((xp.conv(first, p[7]) - target) ** 2)

    return xp.trained(loss, parameters, "AdamW", 1e-3, 1)


@networks("graph convolution with AdamW", quick=500, full=20000)
def graph_convolution(xp, given, n):
    x, labels = given.normal(n, 64), given.integers(10, n)
    src, dst = given.integers(n, 10 * n), given.integers(n, 10 * n)
    degree = xp.clamp_min(xp.astype(xp.bincount(dst, None, n), xp.float32), 1)[:, None]
    parameters = [product(given, 64, 64), xp.zeros(64), product(given, 64, 10), xp.zeros(10)]

    def loss(p):
        def layer(x, weight, bias):
            rows = xp.linear(x, weight, bias)
            return xp.index_add(rows, dst, rows[src]) / degree
        return xp.cross_entropy(layer(xp.relu(layer(x, p[0], p[1])), p[2], p[3]), labels)

    return xp.trained(loss, parameters, "AdamW", 1e-3, 2)
