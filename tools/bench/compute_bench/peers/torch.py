# SPDX-License-Identifier: Apache-2.0
"""PyTorch, on the processor and on CUDA devices. An OpenCL device is compared with the same GPU by CUDA."""
from . import Peer


class Torch(Peer):
    name = "torch"
    renamed = {"bitwise_invert": "bitwise_not", "equal": "eq", "not_equal": "ne"}

    def __init__(self, device, threads, lib):
        import os
        import warnings
        import torch
        warnings.simplefilter("ignore")  # about the shapes of given results
        self.module = torch
        torch.set_grad_enabled(False)
        if device == "cpu":
            self.place = "cpu"
            if threads:
                torch.set_num_threads(threads)
        elif torch.cuda.is_available() and (gpu := self.gpu(device, lib)) is not None:
            self.place = f"cuda:{gpu}"
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = os.environ.get("COMPUTE_MATH") == "tf32"
        else:
            raise ImportError(f"torch does not have {device}")

    def gpu(self, device, lib):
        """The number of the device, or of the first one with the name of an OpenCL device."""
        if device.startswith("cuda"):
            return device[4:] or "0"
        names = [self.module.cuda.get_device_name(i) for i in range(self.module.cuda.device_count())]
        return names.index(lib.description()) if lib.description() in names else None

    def array(self, data, dtype, shape):
        torch = self.module
        flat = torch.frombuffer(bytearray(data), dtype=getattr(torch, dtype))
        return flat.reshape(shape).to(self.place)

    def error(self, result, data):
        torch = self.module
        wide = torch.complex128 if result.dtype.is_complex else torch.float64
        ours = torch.frombuffer(bytearray(data), dtype=result.dtype).reshape(result.shape).to(wide)
        theirs = result.cpu().to(wide)
        apart = torch.where((ours == theirs) | ours.isnan() & theirs.isnan(), 0, (ours - theirs).abs())
        finite = theirs[theirs.isfinite()]
        return apart.max().item() / max(finite.abs().max().item() if finite.numel() else 0, 1)

    def synchronize(self):
        if self.place != "cpu":
            self.module.cuda.synchronize()

    def copy(self, out, x):
        return out.copy_(x)

    def reduce(self, name, x, axes, out, **more):
        torch = self.module
        if name in ("var", "std"):
            return getattr(torch, name)(x, dim=axes, correction=0, out=out)
        name = {"max": "amax"}.get(name, name)
        if axes is None:
            axes = tuple(range(x.dim()))
        return getattr(torch, name)(x, dim=axes, out=out)

    def argmax(self, x, axis, out):
        return self.module.argmax(x, dim=axis, out=out)

    def take(self, table, indices, out):
        return self.module.index_select(table, 0, indices, out=out)

    def take_along(self, x, indices, axis):
        return self.module.gather(x, axis, indices)

    def concat(self, arrays, axis, out):
        return self.module.cat(arrays, axis, out=out)

    def where(self, mask, x, y, out):
        return self.module.where(mask, x, y, out=out)

    def power(self, x, y, out):
        return self.module.pow(x, y, out=out)

    def to_host(self, x):
        return x.cpu()

    def to_device(self, x):
        return x.to(self.place)

    def transfer(self, size_bytes, to_device, is_pinned):
        host, there = self.module.ones(size_bytes // 4), self.module.ones(size_bytes // 4, device=self.place)
        if is_pinned:
            host = host.pin_memory()
        src, dst = (host, there) if to_device else (there, host)
        return lambda: dst.copy_(src, non_blocking=is_pinned)

    def train(self, network, data, count):
        from . import torch_training
        self.module.manual_seed(1)
        with self.module.enable_grad():
            return getattr(torch_training, network)(data, count, self.place)


PEER = Torch
