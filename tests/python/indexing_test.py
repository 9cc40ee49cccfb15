# SPDX-License-Identifier: Apache-2.0
"""Reading and assigning elements: every form of an index, against NumPy."""
import gc
import pickle
import threading
import weakref

import compute as cp
import numpy as np

from case import ALL, NARROW, Case

SHAPE = (3, 4, 5)


class Indexing(Case):
    def random_slice(self, extent):
        step = int(self.random.choice([-2, -1, 1, 2]))
        bounds = [None if self.random.random() < 0.3 else int(self.random.integers(-extent - 1, extent + 2))
                  for _ in range(2)]
        return slice(*bounds, step)

    def random_basic(self):
        keys = []
        for extent in SHAPE[:int(self.random.integers(0, 4))]:
            choice = self.random.random()
            keys.append(int(self.random.integers(-extent, extent)) if choice < 0.4 else self.random_slice(extent))
        if self.random.random() < 0.3:
            keys.insert(int(self.random.integers(0, len(keys) + 1)), None)
        if self.random.random() < 0.3 and len(keys) < 3:
            keys.append(Ellipsis)
        return tuple(keys)

    def random_arrays(self):
        """A key with at least one array, as one of NumPy."""
        shape = ((2,), (2, 1), (), (0,))[int(self.random.integers(0, 4))]
        keys = []
        for extent in SHAPE:
            choice = self.random.random()
            if choice < 0.5:
                keys.append(self.random.integers(-extent, extent, shape))
            elif choice < 0.7:
                keys.append(int(self.random.integers(-extent, extent)))
            else:
                keys.append(self.random_slice(extent))
        if not any(isinstance(key, np.ndarray) for key in keys):
            keys[0] = self.random.integers(-3, 3, shape)
        return tuple(keys)

    def converted(self, key):
        return tuple(self.device_array(one) if isinstance(one, np.ndarray) else one for one in key)

    def test_basic(self):
        for dtype in ALL:
            x = self.numbers(dtype, SHAPE)
            array = self.device_array(x)
            for _ in range(20):
                key = self.random_basic()
                self.assert_same(array[key], x[key], note=f"{key}")

    def test_scalars_of_numpy(self):
        x = self.numbers("int32", SHAPE)
        array = self.device_array(x)
        for key in (np.int64(-1), (np.uint8(1), slice(np.int32(1), None), np.int16(2)), (Ellipsis, np.int64(0)),
                    (None, np.int8(0)), np.bool_(True), np.bool_(False)):
            self.assert_same(array[key], x[key], note=f"{key}")
        array[np.int64(1), np.int64(2)] = 7
        x[1, 2] = 7
        self.assert_same(array, x)
        with self.assertRaises(IndexError):
            array[np.float64(1)]

    def test_views_share_memory(self):
        x = cp.zeros((3, 4))
        x[1:, ::2][0, 1] = 5.0
        self.assertEqual(float(x[1, 2]), 5.0)

    def test_elements(self):
        for dtype in ALL:
            x = self.numbers(dtype, (5,))
            array = self.device_array(x)
            for source, expected in ((array, x), (array[::-2], x[::-2]), (array[3:], x[3:])):
                for i in range(-len(expected), len(expected)):
                    self.assert_same(source[i], expected[i], note=f"{dtype} {i}")
                    one = source[i]  # before and after it has a tensor of its own
                    for _ in range(2):
                        self.assertEqual((one.shape, one.strides, one.ndim, one.size, one.dtype, one.device),
                                         ((), (), 0, 1, array.dtype, array.device))
                        self.assertEqual((one.nbytes, one.itemsize, one.label), (array.itemsize, array.itemsize, ""))
                        self.assertEqual(bool(one), bool(expected[i]))
                        self.assertEqual(complex(one), complex(expected[i]))
                        with self.assertRaises(TypeError):
                            len(one)
                        with self.assertRaises(TypeError):
                            iter(one)
                        with self.assertRaises(IndexError):
                            one[0]
                        self.assert_same(one[()], expected[i])
            self.assertEqual([complex(one) for one in array], [complex(one) for one in x])
            for beyond in (5, -6, 1 << 62):
                with self.assertRaises(IndexError):
                    array[beyond]

    def test_elements_are_views(self):
        x = cp.asarray([1.0, 2.0, 3.0])
        first, last, used = x[0], x[-1], x[1]
        self.assertTrue(cp._core.shares_memory(first, x))
        used.label = "middle"
        x += 1.0
        self.assertEqual((float(first), float(used), float(last)), (2.0, 3.0, 4.0))
        first += 10.0
        last[...] = 7.0
        self.assertEqual([float(one) for one in x], [12.0, 3.0, 7.0])
        self.assertEqual((x[1].label, used.label), ("", "middle"))
        del x
        self.assertEqual(float(last + used), 10.0)
        self.assertEqual(float(cp.asarray([4.0])[0]), 4.0)  # nobody else keeps the array
        self.assertEqual(range(5)[cp.asarray([3])[0]], 3)
        self.assertEqual(pickle.loads(pickle.dumps(last)).item(), 7.0)

    def test_elements_on_threads(self):
        for _ in range(50):
            one = cp.asarray([2.0, 3.0])[1]
            wrong = []

            def work(one=one, wrong=wrong):
                wrong.extend(1 for _ in range(10) if float(one) != 3.0 or float(one + 1.0) != 4.0)

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])

    def check_unused_view(self, make, base, expected, note):
        """All that may be asked of a view, each of one that was not used, which has no tensor, and of one that was."""
        used = make()
        cp.any(used)
        for ask in (lambda x: (x.shape, x.ndim, x.size), lambda x: (x.nbytes, x.itemsize, x.dtype, x.device, x.label),
                    lambda x: x.strides, lambda x: len(x) if x.ndim else 0, lambda x: x.is_contiguous,
                    lambda x: cp._core.shares_memory(x, base), lambda x: x.__dlpack_device__(),
                    lambda x: [one.shape for one in x] if x.ndim else 0, repr):
            self.assertEqual(ask(make()), ask(used), note)
        self.assert_same(make(), expected, note=note)
        self.assert_same(used, expected, note=note)

    def test_unused_views(self):
        """Views with at most 2 axes get a tensor when they are used."""
        for dtype in ("float32", "int64", "complex64", "bool")[:1 if NARROW else 4]:
            for shape in ((5,), (4, 3), (2, 3, 4), (3, 2, 2, 2), (2, 1, 2, 1, 2), (0,), (0, 3), (3, 0)):
                x = self.numbers(dtype, shape)
                for array, values in ((self.device_array(x), x), (self.device_array(x)[::-1], x[::-1])):
                    keys = [slice(1, 3), slice(None, None, -2), slice(4, 1), slice(1, 2), (Ellipsis, slice(1)),
                            (slice(None),) * (len(shape) - 1) + (slice(None, None, -1),)]
                    keys += [None] if len(shape) == 1 else []
                    if x.size:
                        keys += [0, -1, (slice(None),) * (len(shape) - 1) + (0,), (-1,) * len(shape), (Ellipsis, -1),
                                 (0,) * len(shape) + (Ellipsis,), (0,) * len(shape) + (None,)]
                    for key in keys:
                        if values[key].ndim <= 2:
                            self.check_unused_view(lambda: array[key], array, values[key], f"{dtype} {shape} {key}")

    def test_views_of_unused_views(self):
        x = self.numbers("float32", (6, 5, 4))
        array = self.device_array(x)
        for key in ((1, slice(1, 4)), (slice(None, None, -2), 3), (slice(1, 5), slice(None), -1), (2,)):
            for inner in (0, -1, slice(1, None), slice(None, None, -1), (0, 1), (slice(None), slice(0, 2)), None,
                          (1, Ellipsis), (slice(2, 2),)):
                self.assert_same(array[key][inner], x[key][inner], note=f"{key} {inner}")
                self.assert_same(array[key][inner][...], x[key][inner], note=f"{key} {inner}")
            with self.assertRaises(IndexError):
                array[key][9]
            with self.assertRaises(IndexError):
                array[key][0, 0, 0, 0]

    def test_unused_views_share_memory(self):
        x = cp.asarray(np.arange(12, dtype=np.float32).reshape(3, 4), copy=True)
        row, part, column, last, inner = x[1], x[0, 1:3], x[:, 3], x[2, 1], x[1:][1][::2]
        x += 1.0  # before they are used
        self.assertEqual(row.tolist(), [5.0, 6.0, 7.0, 8.0])
        part *= 10.0
        column[...] = -1.0
        last += 100.0
        inner[1] = 7.5
        expected = [[1.0, 20.0, 30.0, -1.0], [5.0, 6.0, 7.0, -1.0], [9.0, 110.0, 7.5, -1.0]]
        self.assertEqual(x.tolist(), expected)
        row, elements = x[1], [x[2, i] for i in range(4)]
        weak = weakref.ref(x)
        del x, part, column, last, inner
        gc.collect()
        self.assertIsNotNone(weak())  # views that were not used keep the array,
        self.assertEqual(row.tolist(), expected[1])
        self.assertEqual([float(one) for one in elements], expected[2])
        self.assertEqual(pickle.loads(pickle.dumps(row)).tolist(), expected[1])
        for one in elements:
            self.assert_same(one + 0.0, np.asarray(one.item(), np.float32))
        del elements, one
        gc.collect()
        self.assertIsNone(weak())  # views that were used keep its memory
        self.assertEqual(row.tolist(), expected[1])
        if cp.device().name == "cpu":
            buffer = memoryview(row[1:3])
            self.assertEqual(buffer.tolist(), [6.0, 7.0])
            buffer[0] = 60.0
            shared = np.from_dlpack(row[2:])
            row[2] = 70.0
            self.assertEqual(shared.tolist(), [70.0, -1.0])
            self.assertEqual(row.tolist(), [5.0, 60.0, 70.0, -1.0])

    def test_unused_views_on_threads(self):
        for _ in range(50):
            x = cp.asarray([[1.0, 2.0], [3.0, 4.0]])
            views = x[1], x[:, 0], x[1, 1], x[0][::-1]
            del x
            wrong = []

            def work(views=views, wrong=wrong):
                row, column, one, turned = views
                wrong.extend(1 for _ in range(5) if (row + column).tolist() != [4.0, 7.0] or float(one) != 4.0
                             or (turned * one).tolist() != [8.0, 4.0])

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])

    def test_arrays_of_integers(self):
        x = self.numbers("float32", SHAPE)
        array = self.device_array(x)
        for _ in range(60):
            key = self.random_arrays()
            as_arrays = tuple(np.asarray(one) if isinstance(one, int) else one for one in key)
            self.assert_same(array[self.converted(as_arrays)], x[as_arrays], note=f"{key}")
            self.assert_same(array[self.converted(key)], x[key], note=f"{key}")

    def test_what_stands_between_arrays_and_integers(self):
        x = self.numbers("float32", (2, 3, 4))
        mask, rows = np.array([True, False, True, True]), np.array([[0], [1]])
        for key in ((1, slice(None), [0, 2]), (1, slice(None), mask), ([0, 1], slice(None), 1), (rows, slice(1), 1), (0, None, [2]), (1, Ellipsis, [0]),
                    (slice(None), 1, Ellipsis, [0, 3]), (slice(None), [2, 1], Ellipsis, [0, 3]), (0, 1, [1, 2]), (slice(None), 1, [1, 2]),
                    (slice(None), None, 2, rows), (None, 1, slice(None), mask), (1, [0, 2], Ellipsis), (rows, Ellipsis, 2)):
            array, copied = self.device_array(x), np.array(x)
            converted = self.converted(key)
            self.assert_same(array[converted], x[key], note=f"{key}")
            copied[key] = values = self.numbers("float32", x[key].shape[-1:])
            array[converted] = self.device_array(values)
            self.assert_same(array, copied, note=f"{key}")

    def test_masks(self):
        x = self.numbers("int32", SHAPE)
        array = self.device_array(x)
        for axes in (1, 2, 3):
            mask = self.numbers("bool", SHAPE[:axes])
            self.assert_same(array[self.device_array(mask)], x[mask])
        self.assert_same(array[cp.asarray(True)], x[np.True_])
        self.assert_same(array[cp.asarray(False)], x[np.False_])
        self.assert_same(array[cp.zeros((3, 0), dtype=cp.bool)], x[np.zeros((3, 4), bool)])
        last = self.numbers("bool", SHAPE[2:])
        self.assert_same(array[..., self.device_array(last)], x[..., last])

    def test_assignment_to_basic_indices(self):
        for dtype in ALL:
            x = self.numbers(dtype, SHAPE)
            array = self.device_array(x)
            for _ in range(10):
                key = self.random_basic()
                value = self.numbers(dtype, x[key].shape[-1:] if x[key].ndim else ())
                x[key] = value
                array[key] = self.device_array(value)
                self.assert_same(array, x, note=f"{key}")
        array[0] = 0
        x[0] = 0
        self.assert_same(array, x)

    def test_assignment_to_arrays_of_integers(self):
        x = np.zeros(SHAPE, np.float32)
        array = self.device_array(x)
        rows = np.array([2, 0])
        value = self.numbers("float32", (2, 4, 5))
        x[rows] = value
        array[self.device_array(rows)] = self.device_array(value)
        self.assert_same(array, x)
        columns = np.array([1, 3])
        x[:, rows, columns] = value[0, 0, :2]
        array[:, self.device_array(rows), self.device_array(columns)] = self.device_array(value[0, 0, :2])
        self.assert_same(array, x)
        array[self.device_array(rows), 1] = 7
        x[rows, 1] = 7
        self.assert_same(array, x)
        x = self.numbers("float32", (60, 70, 2))
        i, j = (np.repeat(np.arange(60), 60) - 60).reshape(40, 90), np.tile(np.arange(60), 60).reshape(40, 90)
        array, at = self.device_array(x), (self.device_array(i), self.device_array(j))
        for value in (lambda x: 3.0, lambda x: x[:1, :1, 1], lambda x: x[0, 0, :2], lambda x: x[:40, :1] + x[20:, 1:2]):
            array[at] = value(array)
            x[i, j] = value(x).copy() if isinstance(value(x), np.ndarray) else value(x)
            self.assert_same(array, x)
            self.assert_same(array[at], x[i, j])

    def test_assignment_to_masks(self):
        x = self.numbers("float32", SHAPE)
        array = self.device_array(x)
        array[array < 0] = 0.5
        x[x < 0] = 0.5
        self.assert_same(array, x)
        mask = self.numbers("bool", SHAPE[:2])
        value = self.numbers("float32", (int(mask.sum()), 5))
        array[self.device_array(mask)] = self.device_array(value)
        x[mask] = value
        self.assert_same(array, x)

    def test_assignment_of_a_view_of_itself(self):
        x = self.numbers("int64", (6,))
        array = self.device_array(x)
        array[1:] = array[:-1]
        x[1:] = x[:-1].copy()
        self.assert_same(array, x)
        for one in (array, x):
            one[1:4] += 10
            one[::-2] *= 3
        array[:3], x[:3] = array[2::-1], x[2::-1].copy()
        self.assert_same(array, x)

    def test_faults(self):
        x = cp.zeros((2, 3))
        for key in (5, (0, 0, 0), (0, -4), cp.asarray([True]), "a", cp.asarray([0.5])):
            with self.assertRaises(IndexError, msg=str(key)):
                x[key]
        with self.assertRaisesRegex(IndexError, "3 indices for an array with 2 axes"):
            x[cp.ones((2, 3, 1), dtype=cp.bool)] = 1
        with self.assertRaises(ValueError):
            x[0] = cp.zeros((4,))
        with self.assertRaises(TypeError):
            x[0] = 1j
        with self.assertRaises(TypeError):
            cp.zeros((2,), dtype=cp.int32)[0] = cp.asarray(0.5)
        with self.assertRaises(IndexError):
            np.asarray(cp.take(x, cp.asarray([9]), axis=0))

    def test_masks_of_other_libraries(self):
        class Mask:  # as a tensor of PyTorch, which has an __index__ that raises
            def __init__(self, values):
                self.values = values

            def __index__(self):
                raise TypeError("not an index")

            def __dlpack__(self, **options):
                return self.values.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.values.__dlpack_device__()

        class Number:
            def __index__(self):
                return 1

        x = self.numbers("float32", (3, 2))
        array, mask = self.device_array(x), cp.asarray([True, False, True], device="cpu")
        self.assert_same(array[Mask(mask)], x[[True, False, True]])
        self.assert_same(array[Number()], x[1])
        self.assert_same(array[:, Number()], x[:, 1])

    def test_take(self):
        x = self.numbers("float32", SHAPE)
        array = self.device_array(x)
        indices = np.array([1, 0, 1])
        self.assert_same(cp.take(array, self.device_array(indices), axis=1), np.take(x, indices, axis=1))
        order = np.argsort(x, axis=-1)
        self.assert_same(cp.take_along_axis(array, self.device_array(order)), np.take_along_axis(x, order, -1))

    def test_great_unsigned_indices(self):
        x = cp.asarray([1.0, 2.0, 3.0])
        self.assertEqual(x[cp.asarray([2, 0], dtype=cp.uint64)].tolist(), [3, 1])
        for index in (2 ** 64 - 1, 2 ** 63):
            places = cp.asarray([index], dtype=cp.uint64)
            for taken in (lambda: x[places], lambda: cp.take(x, places), lambda: x[None][0, places]):
                with self.assertRaisesRegex(IndexError, "9223372036854775807 or greater is out of range"):
                    float(taken()[0])

    def test_messages_name_the_index(self):
        x = cp.zeros((5, 4))

        def assigned(key):
            y = cp.zeros((5, 4))
            y[key] = 1.0
            return y

        for index, expected in (
                (lambda: cp.take(x, cp.asarray([[0, 1, 2], [1, 2, 7]]), axis=0),
                 r"index 7 .* axis 0 of extent 5, at indices\[1, 2\]"),
                (lambda: cp.take(x, cp.asarray([0, 4, 1]), axis=1), r"index 4 .* axis 1 of extent 4, at indices\[1\]"),
                (lambda: cp.take(x, cp.asarray(-6), axis=0), "index -6 .* axis 0 of extent 5(;|$)"),
                (lambda: x[:, cp.asarray([0, 9])], r"index 9 .* axis 1 of extent 4, at indices\[1\]"),
                (lambda: cp.nn.embedding(x, cp.asarray([3, 2, -8])),
                 r"index -8 .* axis 0 of extent 5, at indices\[2\]"),
                (lambda: cp.take_along_axis(x, cp.asarray([[0], [1], [2], [3], [9]])),
                 r"index 9 .* axis 1 of extent 4, at indices\[4, 0\]"),
                (lambda: cp.take_along_axis(x, cp.asarray([[0], [8]]), axis=0),
                 r"index 8 .* axis 0 of extent 5, at indices\[1, 0\]"),
                (lambda: cp.scatter(x, cp.asarray([[0, 1, 2, -6]]), 1.0, axis=0),
                 r"index -6 .* axis 0 of extent 5, at indices\[0, 3\]"),
                (lambda: cp.gather_nd(x, cp.asarray([[[0], [1]], [[5], [0]]])),
                 r"index 5 .* axis 0 of extent 5, at indices\[1, 0, 0\]"),
                (lambda: cp.scatter_nd(x, cp.asarray([[4], [6]]), 1.0),
                 r"index 6 .* axis 0 of extent 5, at indices\[1, 0\]"),
                (lambda: x[cp.asarray([0, 3]), cp.asarray([1, 4])],
                 r"^x\[\.\.\.\] \(gather_at\): .* axes of extents \[5,4\], at indices\[1, :\]"),
                (lambda: x[None, cp.asarray([[0], [3]]), cp.asarray([[1, 2], [0, -5]])],
                 r"^x\[\.\.\.\] \(gather_at\): .* axes of extents \[5,4\], at indices\[1, 1, :\]"),
                (lambda: assigned(cp.asarray([4, 6])),
                 r"^x\[\.\.\.\] = y \(scatter_at\): index 6 .* axis 0 of extent 5, at indices\[1\]"),
                (lambda: assigned((cp.asarray([4, 6]), cp.asarray([0, 1]))),
                 r"^x\[\.\.\.\] = y \(scatter_at\): .* axes of extents \[5,4\], at indices\[1, :\]")):
            with self.assertRaisesRegex(IndexError, expected):
                index().tolist()
        with cp.graph.record(cp.device()) as step:
            taken = cp.take(x, cp.asarray([0, 9]), axis=0)
        with self.assertRaisesRegex(IndexError, r"take: index 9 .* axis 0 of extent 5, at indices\[1\]"):
            step.run()
            taken.tolist()

    def test_assigned_parts_of_the_array_itself(self):
        x = np.arange(6, dtype=np.float32)
        for assign in (lambda x: x.__setitem__(x > 2, x[1]), lambda x: x.__setitem__(x > 2, x[1:2]),
                       lambda x: x.__setitem__(slice(None), x[4])):
            a, y = self.device_array(x), x.copy()
            assign(a)
            assign(y)
            self.assert_same(a, y)
        flags = np.asarray([[True, False], [True, True], [False, False]])
        for mask in (lambda x: x, lambda x: x[::-1], lambda x: x[:, 0], lambda x: x[::-1, 1]):
            a, y = self.device_array(flags), flags.copy()
            a[mask(a)] = False
            y[mask(y)] = False
            self.assert_same(a, y)
            one = self.device_array(flags[:1])  # extents of 1 may have any strides
            one[one] = False
            self.assert_same(one, np.zeros((1, 2), bool))

    def test_the_array_as_its_own_index(self):
        order = np.array([3, 0, 4, 1, 2])
        x = self.device_array(order)
        x[x] = self.device_array(np.arange(5))
        self.assert_same(x, np.argsort(order))
        x = self.device_array(order)
        x[x] = x
        self.assert_same(x, np.arange(5))

    def test_few_elements(self):
        for dtype in ("float32", "int64", "bool", "complex128", "int8"):
            for shape in ((7,), (6, 3), (2, 3, 4), (1,)):
                x = self.numbers(dtype, shape)
                for a, y in ((self.device_array(x), x), (self.device_array(np.repeat(x, 2, axis=0))[::2], x), (self.device_array(x)[::-1], x[::-1])):
                    for index in (self.random.integers(-shape[0], shape[0], 5), self.random.integers(0, shape[0], (2, 2)), np.int32([0]), np.zeros((0,), np.int64), np.int64(0), np.uint8([0])):
                        self.assert_same(a[cp.asarray(np.array(index))], y[np.array(index)])
                    for mask in (self.numbers("bool", shape), np.ones(shape, bool), np.zeros(shape[:1], bool), self.numbers("bool", shape[:1])):
                        self.assert_same(a[self.device_array(mask)], y[mask])
                    self.assert_same(a[[0, -1]], y[[0, -1]])
                    self.assert_same(a[[]], y[[]])
        x = cp.arange(5)
        for index in ([5], [-6], [0, 2 ** 40]):
            with self.assertRaises(IndexError):
                np.asarray(x[cp.asarray(index)])
        with self.assertRaisesRegex(IndexError, "mask of the shape"):
            x[cp.ones(4, dtype=cp.bool)]
        with self.assertRaises(IndexError):
            x[cp.ones(5)]

    def test_few_elements_by_several_indices(self):
        """Slices of whole axes, integers, arrays and lists of these, which the extension reads and writes on cpu; of views, too."""
        for _ in range(600 if not NARROW else 30):
            shape = tuple(self.random.integers(1, 5, self.random.integers(1, 5)).tolist())
            x = self.numbers(self.random.choice(("float32", "int64", "uint8", "bool") if not NARROW else ("float32",)), shape)
            y, count = self.device_array(x), int(self.random.integers(1, 4))
            if self.random.random() < 0.3:
                x, y = x[::-1], y[::-1]
            keys, leading = [], int(self.random.integers(0, len(shape)))
            for axis, extent in enumerate(shape):
                extents = ((count,), (count,), (count,), (2, count), (count, 1), (1, count), (1,), ())[int(self.random.integers(0, 8))]
                positions = np.asarray(self.random.integers(-extent, extent, extents))
                keys.append(slice(None) if axis < leading else (int(positions.flat[0]), slice(None), positions, positions.tolist(), positions.astype(np.int32))[
                    int(self.random.integers(0, 5))])
            if not any(isinstance(one, (list, np.ndarray)) for one in keys):
                continue
            theirs = tuple(keys) if len(keys) > 1 else keys[0]
            ours = tuple(self.device_array(one) if isinstance(one, np.ndarray) else one for one in keys) if len(keys) > 1 else (
                self.device_array(keys[0]) if isinstance(keys[0], np.ndarray) else keys[0])
            try:
                expected = x[theirs]
            except IndexError:  # which do not broadcast
                with self.assertRaises((IndexError, ValueError)):
                    y[ours]
                continue
            try:
                found = y[ours]
            except NotImplementedError:  # indices apart from each other
                continue
            self.assert_same(found, expected, note=f"{shape} {theirs}")
            value = self.numbers(x.dtype.name, expected.shape)
            places = np.arange(x.size).reshape(shape)[theirs]
            x = x.copy()
            if np.unique(places).size == places.size:
                x[theirs] = value
                y[ours] = self.device_array(value)
                self.assert_same(y, x, note=f"{shape} {theirs}")
            x[theirs] = x.dtype.type(1)
            y[ours] = x.dtype.type(1).item()
            self.assert_same(y, x, note=f"{shape} {theirs}")

    def test_numbers_for_few_elements(self):
        for dtype in ALL:
            for key in (2, -1, slice(1, 3), slice(None, None, -2), (1, 2), (slice(None), 1), (Ellipsis, 0), None, Ellipsis, slice(3, 3), (0, slice(None, None, 2))):
                y = self.numbers(dtype, (4, 3))
                a = self.device_array(y)
                for target, theirs in ((a, y), (a.mT, y.T), (a[::-1], y[::-1])):
                    for value in (True,) if dtype == "bool" else (3, 2.5) if dtype in ("float32", "float64", "complex64", "complex128") else (3,):
                        target[key] = value
                        theirs[key] = value
                        self.assert_same(a, y)
        i, x = cp.asarray([1, 2, 3], dtype=cp.int8), cp.ones(3)
        for call, error in ((lambda: i.__setitem__(0, 300), OverflowError), (lambda: i.__setitem__(0, 1.5), TypeError), (lambda: i.__setitem__(3, 1), IndexError),
                            (lambda: x.__setitem__(2 ** 70, 1), IndexError), (lambda: x.__setitem__((0, 0), 1), IndexError), (lambda: x.__setitem__("a", 1.0), IndexError), (lambda: x.__setitem__(0, 2 ** 70), OverflowError)):
            with self.assertRaises(error):
                call()
        i[0], x[1] = True, False
        self.assertEqual((i.tolist(), x.tolist()), ([1, 2, 3], [1, 0, 1]))
        values = np.arange(3.0)
        values.flags.writeable = False
        with self.assertRaises(Exception):
            cp._core.wrap_buffer(values)[0] = 1.0
        self.assertEqual(values.tolist(), [0, 1, 2])

        def changes(v):
            y = cp.exp(w * v)
            w[0] = 5.0
            return cp.sum(y)

        w = cp.ones(3)
        with self.assertRaisesRegex(RuntimeError, "changed in place"):
            cp.grad.gradients(changes)(cp.ones(3))

    def test_numbers_reach_other_devices(self):
        host, x = cp.asarray([1.0, 2.0, 3.0], device="cpu", copy=True), cp.zeros(3)
        self.assertEqual((x + host).tolist(), [1, 2, 3])
        host[1] = 7.0
        self.assertEqual((x + host).tolist(), [1, 7, 3])
        self.assertEqual(host[cp.asarray([1, 0], device="cpu")].tolist(), [7, 1])

    def test_few_elements_with_threads(self):
        x, failed = cp.zeros(64, device="cpu"), []

        def work(first):
            for i in range(2000):
                x[first + i % 16] = float(i)
                if cp.asarray(x[first + i % 16]).item() != float(i):
                    failed.append(i)

        threads = [threading.Thread(target=work, args=(16 * i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])
        self.assertEqual(x[:16].tolist(), [float(1984 + i) for i in range(16)])
