# SPDX-License-Identifier: Apache-2.0
"""The modules of compute-bench."""
