# SPDX-License-Identifier: Apache-2.0
"""The backend: what keras.src.backend takes from it."""
from keras.src.backend.common.name_scope import name_scope

from .variable import (IS_THREAD_SAFE, SUPPORTS_COMPLEX_DTYPES, SUPPORTS_RAGGED_TENSORS, SUPPORTS_SPARSE_TENSORS, Variable,
                       cast, convert_to_numpy, convert_to_tensor, device_scope, is_tensor, shape)
from .ops import core, image, linalg, math, nn, numpy
from .ops.core import compute_output_spec, cond, random_seed_dtype, vectorized_map
from . import random
from .rnn import bidirectional_gru, bidirectional_lstm, cudnn_ok, gru, lstm, rnn

distribution_lib = None
