# SPDX-License-Identifier: Apache-2.0
"""What the tests share: sessions of this provider and of ONNX Runtime's own for CPUs."""
import importlib.util
import pathlib
import unittest

import numpy as np
import onnx
import onnxruntime
import onnxruntime_compute
from onnx import TensorProto, helper

OURS, CPU = onnxruntime_compute.NAME, "CPUExecutionProvider"
onnxruntime_compute.register()


def session_of(model, options=None, alone=False, provider_options=None, threads=2):
    """A session with this provider. With `alone`, none if a node would run elsewhere."""
    settings = options or onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    if alone:
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    data = model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model)
    ours = (OURS, provider_options) if provider_options else OURS
    return onnxruntime.InferenceSession(data, settings, providers=[ours] if alone else [ours, CPU], enable_fallback=0)


def session_on_cpu(model, threads=2):
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    data = model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model)
    return onnxruntime.InferenceSession(data, settings, providers=[CPU])


def model_of(nodes, inputs, outputs, constants=None, opset=17):
    """`inputs` and `outputs`: name -> (dtype of NumPy, shape); `constants`: name -> array."""
    def values(of):
        return [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
                for name, (dtype, shape) in of.items()]

    initializers = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "graph", values(inputs), values(outputs), initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def package_file(package, path):
    """A file of a package that need not be importable."""
    found = importlib.util.find_spec(package)
    if found is None:
        raise unittest.SkipTest(f"without the package {package}")
    return pathlib.Path(found.submodule_search_locations[0]) / path


def share_of_nodes(path):
    """The part of a model's nodes, counted after ONNX Runtime's optimizations, that this provider runs."""
    settings = onnxruntime.SessionOptions()
    settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    counts = {}
    for part in session_of(path, settings).get_provider_graph_assignment_info():
        counts[part.ep_name] = counts.get(part.ep_name, 0) + len(part.get_nodes())
    return counts.get(OURS, 0) / max(1, sum(counts.values())), counts


__all__ = ["CPU", "OURS", "TensorProto", "helper", "model_of", "np", "onnx", "onnxruntime", "onnxruntime_compute",
           "package_file", "session_of", "session_on_cpu", "share_of_nodes", "unittest"]
