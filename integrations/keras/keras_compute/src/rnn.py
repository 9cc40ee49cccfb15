# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers, step by step."""
from __future__ import annotations

import compute as cp
from keras.src import tree

from .variable import cast, convert_to_tensor


def _swapped(x):
    return cp.permute_dims(x, (1, 0, *range(2, x.ndim)))


def _over(mask, x):
    """A mask of the batch with as many axes as what it is for."""
    return mask if mask.ndim >= x.ndim else cp.reshape(mask, (*mask.shape, *[1] * (x.ndim - mask.ndim)))


def rnn(step_function, inputs, initial_states, go_backwards=False, mask=None, constants=None, unroll=False,
        input_length=None, time_major=False, zero_output_for_mask=False, return_all_outputs=True):
    inputs = tree.map_structure(convert_to_tensor, inputs)
    if not time_major:
        inputs = tree.map_structure(_swapped, inputs)
    if mask is not None:
        mask = cast(mask, cp.bool)
        mask = mask if time_major else _swapped(mask)
        if mask.ndim > 2:
            mask = cp.any(cp.reshape(mask, (*mask.shape[:2], -1)), axis=-1)
    flat = tree.flatten(inputs)
    count = flat[0].shape[0]
    if unroll and not count:
        raise ValueError("Unrolling requires a fixed number of timesteps.")
    parts = [cp.unstack(x) for x in flat]
    states, constants, outputs, output = tuple(initial_states), tuple(constants or ()), [], None
    for i in reversed(range(count)) if go_backwards else range(count):
        before = output
        now = tree.pack_sequence_as(inputs, [x[i] for x in parts])
        output, states_after = step_function(now, states + constants)
        if mask is None:
            states = tuple(states_after)
        else:
            flags = mask[i]
            if zero_output_for_mask or (unroll and before is None):
                kept = cp.zeros_like(output)
            elif unroll:
                kept = before
            else:  # the first state is the output before
                kept = states[-1][0] if tree.is_nested(states[0]) else states[0]
            output = cp.where(_over(flags, output), output, kept)
            found = [cp.where(_over(flags, new), new, old)
                     for new, old in zip(tree.flatten(states_after), tree.flatten(states))]
            states = tuple(tree.pack_sequence_as(states, found))
        if return_all_outputs or not outputs:
            outputs.append(output)
        else:
            outputs[0] = output
    stacked = cp.stack(outputs)
    return output, stacked if time_major else _swapped(stacked), states


def cudnn_ok(*args, **kwargs):
    return False


def lstm(*args, **kwargs):
    raise NotImplementedError


gru = bidirectional_lstm = bidirectional_gru = lstm
