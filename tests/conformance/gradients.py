#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes gradients.inc: small calls of ops and of gradients with their results from PyTorch, computed in float64 on the
CPU. Run by hand: gradients.py > gradients.inc"""

import math

import torch
import torch.nn.functional as F

torch.manual_seed(20240612)
torch.set_default_dtype(torch.float64)
ABSENT = None


def draw(*shape, low=-2.0, high=2.0):
    """Multiples of 1/64, which every floating-point dtype of the tests can hold."""
    return (torch.randint(int(low * 64), int(high * 64) + 1, shape) / 64.0).requires_grad_(True)


def positive(*shape):
    return draw(*shape, low=0.25, high=2.0)


def gradients(y, inputs):
    dy = draw(*y.shape).detach()
    return dy, torch.autograd.grad(y, inputs, dy)


# ---- Text -----------------------------------------------------------------------------------------------------------


def wrapped(parts, first, indent="     "):
    lines, line = [], first
    for part in parts:
        if len(line) + len(part) + 1 > 118:
            lines.append(line.rstrip())
            line = indent
        line += part
    lines.append(line)
    return "\n".join(lines)


def number(x):
    if math.isinf(x):
        return "INFINITY" if x > 0 else "-INFINITY"
    return repr(int(x)) if x == int(x) else repr(x)


def tensor(x):
    if x is ABSENT:
        return "{}"
    kind = {torch.int64: "kInteger", torch.bool: "kBool"}.get(x.dtype, "kFloat")
    values = [number(float(v)) for v in x.detach().reshape(-1).tolist()]
    shape = ", ".join(str(n) for n in x.shape)
    parts = [v + (", " if i + 1 < len(values) else "") for i, v in enumerate(values)]
    return wrapped(parts + ["}}"], f"    {{{kind}, {{{shape}}}, {{").strip()


def attribute(name, value):
    if isinstance(value, str):
        text = f'std::string("{value}")'
    elif isinstance(value, float):
        text = f"std::complex<double>({value!r})"
    elif isinstance(value, (list, tuple)):
        text = f"Shape{{{', '.join(map(str, value))}}}"
    else:
        text = f"int64_t{{{value}}}"
    return f'{{"{name}", {text}}}'


def case(op, attributes, inputs, outputs):
    given = [attribute(*each) for each in attributes.items()]
    parts = [text + (", " if i + 1 < len(given) else "") for i, text in enumerate(given)]
    print(f'{{"{op}",')
    print(wrapped(parts + ["},"], " {", "  "))
    print(" {" + ",\n  ".join(tensor(x) for x in inputs) + "},")
    print(" {" + ",\n  ".join(tensor(x) for x in outputs) + "}},")


# ---- Cases ----------------------------------------------------------------------------------------------------------


def softmax_family():
    x = draw(3, 7)
    for name, function in (("softmax", F.softmax), ("log_softmax", F.log_softmax)):
        for axis in (-1, 0):
            y = function(x, axis)
            dy, (dx,) = gradients(y, [x])
            case(name, {"axis": axis}, [x], [y])
            case(name + "_grad", {"axis": axis}, [dy, y], [dx])
    case("logsumexp", {"axes": [1]}, [x], [torch.logsumexp(x, 1)])


def losses():
    logits, labels = draw(5, 6), torch.tensor([0, 5, 2, 2, 4])
    logsumexp = torch.logsumexp(logits, 1)
    for attributes in ({}, {"label_smoothing": 0.125}, {"ignore_index": 2}, {"label_smoothing": 0.25, "ignore_index": 4}):
        loss = F.cross_entropy(logits, labels, reduction="none", label_smoothing=attributes.get("label_smoothing", 0.0),
                               ignore_index=attributes.get("ignore_index", -100))
        dloss, (dx,) = gradients(loss, [logits])
        case("cross_entropy", attributes, [logits, labels], [loss, logsumexp])
        case("cross_entropy_grad", attributes, [dloss, logits, labels, logsumexp], [dx])
    targets = positive(5, 6).detach()
    loss = F.cross_entropy(logits, targets, reduction="none")
    dloss, (dx,) = gradients(loss, [logits])
    case("cross_entropy_soft", {}, [logits, targets], [loss, logsumexp])
    case("cross_entropy_soft_grad", {}, [dloss, logits, targets, logsumexp], [dx])


def norms():
    x, scale, bias = draw(3, 4, 5), positive(5), draw(5)
    y, mean, rstd = torch.native_layer_norm(x, [5], scale, bias, 1e-5)
    mean, rstd = mean.reshape(3, 4), rstd.reshape(3, 4)
    dy, (dx, dscale, dbias) = gradients(y, [x, scale, bias])
    case("layer_norm", {}, [x, scale, bias], [y, mean, rstd])
    case("layer_norm_grad", {}, [dy, x, mean, rstd, scale], [dx, dscale, dbias])

    y = F.rms_norm(x, [5], scale, 1e-5)
    rstd = 1 / torch.sqrt((x * x).mean(2) + 1e-5)
    dy, (dx, dscale) = gradients(y, [x, scale])
    case("rms_norm", {}, [x, scale], [y, rstd])
    case("rms_norm_grad", {}, [dy, x, rstd, scale], [dx, dscale])

    x, scale, bias = draw(4, 3, 5), positive(3), draw(3)
    y = F.batch_norm(x, None, None, scale, bias, training=True, eps=0.125)
    mean, variance = x.mean((0, 2)), x.var((0, 2), unbiased=False)
    dy, (dx, dscale, dbias) = gradients(y, [x, scale, bias])
    case("batch_norm", {"epsilon": 0.125}, [x, scale, bias], [y, mean, variance])
    case("batch_norm_grad", {"epsilon": 0.125}, [dy, x, mean, variance, scale], [dx, dscale, dbias])
    case("batch_norm_inference", {"epsilon": 0.125}, [x, mean, variance, scale, bias],
         [F.batch_norm(x, mean.detach(), variance.detach(), scale, bias, training=False, eps=0.125)])

    x, scale, bias = draw(2, 6, 4), positive(6), draw(6)
    y, mean, rstd = torch.native_group_norm(x, scale, bias, 2, 6, 4, 3, 1e-5)
    dy, (dx, dscale, dbias) = gradients(y, [x, scale, bias])
    case("group_norm", {"groups": 3}, [x, scale, bias], [y, mean, rstd])
    case("group_norm_grad", {"groups": 3}, [dy, x, mean, rstd, scale], [dx, dscale, dbias])


def pools():
    for shape, window, strides, pads, dilations in (((2, 2, 9), [3], [2], [1], [1]), ((1, 2, 6, 5), [2, 2], [2, 2], [0, 0], [1, 1]),
                                                    ((1, 1, 7, 7), [3, 2], [1, 2], [1, 0], [2, 3])):
        x = draw(*shape)
        pool = F.max_pool1d if len(window) == 1 else F.max_pool2d
        y = pool(x, window, strides, pads, dilations)
        dy, (dx,) = gradients(y, [x])
        attributes = {"window": window, "strides": strides, "dilations": dilations, "pads_begin": pads, "pads_end": pads}
        case("max_pool", attributes, [x], [y])
        case("max_pool_grad", attributes, [dy, x, y], [dx])
    for shape, window, strides, pads, counted in (((2, 2, 9), [3], [2], [1], 0), ((1, 2, 6, 5), [2, 3], [1, 2], [1, 1], 1)):
        x = draw(*shape)
        pool = F.avg_pool1d if len(window) == 1 else F.avg_pool2d
        y = pool(x, window, strides, pads, count_include_pad=bool(counted))
        dy, (dx,) = gradients(y, [x])
        attributes = {"window": window, "strides": strides, "pads_begin": pads, "pads_end": pads, "count_include_pad": counted}
        case("average_pool", attributes, [x], [y])
        case("average_pool_grad", {"shape": list(shape[2:]), **attributes}, [dy], [dx])


def convolutions():
    forms = (
        ((2, 3, 8), (4, 3, 3), 1, 0, 1, 1),
        ((1, 4, 9), (4, 2, 3), 2, 1, 2, 2),
        ((1, 2, 5, 6), (3, 2, 3, 2), (1, 2), (1, 0), 1, 1),
        ((1, 3, 5, 5), (6, 1, 3, 3), 1, 1, 1, 3),
        ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), 1, 0, 1, 1),
    )
    for shape, kernel, stride, padding, dilation, groups in forms:
        spatial = len(shape) - 2
        x, weight, bias = draw(*shape), draw(*kernel), draw(kernel[0])
        y = (F.conv1d, F.conv2d, F.conv3d)[spatial - 1](x, weight, bias, stride, padding, dilation, groups)
        dy, (dx, dweight) = gradients(y, [x, weight])
        several = lambda n: list(n) if isinstance(n, tuple) else [n] * spatial
        attributes = {"strides": several(stride), "dilations": several(dilation), "pads_begin": several(padding),
                      "pads_end": several(padding), "groups": groups}
        case("convolution", attributes, [x, weight, bias], [y])
        case("convolution_grad_input", {"shape": list(shape[2:]), **attributes}, [dy, weight], [dx])
        case("convolution_grad_weight", {"kernel": list(kernel[2:]), **attributes}, [dy, x], [dweight])
    x, weight, bias = draw(1, 4, 4, 3), draw(4, 2, 3, 2), draw(4)
    y = F.conv_transpose2d(x, weight, bias, (2, 1), (1, 0), (1, 0), 2, 1)
    case("convolution_transpose", {"strides": [2, 1], "pads_begin": [1, 0], "pads_end": [1, 0], "output_padding": [1, 0],
                                   "groups": 2}, [x, weight, bias], [y])


def attention():
    q, k, v = draw(1, 2, 3, 4), draw(1, 2, 5, 4), draw(1, 2, 5, 3)
    shared_k, shared_v = draw(1, 1, 5, 4), draw(1, 1, 5, 3)
    mask, bias = torch.rand(1, 2, 3, 5) < 0.7, draw(1, 2, 3, 5).detach()
    mask[..., 0] = True
    causal = torch.ones(3, 5, dtype=torch.bool).tril(2)
    for keys, values, attributes, given in ((k, v, {}, ABSENT), (k, v, {"causal": 1}, ABSENT), (k, v, {"scale": 0.25}, mask),
                                            (k, v, {}, bias), (shared_k, shared_v, {"causal": 1}, ABSENT)):
        scale = attributes.get("scale", 0.5)
        scores = q @ keys.mT * scale
        if given is not ABSENT:
            scores = scores.masked_fill(~given, -math.inf) if given.dtype == torch.bool else scores + given
        if "causal" in attributes:
            scores = scores.masked_fill(~causal, -math.inf)
        allowed = given if given is not ABSENT else causal if "causal" in attributes else None
        y = F.scaled_dot_product_attention(q, keys, values, allowed, scale=scale, enable_gqa=keys is shared_k)
        assert torch.allclose(y, torch.softmax(scores, 3) @ values)
        dy, (dq, dk, dv) = gradients(y, [q, keys, values])
        logsumexp = torch.logsumexp(scores, 3)
        inputs = [q, keys, values] + ([] if given is ABSENT else [given])
        case("attention", attributes, inputs, [y, logsumexp])
        case("attention_grad", attributes, [dy, q, keys, values, y, logsumexp] + inputs[3:], [dq, dk, dv])


def positions():
    x, places = draw(2, 3, 6), torch.tensor([0, 3, 7])
    for interleaved in (0, 1):
        angles = places[:, None] * 100.0 ** (-2 * torch.arange(3) / 6)
        turns = torch.polar(torch.ones_like(angles), angles)
        pairs = x.reshape(2, 3, 3, 2) if interleaved else x.reshape(2, 3, 2, 3).transpose(2, 3)
        turned = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turns)
        y = turned.reshape(2, 3, 6) if interleaved else turned.transpose(2, 3).reshape(2, 3, 6)
        dy, (dx,) = gradients(y, [x])
        attributes = {"base": 100.0, "interleaved": interleaved}
        case("rotary_embedding", attributes, [x, places], [y])
        case("rotary_embedding", {**attributes, "inverse": 1}, [dy, places], [dx])


def indexed():
    table, rows = draw(5, 3), torch.tensor([4, 0, 4, 1])
    y = F.embedding(rows, table)
    dy, (dtable,) = gradients(y, [table])
    case("take", {}, [table, rows], [y])
    case("take_grad", {"size": 5}, [dy, rows], [dtable])
    x = draw(2, 6)
    y = torch.cumsum(x, 1)
    dy, (dx,) = gradients(y, [x])
    case("cumulative_sum", {}, [x], [y])
    case("cumulative_sum", {"reverse": 1}, [dy], [dx])


def products():
    a, b = draw(2, 3, 4), draw(4, 5)
    y = a @ b
    dy, (da, db) = gradients(y, [a, b])
    case("matmul", {}, [a, b], [y])
    case("matmul", {}, [dy, b.mT], [da])
    case("tensordot", {"axes_a": [0, 1], "axes_b": [0, 1]}, [a, dy], [db])
    x, weight, bias = draw(3, 4), draw(5, 4), draw(5)
    for activation, function in (("none", lambda z: z), ("relu", F.relu), ("gelu", F.gelu), ("silu", F.silu), ("tanh", torch.tanh),
                                 ("gelu_tanh", lambda z: F.gelu(z, approximate="tanh")), ("sigmoid", torch.sigmoid)):
        case("affine", {"transpose_weight": 1, "activation": activation}, [x, weight, bias], [function(F.linear(x, weight, bias))])


def optimisers():
    """The third step of each."""
    kinds = (
        ("sgd", {"rate": 0.25, "decay": 0.125}, lambda p: torch.optim.SGD(p, lr=0.25, weight_decay=0.125), ()),
        ("sgd_momentum", {"rate": 0.25, "decay": 0.125, "momentum": 0.5},
         lambda p: torch.optim.SGD(p, lr=0.25, weight_decay=0.125, momentum=0.5), ("momentum_buffer",)),
        ("sgd_momentum", {"rate": 0.25, "momentum": 0.5, "nesterov": 1},
         lambda p: torch.optim.SGD(p, lr=0.25, momentum=0.5, nesterov=True), ("momentum_buffer",)),
        ("adam", {"rate": 0.0625, "decay": 0.125}, lambda p: torch.optim.Adam(p, lr=0.0625, weight_decay=0.125), ("exp_avg", "exp_avg_sq")),
        ("adamw", {"rate": 0.0625, "beta1": 0.75, "beta2": 0.875, "epsilon": 0.001, "decay": 0.125},
         lambda p: torch.optim.AdamW(p, lr=0.0625, betas=(0.75, 0.875), eps=0.001, weight_decay=0.125), ("exp_avg", "exp_avg_sq")),
    )
    for op, attributes, make, state in kinds:
        parameter = draw(7)
        optimiser = make([parameter])
        for step in range(3):
            parameter.grad = draw(7).detach()
            before = [parameter.detach().clone(), parameter.grad] + [optimiser.state[parameter][k].clone() for k in state if step > 0]
            optimiser.step()
        if "exp_avg" in state:
            attributes = {**attributes, "step": 3.0}
        case(op, attributes, before, [parameter] + [optimiser.state[parameter][k] for k in state])


print("// SPDX-License-Identifier: Apache-2.0")
print(f"// Written by gradients.py with PyTorch {torch.__version__.split('+')[0]}: op, attributes, inputs, outputs.")
print("// clang-format off")
for family in (softmax_family, losses, norms, pools, convolutions, attention, positions, indexed, products, optimisers):
    family()
