# SPDX-License-Identifier: Apache-2.0
"""Memory that other libraries share: buffers, DLPack, NumPy, pickle."""
import array
import copy
import ctypes
import gc
import json
import multiprocessing
import os
import pathlib
import pickle
import struct
import tempfile
import threading
import weakref

import compute as cp
import numpy as np

from case import ALL, NUMERIC, Case

class Exchange(Case):
    def setUp(self):
        super().setUp()
        self.on_host = cp.__array_namespace_info__().default_device().name == "cpu"

    def test_to_numpy(self):
        for dtype in ALL:
            x = self.numbers(dtype, (3, 4))
            a = self.device_array(x)
            np.testing.assert_array_equal(np.asarray(a), x)
            np.testing.assert_array_equal(np.asarray(a.mT), x.T)
            np.testing.assert_array_equal(np.asarray(a[::2, ::-1]), x[::2, ::-1])
        np.testing.assert_array_equal(np.asarray(cp.asarray([0.5], dtype=cp.bfloat16)), [0.5])
        self.assertEqual(np.asarray(cp.zeros((0, 3))).shape, (0, 3))
        self.assertEqual(np.asarray(cp.ones(2), dtype="float64").dtype, np.float64)

    def test_memory_is_shared_on_the_host(self):
        a = cp.zeros((3,), device="cpu")
        view = np.asarray(a)
        view[1] = 5
        self.assertEqual(float(a[1]), 5)
        x = np.zeros(4)
        b = cp.asarray(x, device="cpu")
        b[2] = 7
        self.assertEqual(x[2], 7)
        x[0] = 3
        self.assertEqual(float(b[0]), 3)
        self.assertNotEqual(float(cp.asarray(x, device="cpu", copy=True)[0]), 0)
        independent = cp.asarray(x, device="cpu", copy=True)
        independent[0] = 0
        self.assertEqual(x[0], 3)

    def test_buffers_keep_their_owner_alive(self):
        x = array.array("d", [1, 2, 3])
        a = cp.asarray(x, device="cpu")
        with self.assertRaises(BufferError):
            x.append(4)
        self.assertEqual(a.tolist(), [1, 2, 3])
        del a
        gc.collect()
        x.append(4)
        b = cp.asarray([1.0, 2.0], device="cpu")
        view = memoryview(b)
        del b
        self.assertEqual(view.tolist(), [1, 2])
        self.assertEqual((view.format, view.shape, view.strides), ("f", (2,), (4,)))

    def test_read_only_buffers(self):
        a = cp.asarray(b"abc", device="cpu")
        self.assertEqual(a.tolist(), [97, 98, 99])
        a[0] = 1  # a copy
        with self.assertRaises(BufferError):
            memoryview(cp.asarray([1.0], dtype=cp.bfloat16, device="cpu"))
        with self.assertRaises(BufferError):
            np.frombuffer(cp.zeros((4, 4), device="cpu").T, np.float32)  # takes no strides

    def test_buffers_of_ctypes(self):
        for kind, dtype in {"c_bool": "bool", "c_byte": "int8", "c_ubyte": "uint8", "c_short": "int16", "c_ushort": "uint16", "c_int": "int32", "c_uint": "uint32",
                            "c_long": "int64", "c_ulong": "uint64", "c_longlong": "int64", "c_float": "float32", "c_double": "float64"}.items():
            kind = getattr(ctypes, kind)
            self.assert_same(cp.asarray((kind * 3)(1, 0, 1), device="cpu"), np.array([1, 0, 1], dtype), note=str(kind))
            self.assert_same(cp.asarray(kind(1), device="cpu"), np.array(1, dtype), note=str(kind))
            self.assert_same(cp.asarray(((kind * 2) * 3)((1, 0), (0, 1), (1, 1)), device="cpu"), np.array([[1, 0], [0, 1], [1, 1]], dtype), note=str(kind))
            self.assert_same(cp.asarray((kind * 0)(), device="cpu"), np.zeros(0, dtype), note=str(kind))
        for shared in ((ctypes.c_float * 4)(), multiprocessing.RawArray("f", 4)):
            a = cp.asarray(shared, device="cpu")
            shared[1] = 5
            a[2] = 7
            self.assertEqual((a.tolist(), list(shared)), ([0, 5, 7, 0],) * 2)
            a = cp.zeros(4)
            a[...] = shared
            a[1:3] = memoryview(shared)[:2]
            self.assertEqual(a.tolist(), [0, 0, 5, 0])

        class Record(ctypes.Structure):
            _fields_ = [("number", ctypes.c_int)]

        class Nothing(ctypes.Structure):
            _fields_ = []

        for kind in (Record, Nothing, ctypes.c_char, ctypes.c_wchar, ctypes.c_void_p, ctypes.c_longdouble, ctypes.c_int.__ctype_be__):
            with self.assertRaisesRegex(TypeError, "^asarray: no dtype of this package is that of ", msg=kind):
                cp.asarray((kind * 3)())

    def test_formats_of_memoryviews(self):
        data = bytes(range(48))
        for code in "?bBhHiIlLqQnNfdcP":
            view = memoryview(data[:16] if code != "?" else b"\0\1" * 8).cast(code)
            for part in (view, view[::2], view[::-1], view[1:1]):
                if code in "cP":
                    with self.assertRaisesRegex(TypeError, f"^asarray: no dtype .* the format '{code}'"):
                        cp.asarray(part)
                else:
                    self.assertEqual(cp.asarray(part, device="cpu").tolist(), part.tolist(), code)
        self.assertEqual(cp.asarray(memoryview(data).cast("B", (2, 3, 8)), device="cpu").tolist(), memoryview(data).cast("B", (2, 3, 8)).tolist())
        self.assertEqual(cp.asarray(memoryview(data[:4]).cast("i", ()), device="cpu").shape, ())
        self.assert_same(cp.asarray(memoryview(np.arange(6.0).reshape(2, 3).T), device="cpu"), np.arange(6.0).reshape(2, 3).T)
        self.assert_same(cp.asarray(np.frombuffer(data[1:13] + b"\0", np.uint8)[1:].view("int32"), device="cpu"), np.frombuffer(data[2:13] + b"\0", np.int32))

    def test_extensions_see_integers_of_numpy(self):
        for name in ("int64", "uint64"):
            self.assertEqual(np.asarray(cp.zeros(2, dtype=name, device="cpu")).dtype.char, np.dtype(name).char)

    def test_times_are_no_numbers(self):
        a = cp.zeros(8)
        for times in (np.zeros(3, "M8[D]"), np.zeros((), "m8[s]"), np.datetime64("2026-11-27"), np.timedelta64(3, "s"), [np.datetime64("2026-11-27")] * 2):
            for call in (cp.asarray, lambda x: cp.asarray(x, device="cpu", copy=True), lambda x: a.__setitem__(..., x)):
                with self.assertRaisesRegex(TypeError, "^asarray: no dtype of this package is that of "):
                    call(times)

    def test_memory_that_was_shared_otherwise_is_copied(self):
        x = np.arange(12.0)
        shared = cp.asarray(x, device="cpu")
        view = np.lib.stride_tricks.sliding_window_view(x, 3)  # read-only, and overlaps itself
        self.assert_same(cp.asarray(view), view)
        frozen = x[2:5]
        frozen.flags.writeable = False
        self.assert_same(cp.asarray(frozen, device="cpu"), frozen)
        self.assertEqual(float(shared[2]), 2)

    def test_fields_of_records_are_copied(self):
        records = np.zeros(3, [("flag", "i1"), ("number", "<i4")])
        records["number"] = [1, 2, 3]
        self.assert_same(cp.asarray(records["number"]), records["number"])
        self.assert_same(cp.asarray(records["number"], dtype="float32"), records["number"].astype(np.float32))
        with self.assertRaises(NotImplementedError):
            cp.asarray(records["number"], device="cpu", copy=False)

    def test_dlpack_of_memory_that_partly_overlaps(self):
        class Exporter:
            """Shares memory, or copies it where that is asked for, which arrays of NumPy 1 do not."""
            def __init__(self, x):
                self.x = x

            def __dlpack_device__(self):
                return 1, 0

            def __dlpack__(self, *, max_version=None, copy=False):
                return cp.asarray(self.x, device="cpu", copy=copy).__dlpack__(max_version=max_version)

        x = np.arange(12.0)
        part = cp.from_dlpack(Exporter(x[3:5]))
        x[3] = 7
        self.assertEqual(part.tolist(), [7, 4])  # shared
        with self.assertRaises(NotImplementedError):
            cp.from_dlpack(Exporter(x), copy=False)
        self.assert_same(cp.from_dlpack(Exporter(x)), x)

    def test_numbers_beside_arrays_in_sequences(self):
        self.assert_same(cp.asarray([cp.asarray(1.5), 2]), np.float32([1.5, 2]))
        self.assert_same(cp.asarray([np.float64(1.5), 2], device="cpu"), np.float64([1.5, 2]))
        self.assert_same(cp.asarray([[1, cp.asarray(2, dtype=cp.int8)]]), np.int8([[1, 2]]))
        with self.assertRaises(OverflowError):
            cp.asarray([cp.asarray(1, dtype=cp.int8), 300])
        self.assert_same(cp.asarray([cp.asarray(1), 2.5]), np.float32([1, 2.5]))

    def test_dlpack_from_numpy(self):
        x = np.arange(6.0).reshape(2, 3)[:, ::2]
        a = cp.from_dlpack(x)
        np.testing.assert_array_equal(np.asarray(a), x)
        x[0, 0] = 9
        self.assertEqual(float(a[0, 0]), 9)
        a[1, 1] = 8
        self.assertEqual(x[1, 1], 8)

    def test_dlpack_to_numpy(self):
        for dtype in NUMERIC:  # NumPy 1 knows no bool here
            x = self.numbers(dtype, (2, 3))
            a = cp.asarray(x, device="cpu", copy=True)
            y = np.from_dlpack(a)
            np.testing.assert_array_equal(y, x)
            del a
            gc.collect()
            np.testing.assert_array_equal(y, x)

    def test_dlpack_forms(self):
        a = cp.asarray([1.0, 2.0], device="cpu")
        self.assertEqual(a.__dlpack_device__(), (1, 0))
        for options in ({}, {"max_version": (1, 0)}, {"max_version": (0, 8)}, {"copy": True, "max_version": (1, 0)}):
            b = cp.from_dlpack(a.__dlpack__(**options))
            self.assertEqual(b.tolist(), [1, 2])
            b[0] = 5
            self.assertEqual(float(a[0]), 1 if options.get("copy") else 5)
            a[0] = 1
        used = a.__dlpack__()
        cp.from_dlpack(used)
        with self.assertRaises(ValueError):
            cp.from_dlpack(used)
        with self.assertRaises(ValueError):
            a.__dlpack__(stream=3)
        with self.assertRaises(BufferError):
            a.__dlpack__(dl_device=(2, 0))
        a.__dlpack__()  # a capsule that nobody takes frees what it holds

    def test_dlpack_exchange_api(self):
        api = ctypes.pythonapi.PyCapsule_GetPointer
        api.restype, api.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        table = api(cp.Array.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
        major, minor = ctypes.cast(table, ctypes.POINTER(ctypes.c_uint32))[0:2]
        self.assertEqual((major, minor), (1, 2))
        entries = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))
        managed = ctypes.c_void_p()
        make = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))(entries[3])
        take = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.py_object))(entries[4])
        a = cp.asarray([1.0, 2.0])
        self.assertEqual(make(a, ctypes.byref(managed)), 0)
        result = ctypes.py_object()
        self.assertEqual(take(managed, ctypes.byref(result)), 0)
        result.value[0] = 5.0
        self.assertEqual(a.tolist(), [5, 2])

    def test_dlpack_of_negative_strides(self):
        a = cp.flip(cp.arange(3, device="cpu"))
        b = cp.from_dlpack(a.__dlpack__(max_version=(1, 0)))
        self.assertEqual((b.tolist(), b.strides), ([2, 1, 0], (1,)))
        with self.assertRaisesRegex(BufferError, "negative strides"):
            a.__dlpack__(copy=False)

    def test_dlpack_deleters_are_called_once(self):
        class Managed(ctypes.Structure):
            pass

        class Versioned(ctypes.Structure):
            pass

        Managed._fields_ = [("tensor", ctypes.c_byte * 48), ("context", ctypes.c_void_p),
                            ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]
        Versioned._fields_ = [("version", ctypes.c_uint64), ("context", ctypes.c_void_p),
                              ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]
        api = ctypes.pythonapi.PyCapsule_GetPointer
        api.restype, api.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        for kind, name, options in ((Managed, b"dltensor", {}),
                                    (Versioned, b"dltensor_versioned", {"max_version": (1, 0)})):
            x = np.zeros(1000).view(type("Owner", (np.ndarray,), {}))
            alive = weakref.ref(x)
            capsule = cp.asarray(x, device="cpu").__dlpack__(**options)
            del x
            gc.collect()
            self.assertIsNotNone(alive())
            address = api(capsule, name)
            kind.from_address(address).deleter(address)  # as a consumer that fails, and leaves the capsule as it was
            del capsule
            cp.zeros(1)
            self.assertIsNone(alive())

    def test_dlpack_of_a_device_on_the_host(self):
        a = cp.asarray([1.0, 2.0])
        b = cp.from_dlpack(a.__dlpack__(dl_device=(1, 0), max_version=(1, 0)))
        self.assertEqual((b.tolist(), b.device.name), ([1, 2], "cpu"))

    def test_dlpack_owners_die_on_any_thread(self):
        class Owner(np.ndarray):
            pass

        x = np.zeros(1000).view(Owner)
        alive = weakref.ref(x)
        arrays = [cp.from_dlpack(x)]
        del x
        self.assertIsNotNone(alive())
        thread = threading.Thread(target=arrays.clear)
        thread.start()
        thread.join()
        gc.collect()
        cp.zeros(1)  # what came back on the other thread is freed here at the latest
        self.assertIsNone(alive())

    def test_pickle_and_copy(self):
        for dtype in ALL:
            a = self.device_array(self.numbers(dtype, (2, 3)))[:, ::2]
            for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
                b = pickle.loads(pickle.dumps(a, protocol))
                self.assert_same(b, np.asarray(a))
                self.assertIs(b.device, a.device)
            buffers = []
            data = pickle.dumps(a, 5, buffer_callback=buffers.append)
            self.assertEqual(len(buffers), 1)
            self.assert_same(pickle.loads(data, buffers=buffers), np.asarray(a))
            for same in (copy.copy(a), copy.deepcopy(a)):
                same[...] = cp.zeros((), dtype=a.dtype)
            self.assertIs(pickle.loads(pickle.dumps(a.dtype)), a.dtype)
        self.assertIs(pickle.loads(pickle.dumps(a.device)), a.device)

    def test_functions_of_numpy(self):
        x = self.numbers("float32", (3, 4))
        a = self.device_array(x)
        for function in (np.exp, np.negative, np.sum, np.mean, np.transpose, np.argmax,
                         lambda x: np.add(x, np.float32(2)), lambda x: np.multiply(3, x), lambda x: np.float32(2) * x,
                         lambda x: np.sum(x, axis=(0, 1), keepdims=True, dtype=np.float32), lambda x: np.max(x, axis=1),
                         lambda x: np.concatenate([x, x], axis=1), lambda x: np.stack([x, x]), lambda x: np.tensordot(x, x),
                         lambda x: np.reshape(x, (4, 3)), lambda x: np.where(np.greater(x, 0), x, 0), np.ones_like,
                         lambda x: np.var(x, axis=0, ddof=1), lambda x: x.sum(axis=1), lambda x: x.reshape(2, 6),
                         lambda x: np.matmul(x, x.T), lambda x: np.add(x, x, dtype=np.float32)):
            self.assert_same(function(a), function(x), 1e-6, note=f"{function}")
        mask = np.asarray([True, False, True, True])
        flags = self.device_array(mask)
        for function in (lambda x, m: np.fft.fftshift(x), lambda x, m: np.exp2(x), lambda x, m: np.modf(x),
                         lambda x, m: np.divmod(x, 2), lambda x, m: np.ldexp(x, 2), lambda x, m: np.ptp(x),
                         lambda x, m: np.add.reduce(x, axis=1), lambda x, m: np.multiply.accumulate(x),
                         lambda x, m: np.subtract.outer(x, m.astype(np.float32)),
                         lambda x, m: np.exp2(x, dtype=np.float64), lambda x, m: np.sum(x, where=m, initial=1),
                         lambda x, m: np.max(x, initial=1), lambda x, m: np.add.reduce(x, where=m),
                         lambda x, m: np.block([[x, x]])):  # on the host
            actual, expected = function(a, flags), function(x, mask)
            self.assertIs(type(actual), type(expected))
            np.testing.assert_array_equal(actual, expected)
        for order in "CF":
            self.assert_same(np.reshape(a, (4, 3), order=order), x.reshape((4, 3), order=order))
        out = cp.zeros_like(a)
        self.assertIs(np.exp2(a, out=out), out)
        self.assert_same(out, np.exp2(x))
        out = cp.zeros_like(a)
        self.assertIs(np.add(a, a, out=out), out)
        self.assert_same(out, x + x)
        out = self.device_array(x)
        self.assertIs(np.add(out, 1, out=out, where=flags), out)
        self.assert_same(out, np.where(mask, x + 1, x))  # the other elements stay
        out = self.device_array(x)
        np.add(out[1:], out[:-1], out=out[1:])
        self.assert_same(out, np.concatenate([x[:1], x[1:] + x[:-1]]))
        for mixed in (x + a, a + x, np.add(a, x), np.add(x, a)):
            self.assert_same(mixed, x + x)
        for wrong in (lambda: np.exp2(a, out=np.zeros_like(x)),
                      lambda: np.add.at(a, 0, 1), lambda: np.cumsum(a, out=a)):
            with self.assertRaises(TypeError):
                wrong()
        self.assertEqual([cp.float32.__numpy_dtype__, cp.bool.__numpy_dtype__], [np.float32, np.bool_])

    def test_values_are_implicit_transfers(self):
        x, values = cp.ones(3), np.arange(3.0)
        calls = (lambda: x + [1, 2, 3], lambda: values * x, lambda: cp.concat([x, values]), lambda: cp.where([True, False, True], x, values), lambda: cp.sum(values),
                 lambda: cp.interp(x, [0.0, 1.0, 2.0], values), lambda: cp.take(x, [0, 2]))
        for call in calls:
            self.assertIs(call().device, x.device)
        if x.device.name == "cpu":
            return
        cp.config("COMPUTE_TRANSFERS", "error")
        try:
            for call in calls:
                with self.assertRaisesRegex(cp.Error, "COMPUTE_TRANSFERS=error"):
                    call()
            cp.asarray([1.0, 2.0])
        finally:
            cp.config("COMPUTE_TRANSFERS", None)

    def test_pickles_follow_the_default_device(self):
        a = cp.asarray([1.0, 2.0])
        with cp.device("cpu"):  # a default of the thread changes nothing
            data = pickle.dumps(a)
            self.assertIs(pickle.loads(data).device, cp.device())
        self.assertIs(pickle.loads(data).device, a.device)
        self.assertEqual(pickle.loads(pickle.dumps(a.to_device("cpu"))).device.name, "cpu")

    def test_dtypes_that_the_package_has_not(self):
        for x in (np.array(["a"]), np.array([None]), np.arange(3, dtype=">f4"), np.ones(2, np.longdouble),
                  np.ones(2, "f4,i4")):
            with self.assertRaisesRegex(TypeError, "no dtype of this package is that of ndarray"):
                cp.asarray(x)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            for dtype in ALL:
                x = self.numbers(dtype, (2, 3))
                path = f"{folder}/{dtype}.npy"
                cp.save(path, self.device_array(x)[:, ::2])
                np.testing.assert_array_equal(np.load(path), x[:, ::2])
                np.save(path, np.asfortranarray(x))
                self.assert_same(cp.load(path), x)
            path = f"{folder}/a.safetensors"
            saved = {"weights": cp.asarray([[0.5, 2.0]], dtype=cp.bfloat16), "empty": cp.zeros((0, 3)),
                     "steps": cp.asarray(7)}
            cp.save(path, saved)
            loaded = cp.load(path)
            self.assertEqual(list(loaded), list(saved))
            for name, x in saved.items():
                self.assertEqual((loaded[name].dtype, loaded[name].tolist()), (x.dtype, x.tolist()))
            with self.assertRaises(ValueError):
                cp.save(f"{folder}/a.txt", cp.zeros(1))
            with self.assertRaises(TypeError):
                cp.save(path, {"a": cp.asarray(1j)})
            for wrong in ({"a": "b"}, {1: cp.zeros(1)}, {"a": {"b": cp.zeros(1)}}):
                with self.assertRaises(TypeError):
                    cp.save(path, wrong)
            cp.save(f"{folder}/a", np.ones(2))  # as NumPy names the file
            self.assertEqual(cp.load(f"{folder}/a.npy").tolist(), [1, 1])
            for name, save in ((b"b.npy", cp.save), (b"c", cp.save), (b"d", cp.savez), (b"e.npz", cp.savez_compressed)):
                save(os.path.join(os.fsencode(folder), name), cp.ones(2))
            self.assertEqual(cp.load(os.fsencode(f"{folder}/c.npy")).tolist(), [1, 1])
            self.assertLessEqual({"b.npy", "c.npy", "d.npz", "e.npz"}, set(os.listdir(folder)))
            with self.assertRaisesRegex(TypeError, "not a compute.Array but of the type set"):
                cp.save(f"{folder}/a.npy", {1, 2})
            with self.assertRaisesRegex(ValueError, "__metadata__"):
                cp.save(path, {"__metadata__": cp.zeros(1)})

    def test_bytes_of_truth(self):
        """Every byte but 0 is true, wherever it comes from."""
        flags = np.tile(np.uint8([0, 2, 255, 1, 0, 128]), 50)
        truths = flags != 0
        with tempfile.TemporaryDirectory() as folder:
            np.save(f"{folder}/a.npy", flags.view(bool))
            path = pathlib.Path(f"{folder}/a.safetensors")
            entry = {"dtype": "BOOL", "shape": list(flags.shape), "data_offsets": [0, flags.nbytes]}
            header = json.dumps({"a": entry}).encode()
            path.write_bytes(struct.pack("<Q", len(header)) + header + flags.tobytes())
            ways = {"copy": self.device_array(flags.view(bool)), "array": cp.asarray(flags.view(bool)),
                    "buffer": cp.asarray(memoryview(flags.tobytes()).cast("?")), ".npy": cp.load(f"{folder}/a.npy"),
                    ".safetensors": cp.load(path)["a"]}
        if tuple(map(int, np.__version__.split(".")[:2])) >= (2, 0):
            ways["DLPack"] = cp.from_dlpack(flags.view(bool))
        odd = cp.asarray(truths[::-1].copy())
        for way, x in ways.items():
            with self.subTest(way):
                self.assertEqual(x.dtype, cp.bool)
                self.assertEqual(x.tolist(), truths.tolist())
                self.assertEqual(int(cp.count_nonzero(x)), int(truths.sum()))
                self.assertEqual(int(x.sum()), int(truths.sum()))
                self.assertEqual(cp.unique_values(x).tolist(), [False, True])
                self.assertEqual((bool(x.all()), bool(x.any()), bool(x[1])), (False, True, True))
                np.testing.assert_array_equal(np.asarray(cp.nonzero(x)[0]), truths.nonzero()[0])
                reference = truths[::-1]
                for actual, expected in ((cp.logical_not(x), ~truths), (x == odd, truths == reference),
                                         (x ^ odd, truths ^ reference), (x & odd, truths & reference),
                                         (x | odd, truths | reference), (~x, ~truths),
                                         (x.astype(cp.uint8), truths.astype(np.uint8)),
                                         (x.astype(cp.float32), truths.astype(np.float32)),
                                         (cp.where(x, 3.0, 4.0), np.where(truths, np.float32(3), np.float32(4))),
                                         (cp.sort(x), np.sort(truths))):
                    self.assertEqual(np.asarray(actual).tolist(), expected.tolist())

    def test_damaged_files(self):
        with tempfile.TemporaryDirectory() as folder:
            whole, safe, cut = (pathlib.Path(folder) / name for name in ("a.npy", "a.safetensors", "cut"))
            cp.save(whole, cp.zeros((2, 3)))
            cp.save(safe, {"a": cp.zeros((2, 3))})
            data, tensors = whole.read_bytes(), safe.read_bytes()
            for content in (b"", b"hello", *(data[:n] for n in (6, 9, 30, 127, len(data) - 1)),
                            data.replace(b"descr", b"descx"), data.replace(b"{", b"("),
                            data.replace(b"(2, 3)", b"'twos'"), data.replace(b"(2, 3)}" + 21 * b" ", b"(9223372036854775807, 3, 0)}"),
                            *(tensors[:n] for n in (7, 20, len(tensors) - 1)), tensors.replace(b'"a"', b'"a '),
                            tensors.replace(b"shape", b"shapx"), tensors.replace(b"24]", b"20]")):
                cut.write_bytes(content)
                with self.assertRaisesRegex(ValueError, "cut is (damaged|neither)", msg=content):
                    cp.load(cut)
            np.save(whole, np.arange(3, dtype=">f4"))
            with self.assertRaisesRegex(TypeError, "a.npy has the dtype '>f4'"):
                cp.load(whole)

    def test_files_that_their_format_forbids(self):
        def entry(first, last, shape, dtype="U8"):
            return {"dtype": dtype, "shape": shape, "data_offsets": [first, last]}

        deep = "[" * 100_000 + "]" * 100_000
        forbidden = {
            "ends behind the file": ({"a": entry(0, 9, [9])}, 8), "is longer than its array": ({"a": entry(0, 9, [8])}, 9),
            "is shorter": ({"a": entry(0, 8, [9])}, 8), "is negative": ({"a": entry(-8, 0, [8])}, 8), "is null": ({"a": entry(None, 8, [8])}, 8),
            "is reversed": ({"a": entry(8, 0, [8])}, 8), "is true": ({"a": entry(False, True, [1])}, 1), "is no pair": ({"a": {**entry(0, 8, [8]), "data_offsets": [8]}}, 8),
            "overlaps": ({"a": entry(0, 5, [5]), "b": entry(4, 8, [4])}, 8), "is twice there": ({"a": entry(0, 4, [4]), "b": entry(0, 4, [4])}, 4),
            "leaves a hole": ({"a": entry(0, 3, [3]), "b": entry(4, 8, [4])}, 8), "begins late": ({"a": entry(1, 8, [7])}, 8),
            "leaves bytes": ({"a": entry(0, 4, [4])}, 8), "nothing but bytes": ({}, 1), "a negative extent": ({"a": entry(0, 4, [-2, -2])}, 4),
            "a large extent": ({"a": entry(0, 0, [0, 2 ** 64])}, 0), "a broken extent": ({"a": entry(0, 4, [4.0])}, 4), "no shape": ({"a": entry(0, 4, None)}, 4),
            "an array that is no object": ({"a": 3}, 0), "metadata that are numbers": ({"__metadata__": {"a": 3}}, 0), "a dtype that is no name": ({"a": entry(0, 4, [4], 8)}, 4),
            "a name that occurs twice": ('{"a": %s, "a": %s}' % (json.dumps(entry(0, 4, [4])), json.dumps(entry(4, 8, [4]))), 8),
            "a key that occurs twice": ('{"a": {"dtype": "U8", "dtype": "I8", "shape": [4], "data_offsets": [0, 4]}}', 4),
            "a deep header": (f'{{"a": {deep}}}', 0), "a header that begins late": (" {}", 0), "a header with an end": ("{} {}", 0), "a header that is a list": ("[]", 0)}
        allowed = {"empty": ({}, 0), "spaces": ("{}   ", 0), "another order": ({"b": entry(4, 8, [2, 2]), "a": entry(0, 4, [4])}, 8),
                   "no elements": ({"a": entry(4, 4, [0, 3]), "b": entry(0, 4, [4]), "c": entry(0, 0, [2, 0])}, 4), "metadata": ({"__metadata__": {"a": "b"}}, 0)}
        array = "{'descr': '|u1', 'fortran_order': %s, 'shape': %s}"
        arrays = {"a deep header": "[" * 5000 + "]" * 5000, "a deeper one": "-" * 9000 + "1", "a long one": array % (False, "(8,)") + " " * 20_000, "another key": array % (False, "(8,), 'more': 1"),
                  "a flag that is a number": array % (1, "(8,)"), "a negative extent": array % (False, "(-2, -4)"), "an extent that is true": array % (False, "(True, 8)"),
                  "a shape that is a number": array % (False, "8"), "a large extent": array % (False, "(0, 2 ** 70)"), "more than there is": array % (False, "(9,)")}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a"

            def load(header, size):
                header = (header if isinstance(header, str) else json.dumps(header)).encode()
                path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(size))
                return cp.load(path)

            for name, case in allowed.items():
                header = json.loads(case[0]) if isinstance(case[0], str) else case[0]
                self.assertEqual({key: x.shape for key, x in load(*case).items()},
                                 {key: tuple(one["shape"]) for key, one in header.items() if key != "__metadata__"}, name)
            for name, case in forbidden.items():
                with self.assertRaisesRegex(ValueError, "^load: .*a is damaged or incomplete: ", msg=name):
                    load(*case)
            for name, header in arrays.items():
                path.write_bytes(b"\x93NUMPY\2\0" + struct.pack("<I", len(header)) + header.encode() + bytes(8))
                with self.assertRaisesRegex(ValueError, "^load: .*a is damaged or incomplete: ", msg=name):
                    cp.load(path)
            path.write_bytes(b"\x93NUMPY\4\0" + bytes(80))
            with self.assertRaisesRegex(ValueError, "its version is"):
                cp.load(path)
            np.save(path.with_suffix(".npy"), np.zeros(3, "f4,i4"))
            with self.assertRaisesRegex(TypeError, "a.npy has the dtype"):
                cp.load(path.with_suffix(".npy"))
            with self.assertRaisesRegex(TypeError, "a has the dtype F8_E8M0 for a"):
                load({"a": entry(0, 4, [4], "F8_E8M0")}, 4)
            with self.assertRaisesRegex(ValueError, '^device "nope0"'):
                cp.load(path, device="nope0")

    def test_devices(self):
        a = cp.asarray([1.0, 2.0])
        b = a.to_device("cpu")
        self.assertEqual(b.device.name, "cpu")
        self.assert_same(b.to_device(a.device), np.float32([1, 2]))
        self.assertIs(a.to_device(a.device).device, a.device)
        with cp.device("cpu") as device:
            self.assertIs(cp.zeros(1).device, device)
            with a.device:
                self.assertIs(cp.zeros(1).device, a.device)
            self.assertIs(cp.zeros(1).device, device)
        if not self.on_host:
            with self.assertRaises(BufferError):
                memoryview(a)
            with self.assertRaises(ValueError):
                cp.asarray(np.zeros(2), copy=False)

    def test_elements(self):
        self.assertEqual(float(cp.asarray(0.5)), 0.5)
        self.assertEqual(int(cp.asarray(3)), 3)
        self.assertEqual(complex(cp.asarray(1 + 2j)), 1 + 2j)
        self.assertEqual([0, 1, 2][cp.asarray(2)], 2)
        self.assertTrue(cp.asarray(True))
        self.assertEqual(cp.asarray(0.5, dtype=cp.float16).item(), 0.5)
        self.assertEqual(cp.asarray(0.5, dtype=cp.bfloat16).item(), 0.5)
        self.assertEqual(cp.asarray([[1, 2], [3, 4]]).tolist(), [[1, 2], [3, 4]])
        self.assertEqual([int(x) for x in cp.arange(3)], [0, 1, 2])
        self.assertEqual(len(cp.zeros((4, 2))), 4)
        for wrong in (lambda: bool(cp.zeros(2)), lambda: float(cp.zeros(2)), lambda: len(cp.zeros(())),
                      lambda: iter(cp.zeros(())), lambda: hash(cp.zeros(2)), lambda: [0][cp.asarray(0.5)]):
            with self.assertRaises(TypeError):
                wrong()
