# SPDX-License-Identifier: Apache-2.0
"""Devices, streams, and what a `with` statement does with them."""
from __future__ import annotations

import contextlib
import threading

from . import _core
from ._core import Device, Stream
from ._errors import Error

_previous = threading.local()


def device(selector=None, index=None, /):
    """Opens a device. Without a selector, the one that COMPUTE_DEVICE names, or the best one.

    device("cuda", 0) is device("cuda0"), as in PyTorch.

    `with device("cuda0"):` makes it the default device of the thread.

    selector   "cuda0", "gpu", "cuda,cpu" and the like; docs/selecting-devices.md has the grammar

    Raises NotFoundError, a LookupError, if there is no such device, and ValueError for a malformed selector.

    >>> compute.device("cpu")
    Device('cpu')
    >>> with compute.device("cpu"):
    ...     x = compute.ones(3)
    >>> x.device.name
    'cpu'
    """
    return _core.device(selector if index is None else f"{selector}{index}")


def set_default_device(device=None, /):
    """Makes a device the default of the thread for new arrays, for good; None ends that. A `with` statement does it for a block.

    >>> compute.set_default_device("cpu")
    >>> compute.ones(2).device
    Device('cpu')
    >>> compute.set_default_device(None)
    """
    _core.set_thread_device(None if device is None else _core.device(device))


def devices():
    """All devices that can be opened, `cpu` first. docs/selecting-devices.md describes their names.

    >>> compute.devices()[0]
    Device('cpu')
    """
    names = [info["name"] for info in _core.device_list() if not info["unusable"]]
    with contextlib.suppress(Error):
        _core.process_device()  # which the log names, as whoever chose it expects
    is_quiet = _core.config_get("COMPUTE_LOG") == ("info", "default")
    if is_quiet:
        _core.config_set("COMPUTE_LOG", "warn")
    try:
        return tuple(_core.device(name) for name in names)
    finally:
        if is_quiet:
            _core.config_set("COMPUTE_LOG", None)


def device_list():
    """The descriptions of all devices, as dicts. Opens none.

    >>> compute.device_list()[0]["name"]
    'cpu'
    """
    return _core.device_list()


def which(selector=None, /):
    """States which device a selector would open, and why.

    Raises as `device`.

    >>> compute.which("cpu").partition(":")[0]
    'cpu'
    """
    return _core.device_which(selector)


def stream(device=None, *, priority=0):
    """A new stream: a queue of work on a device, which runs beside the device's other streams.

    `with stream:` runs the thread's ops on that device in the stream. Ops of a block return before they have run; reading
    a result waits for it. Results may be used in any stream. Of two streams that have work, the one with the higher
    `priority` runs sooner, where the device can; 0 is normal.

    >>> with compute.stream("cpu"):
    ...     x = compute.ones(3) + 1
    >>> x
    Array([2., 2., 2.], dtype=float32)
    """
    return _core.stream(device, priority)


def _stack(name):
    stack = getattr(_previous, name, None)
    if stack is None:
        stack = []
        setattr(_previous, name, stack)
    return stack


def _enter_device(self):
    _stack("devices").append(_core.set_thread_device(self))
    return self


def _exit_device(self, *exception):
    _core.set_thread_device(_stack("devices").pop())


def _enter_stream(self):
    _stack("streams").append(_core.set_current_stream(self))
    return self


def _exit_stream(self, *exception):
    _core.set_current_stream(_stack("streams").pop())


def _trim(self, keep_bytes=0):
    """Frees cached memory until at most `keep_bytes` bytes are cached."""
    self._trim(keep_bytes)


Device.__enter__ = _enter_device
Device.__exit__ = _exit_device
Device.trim = _trim
Stream.__enter__ = _enter_stream
Stream.__exit__ = _exit_stream
_core.hooks["device"] = device
