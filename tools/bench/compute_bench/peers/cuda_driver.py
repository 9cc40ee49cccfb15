# SPDX-License-Identifier: Apache-2.0
"""CUDA's driver: a kernel that adds, launched directly."""
import ctypes

from . import open_library
from .device import DevicePeer, Operand

KERNEL = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry compute_bench_add(.param .u64 px, .param .u64 py, .param .u64 pz, .param .u32 pn)
{
  .reg .pred at_end;
  .reg .b32 i, n;
  .reg .b64 x, y, z, offset;
  .reg .f32 f, g;
  ld.param.u64 x, [px];
  ld.param.u64 y, [py];
  ld.param.u64 z, [pz];
  ld.param.u32 n, [pn];
  mov.u32 i, %tid.x;
  setp.ge.u32 at_end, i, n;
  @at_end ret;
  mul.wide.u32 offset, i, 4;
  add.u64 x, x, offset;
  add.u64 y, y, offset;
  add.u64 z, z, offset;
  ld.global.f32 f, [x];
  ld.global.f32 g, [y];
  add.f32 f, f, g;
  st.global.f32 [z], f;
  ret;
}
"""


class NativeCuda(ctypes.Structure):
    """compute_native_cuda."""
    kind = 34
    _fields_ = [("struct_size", ctypes.c_uint32), ("struct_type", ctypes.c_uint32), ("next", ctypes.c_void_p), ("device", ctypes.c_int32),
                ("reserved", ctypes.c_int32), ("context", ctypes.c_uint64), ("stream", ctypes.c_uint64), ("address", ctypes.c_uint64)]


class CudaDriver(DevicePeer):
    name = "cuda_driver"

    def __init__(self, device, threads, lib):
        if not device.startswith("cuda"):
            raise ImportError(f"{self.name} has CUDA devices only")
        self.driver = open_library("libcuda.so.1")
        super().__init__(lib)
        native = NativeCuda(ctypes.sizeof(NativeCuda))
        lib.check(lib.c.compute_device_native_handle(lib.device, NativeCuda.kind, ctypes.byref(native)))
        self.driver.cuCtxSetCurrent(ctypes.c_void_p(native.context))

    def array(self, data, dtype, shape):
        raise TypeError("it has no ops")

    def require(self, status):
        if status != 0:
            raise ImportError(f"{self.name} returned {status}")

    def synchronize(self):
        self.driver.cuStreamSynchronize(ctypes.c_void_p(self.queue.value))

    def launch(self, count):
        """A launch that adds `count` float32: the function, its arguments, and the objects that they need."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.require(self.driver.cuModuleLoadDataEx(ctypes.byref(module), KERNEL, 0, None, None))
        self.require(self.driver.cuModuleGetFunction(ctypes.byref(function), module, b"compute_bench_add"))
        operands = [Operand(self.lib, "float32", [count]) for _ in range(3)]
        values = [ctypes.c_uint64(one.handle.value + one.offset.value) for one in operands] + [ctypes.c_uint32(count)]
        parameters = (ctypes.c_void_p * 4)(*[ctypes.addressof(value) for value in values])
        arguments = [function.value, 1, 1, 1, count, 1, 1, 0, self.queue.value, ctypes.addressof(parameters), 0]
        return self.driver.cuLaunchKernel, arguments, (operands, values, parameters)


PEER = CudaDriver
