# SPDX-License-Identifier: Apache-2.0
"""The functions of keras.ops on arrays and variables of `compute`."""
