# SPDX-License-Identifier: Apache-2.0
"""The import hook that makes KERAS_BACKEND=compute a backend of Keras 3.15.

Modules of Keras choose the backend by chains of `elif`. The hook compiles these modules with one more branch. It also
lets convolutions add their bias, which saves a pass over memory.
"""
from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys

_RAISE = 'else:\n    raise RuntimeError(\n        f"Backend \'{{backend.backend()}}\' must implement {what}"\n'
_BRANCH = 'elif backend.backend() == "compute":\n    from keras_compute.src.{module} import {name} as {alias}\n'


def _chosen(what, module, name, alias):
    """What is replaced where a class of the backend is imported."""
    found = _RAISE.format(what=what)
    return found, _BRANCH.format(module=module, name=name, alias=alias) + found


_BIAS = "        if self.use_bias:\n            if self.data_format == \"channels_last\":\n"


def _with_bias(convolve, inputs, padding):
    """What is replaced in a layer so that a convolution adds its bias itself."""
    return [(convolve, "        from keras_compute.src.ops.nn import convolution_with_bias\n\n"
                       f"        outputs = convolution_with_bias(self, {inputs}, {padding})\n"
                       "        has_bias = outputs is not None\n"
                       "        if not has_bias:\n"
                       + "".join(f"    {line}\n" for line in convolve.splitlines())),
            (_BIAS, _BIAS.replace("self.use_bias", "self.use_bias and not has_bias"))]


# Text that occurs in a module, once, and what stands in its place; or a list of these.
CHANGES = {
    "keras.src.backend": (
        'else:\n    raise ValueError(f"Unable to import backend : {backend()}")',
        'elif backend() == "compute":\n'
        "    from keras_compute.src import *  # noqa: F403\n"
        "    from keras_compute.src.variable import Variable as BackendVariable\n\n"
        "    distribution_lib = None\n"
        'else:\n    raise ValueError(f"Unable to import backend : {backend()}")'),
    "keras.src.layers.layer": _chosen("a layer mixin class.", "layer", "ComputeLayer", "BackendLayer"),
    "keras.src.models.model": _chosen("the Trainer class.", "trainer", "ComputeTrainer", "Trainer"),
    "keras.src.export.saved_model": _chosen("ExportArchive.", "export", "ComputeExportArchive",
                                            "BackendSavedModelExportArchive"),
    "keras.src.utils.backend_utils": (
        '        if self._backend == "openvino":\n',
        '        if self._backend == "compute":\n'
        '            return getattr(importlib.import_module("keras_compute.src"), name)\n'
        '        if self._backend == "openvino":\n'),
    # In the mode int4 `embeddings` is a new tensor, on which the attribute has no effect; arrays do not have it.
    "keras.src.layers.core.embedding": ("        self.embeddings.trainable = False\n",
                                        "        self._embeddings.trainable = False\n"),
    "keras.src.layers.convolutional.base_conv": _with_bias(
        "        outputs = self.convolution_op(inputs, self.kernel)\n", "inputs", "self.padding"),
    "keras.src.layers.convolutional.conv1d": _with_bias(
        "        outputs = ops.conv(\n            inputs,\n            self.kernel,\n"
        "            strides=list(self.strides),\n            padding=padding,\n"
        "            dilation_rate=self.dilation_rate,\n            data_format=self.data_format,\n        )\n",
        "inputs", "padding"),
    "keras.src.optimizers.optimizer": (
        "else:\n\n    class BackendOptimizer(base_optimizer.BaseOptimizer):\n",
        'elif backend.backend() == "compute":\n'
        "    from keras_compute.src.optimizer import ComputeOptimizer as BackendOptimizer\n"
        "else:\n\n    class BackendOptimizer(base_optimizer.BaseOptimizer):\n"),
    "keras.src.utils.traceback_utils": (
        '            tensor_cls = "np.ndarray"\n        else:\n',
        '            tensor_cls = "np.ndarray"\n'
        '        elif backend.backend() == "compute":\n            tensor_cls = "compute.Array"\n        else:\n'),
}


class _Loader(importlib.abc.SourceLoader):
    """Loads a module of Keras with its changes."""

    def __init__(self, loader):
        self._loader = loader

    def get_filename(self, name):
        return self._loader.get_filename(name)

    def get_data(self, path):
        return self._loader.get_data(path)

    def get_source(self, name):
        source = self._loader.get_source(name)
        changes = CHANGES[name]
        for found, changed in changes if isinstance(changes, list) else [changes]:
            if source.count(found) != 1:
                raise ImportError(f"keras_compute: {name} of this version of Keras is not known; install keras 3.15")
            source = source.replace(found, changed)
        return source

    def source_to_code(self, data, path="<string>"):
        return compile(data, path, "exec", dont_inherit=True)

    def get_code(self, name):
        return self.source_to_code(self.get_source(name), self.get_filename(name))


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name not in CHANGES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def _is_pluggable():
    """Whether Keras imports keras_<name>.src itself."""
    spec = importlib.util.find_spec("keras")
    if spec is None or not spec.submodule_search_locations:
        return False
    with open(f"{spec.submodule_search_locations[0]}/src/backend/config.py", encoding="utf-8") as file:
        return '"compute"' in file.read()


def install():
    """Installs the hook once. Raises ImportError if Keras is imported already, without it."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path) or _is_pluggable():
        return
    if "keras.src.backend" in sys.modules:
        raise ImportError("keras_compute: import it before keras")
    sys.meta_path.insert(0, _Finder())
