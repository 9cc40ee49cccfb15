# SPDX-License-Identifier: Apache-2.0
"""What compute-bench and the *_peers.py scripts share."""
