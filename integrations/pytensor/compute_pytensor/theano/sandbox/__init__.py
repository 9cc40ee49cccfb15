# SPDX-License-Identifier: Apache-2.0
"""`theano.sandbox`."""
from . import cuda  # noqa: F401
