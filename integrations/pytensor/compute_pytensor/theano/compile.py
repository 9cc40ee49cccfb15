# SPDX-License-Identifier: Apache-2.0
"""`theano.compile`."""
from pytensor.compile import *  # noqa: F401,F403
from pytensor.compile.io import In, Out  # noqa: F401
from pytensor.compile.mode import Mode, get_default_mode, get_mode  # noqa: F401
