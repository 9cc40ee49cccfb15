# SPDX-License-Identifier: Apache-2.0
"""Models of ONNX Runtime on devices of `compute`.

>>> import onnxruntime, onnxruntime_compute
>>> onnxruntime_compute.register()
>>> session = onnxruntime.InferenceSession("model.onnx", providers=["ComputeExecutionProvider", "CPUExecutionProvider"])

COMPUTE_DEVICE chooses the device, or the provider's option `device`.
"""
from __future__ import annotations

import ctypes
import os
import pathlib
import threading

from ._version import __version__

NAME = "ComputeExecutionProvider"
__all__ = ["NAME", "Counters", "counters", "library_path", "op_names", "register", "uncalled_functions",
           "use_everywhere"]

_lock = threading.Lock()
_registered = False


def library_path() -> str:
    """The file of the provider: ONNXRUNTIME_COMPUTE_LIBRARY, or the one in this package."""
    given = os.environ.get("ONNXRUNTIME_COMPUTE_LIBRARY")
    path = pathlib.Path(given) if given else pathlib.Path(__file__).with_name("libonnxruntime_compute.so")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; build it, or set ONNXRUNTIME_COMPUTE_LIBRARY to it")
    return str(path)


def register() -> None:
    """Makes the provider known to ONNX Runtime in this process. Further calls do nothing."""
    global _registered
    import onnxruntime

    with _lock:
        if not _registered:
            onnxruntime.register_execution_provider_library(NAME, library_path())
            _registered = True


def _with_provider(providers, options):
    """The providers of a session, with this one in front unless it is among them."""
    if providers is None:
        providers = ["CPUExecutionProvider"]
    names = [one if isinstance(one, str) else one[0] for one in providers]
    if NAME in names:
        return providers, options
    return [NAME, *providers], None if options is None else [{}, *options]


def use_everywhere() -> None:
    """Registers the provider and puts it in front of those that programs name when they make a session."""
    import onnxruntime

    register()
    session = onnxruntime.InferenceSession
    if getattr(session, "_compute_is_used", False):
        return
    original = session.__init__

    def make(self, path_or_bytes, sess_options=None, providers=None, provider_options=None, **others):
        providers, provider_options = _with_provider(providers, provider_options)
        original(self, path_or_bytes, sess_options, providers, provider_options, **others)

    session.__init__ = make
    session._compute_is_used = True


class Counters(dict):
    """Since the provider was loaded: `runs` of fused nodes, `traces` for new shapes, `copied_inputs` on cpu."""


def counters() -> Counters:
    values = [ctypes.c_int64() for _ in range(3)]
    ctypes.CDLL(library_path()).onnxruntime_compute_counters(*map(ctypes.byref, values))
    return Counters(zip(("runs", "traces", "copied_inputs"), (value.value for value in values)))


def _names(of_ops):
    function = ctypes.CDLL(library_path()).onnxruntime_compute_names
    function.restype = ctypes.c_int64
    text = ctypes.create_string_buffer(1 << 16)
    function(ctypes.c_int32(of_ops), text, ctypes.c_int64(len(text)))
    return text.value.decode().split()


def op_names() -> list[str]:
    """The ops of ONNX that the provider computes, some of them not with all attributes and dtypes."""
    return _names(1)


def uncalled_functions() -> list[str]:
    """Functions of ONNX Runtime that the provider uses and did not call yet."""
    return _names(0)
