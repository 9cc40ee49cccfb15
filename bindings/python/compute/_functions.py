# SPDX-License-Identifier: Apache-2.0
"""The standard's functions over the ops: what `compute` has of them, beside creation, indices and shapes."""
from ._elementwise import *
from ._products import *
from ._reductions import *
from ._sorting import *
