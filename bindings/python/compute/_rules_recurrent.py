# SPDX-License-Identifier: Apache-2.0
"""The gradients of lstm and gru. The gates of all times are computed again at once; what depends on the next time goes
step by step, from the last one on.
"""
from __future__ import annotations

from . import _core, _creation, _dtypes, _ops
from .expressions import Expression
from .grad import _reshaped

_HALVES = (_dtypes.float16, _dtypes.bfloat16)
_SIGMOID = "1 / (1 + exp(-({})))"


def _wide(x):
    return _ops.cast(x, dtype=_dtypes.float32) if x is not None and x.dtype in _HALVES else x


def _matrix(x, columns):
    return _reshaped(x, (x.size // columns if columns else 0, columns))


def _times(a, b):
    """a [..., k] times b [k, n]."""
    return _ops.matmul(a, b)


def _transposed(x):
    return _core.permute_view(x, (1, 0))


class _Direction:
    """The parameters of one direction, and its times in the order of the steps."""

    def __init__(self, layer, d):
        self.layer, self.d = layer, d
        self.weight, self.recurrent = layer.weight[d], layer.recurrent[d]
        self.is_reverse = layer.direction == "reverse" or d == 1
        times = range(layer.time)
        self.order = list(reversed(times) if self.is_reverse else times)
        self.h0 = layer.zeros if layer.h0 is None else layer.h0[d]

    def before(self, states, first, is_padded=False):
        """The state before each time, [time, batch, hidden]. Behind the end of a sequence padded states are 0."""
        first = _core.reshape_view(first, (1, *first.shape))
        found = _ops.concat(states[1:], first, axis=0) if self.is_reverse else _ops.concat(first, states[:-1], axis=0)
        if not (is_padded and self.is_reverse and self.layer.seen is not None):
            return found
        seen = self.layer.seen[1:]
        last = _creation.ones((1, *seen.shape[1:]), dtype=_dtypes.bool, device=seen.device)
        return _ops.where(_ops.concat(seen, last, axis=0), found, first)

    def of_inputs(self):
        """The products of all inputs, [time, batch, gates hidden], with the first bias."""
        found = _times(self.layer.x, _transposed(self.weight))
        return found if self.layer.bias is None else _ops.add(found, self.layer.bias[self.d])

    def recurrent_bias(self):
        return None if self.layer.recurrent_bias is None else self.layer.recurrent_bias[self.d]

    def gates(self, x):
        hidden = self.layer.hidden
        return [x[..., i * hidden:(i + 1) * hidden] for i in range(x.shape[-1] // hidden)]

    def carried(self, t, dh, product):
        """The gradient of the state before time t: of sequences that have ended, that of the state behind it."""
        return product if self.layer.seen is None else _ops.where(self.layer.seen[t], product, dh)


class _Layer:
    def __init__(self, inputs, attributes, gates, lengths):
        given = (list(inputs) + [None] * 9)[:9]
        self.x, self.weight, self.recurrent, self.bias, self.recurrent_bias, self.h0 = map(_wide, given[:6])
        self.direction = attributes.get("direction", "forward")
        self.time, self.batch, self.features = self.x.shape
        self.directions, self.hidden = self.weight.shape[0], self.recurrent.shape[2]
        if not self.time:
            raise TypeError("the gradient of a recurrent layer of no times is not known")
        self.zeros = _creation.zeros((self.batch, self.hidden), dtype=self.x.dtype, device=self.x.device)
        self.seen = None
        if lengths is not None:
            times = _creation.arange(self.time, device=self.x.device)
            self.seen = _ops.less(_core.reshape_view(times, (self.time, 1, 1)),
                                  _core.reshape_view(_ops.cast(lengths, dtype=_dtypes.int64), (1, self.batch, 1)))

    def seen_at(self, t):
        """Whether sequences reach time t, as the last operand of a step, if there are lengths."""
        return () if self.seen is None else (self.seen[t],)

    def parameters(self, direction, da, da_recurrent, before):
        """The gradients of x, the weights and the biases, from those of the gates [time, batch, gates hidden].

        `before` has what each part of the recurrent weight was multiplied with, and how many gates that part has.
        """
        rows, x = _matrix(da, da.shape[-1]), _matrix(self.x, self.features)
        dx = _times(da, direction.weight)
        dweight = _ops.matmul(_transposed(rows), x)
        parts, first = [], 0
        for state, gates in before:
            columns = _matrix(da_recurrent, da_recurrent.shape[-1])[:, first:first + gates * self.hidden]
            parts.append(_ops.matmul(_transposed(columns), _matrix(state, self.hidden)))
            first += gates * self.hidden
        drecurrent = parts[0] if len(parts) == 1 else _ops.concat(*parts, axis=0)
        return [dx, dweight, drecurrent, _ops.sum(da, axes=[0, 1]), _ops.sum(da_recurrent, axes=[0, 1])]


def _stacked(parts):
    return _ops.stack(*parts, axis=0)


def _gradient_of(d, dy, dlast, layer):
    """Functions of the time: dy, and of the last step the gradient that comes from the last state."""
    zeros = layer.zeros
    return (lambda t: zeros if dy is None else _wide(dy[t, d])), zeros if dlast is None else _wide(dlast[d])


def _collected(found, layer, inputs, extra):
    """The gradients of all inputs, from those of each direction."""
    dx = found[0][0] if layer.directions == 1 else _ops.add(found[0][0], found[1][0])
    rest = [_stacked([one[i] for one in found]) for i in range(1, len(found[0]))]
    return [None if given is None else gradient for given, gradient in zip(inputs, [dx, *rest, *extra])]


_GATE = {has: Expression(_SIGMOID.format("a + p * c" if has else "a"), *("apc" if has else "a")) for has in (False, True)}
_LSTM_SLOPES = Expression("q = tanh(c); q * o * (1 - o); o * (1 - q * q); g * i * (1 - i); b * f * (1 - f); i * (1 - g * g)",
                          "i", "o", "f", "g", "c", "b")


def _seen(has_lengths, *texts):
    """The results of a step; those of sequences that have ended are 0."""
    return "; ".join(f"where(seen, {text}, 0)" for text in texts) if has_lengths else "; ".join(texts)


def _lstm_step(has_peepholes, has_lengths):
    before = "tc * f + ti * pi + tf * pf" if has_peepholes else "tc * f"
    text = (f"h = carried + dy; to = h * so; tc = c + h * sc{' + to * po' if has_peepholes else ''}; ti = tc * si; tf = tc * sf; "
            f"{_seen(has_lengths, 'ti', 'to', 'tf', 'tc * sg')}; {f'where(seen, {before}, c)' if has_lengths else before}")
    return Expression(text, "carried", "dy", "c", "so", "sc", "si", "sf", "sg", "f",
                      *(("pi", "po", "pf") if has_peepholes else ()), *(("seen",) if has_lengths else ()))


_LSTM_STEP = {(peepholes, lengths): _lstm_step(peepholes, lengths) for peepholes in (False, True) for lengths in (False, True)}


def lstm(inputs, outputs, attributes, dy=None, dlast_h=None, dlast_c=None):
    inputs = (list(inputs) + [None] * 9)[:9]
    layer = _Layer(inputs, attributes, 4, inputs[8])
    c0, peepholes = _wide(inputs[6]), _wide(inputs[7])
    y, cells = _wide(outputs[0]), outputs[3]
    has_peepholes = peepholes is not None
    found = []
    for d in range(layer.directions):
        one = _Direction(layer, d)
        first_c = layer.zeros if c0 is None else c0[d]
        h, c, before_c = one.before(y[:, d], one.h0, True), cells[:, d], one.before(cells[:, d], first_c)
        sums = _ops.add(one.of_inputs(), _times(h, _transposed(one.recurrent)))
        if layer.recurrent_bias is not None:
            sums = _ops.add(sums, one.recurrent_bias())
        si, so, sf, sg = one.gates(sums)
        holes = one.gates(peepholes[d]) if has_peepholes else []
        gate, (pi, po, pf) = _GATE[has_peepholes], holes or (None,) * 3
        i, o, f = ((gate(a, p, of) if has_peepholes else gate(a)) for a, p, of in ((si, pi, before_c), (so, po, c), (sf, pf, before_c)))
        g = _ops.tanh(sg)
        slopes = _LSTM_SLOPES(i, o, f, g, c, before_c)
        given, dh = _gradient_of(d, dy, dlast_h, layer)
        dc = layer.zeros if dlast_c is None else _wide(dlast_c[d])
        das, step = [None] * layer.time, _LSTM_STEP[has_peepholes, layer.seen is not None]
        for t in reversed(one.order):
            *parts, dc = step(dh, given(t), dc, *(slope[t] for slope in slopes), f[t], *holes, *layer.seen_at(t))
            das[t] = _ops.concat(*parts, axis=1)
            dh = one.carried(t, dh, _ops.matmul(das[t], one.recurrent))
        da = _stacked(das)
        row = [*layer.parameters(one, da, da, [(h, 4)]), dh, dc]
        if has_peepholes:
            ti, to, tf, _ = one.gates(da)
            row.append(_ops.concat(*(_ops.sum(_ops.multiply(a, of), axes=[0, 1]) for a, of in ((ti, before_c), (to, c), (tf, before_c))), axis=0))
        found.append(row)
    return _collected(found, layer, inputs, [None] * (1 if has_peepholes else 2))


_GRU_SUMS = Expression(_SIGMOID.format("a"), "a")
_GRU_SLOPES = Expression("(h - n) * z * (1 - z); (1 - z) * (1 - n * n)", "z", "n", "h")
_GRU_LINEAR_STEP = {has: Expression(
    f"h = carried + dy; tn = h * sn; {_seen(has, 'h * sz', 'tn * hn * r * (1 - r)', 'tn', 'tn * r')}; h * z",
    "carried", "dy", "sz", "sn", "z", "hn", "r", *(("seen",) if has else ())) for has in (False, True)}
_GRU_STEP = {has: Expression(f"h = carried + dy; {_seen(has, 'h * sz', 'h * sn')}; h * z",
                             "carried", "dy", "sz", "sn", "z", *(("seen",) if has else ())) for has in (False, True)}
_GRU_RESET = Expression("k * h * r * (1 - r); k * r", "k", "h", "r")


def gru(inputs, outputs, attributes, dy=None, dlast_h=None):
    inputs = (list(inputs) + [None] * 7)[:7]
    layer = _Layer(inputs, attributes, 3, inputs[6])
    is_linear = bool(attributes.get("linear_before_reset"))
    y, hidden = _wide(outputs[0]), layer.hidden
    found = []
    for d in range(layer.directions):
        one = _Direction(layer, d)
        h = one.before(y[:, d], one.h0, True)
        of_x, extra = one.of_inputs(), one.recurrent_bias()
        if extra is not None and not is_linear:
            of_x = _ops.add(of_x, extra)
        columns = _transposed(one.recurrent)
        of_h = _times(h, columns if is_linear else columns[:, :2 * hidden])
        if extra is not None and is_linear:
            of_h = _ops.add(of_h, extra)
        z, r = one.gates(_GRU_SUMS(_ops.add(of_x[..., :2 * hidden], of_h[..., :2 * hidden])))
        kept = _ops.multiply(r, h)
        hn = of_h[..., 2 * hidden:] if is_linear else _times(kept, columns[:, 2 * hidden:])
        n = _ops.tanh(_ops.add(of_x[..., 2 * hidden:], _ops.multiply(r, hn) if is_linear else hn))
        sz, sn = _GRU_SLOPES(z, n, h)
        given, dh = _gradient_of(d, dy, dlast_h, layer)
        das, das_recurrent = [None] * layer.time, [None] * layer.time
        for t in reversed(one.order):
            slopes, has_lengths = (sz[t], sn[t], z[t]), layer.seen is not None
            if is_linear:
                dz, dr, dn, dhn, direct = _GRU_LINEAR_STEP[has_lengths](dh, given(t), *slopes, hn[t], r[t], *layer.seen_at(t))
                das_recurrent[t] = _ops.concat(dz, dr, dhn, axis=1)
                product = _ops.matmul(das_recurrent[t], one.recurrent)
            else:
                dz, dn, direct = _GRU_STEP[has_lengths](dh, given(t), *slopes, *layer.seen_at(t))
                dr, through = _GRU_RESET(_ops.matmul(dn, one.recurrent[2 * hidden:]), h[t], r[t])
                direct = _ops.add(direct, through)
                product = _ops.matmul(_ops.concat(dz, dr, axis=1), one.recurrent[:2 * hidden])
            das[t] = _ops.concat(dz, dr, dn, axis=1)
            dh = one.carried(t, dh, _ops.add(direct, product))
        da = _stacked(das)
        da_recurrent = _stacked(das_recurrent) if is_linear else da
        parts = [(h, 3)] if is_linear else [(h, 2), (kept, 1)]
        found.append([*layer.parameters(one, da, da_recurrent, parts), dh])
    return _collected(found, layer, inputs, [None])
