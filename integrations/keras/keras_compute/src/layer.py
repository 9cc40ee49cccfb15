# SPDX-License-Identifier: Apache-2.0
"""What layers have beyond Keras' own."""


class ComputeLayer:
    pass
