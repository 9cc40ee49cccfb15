# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/python print the same on every device, times apart."""
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from case import Case

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIMES = re.compile(r"\d+\.\d+ s\b")


def data_maker():
    """The module that makes data for the examples in C++."""
    spec = importlib.util.spec_from_file_location("run", ROOT / "tests/examples/run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Examples(Case):
    def devices(self):
        return dict.fromkeys(["cpu", os.environ.get("COMPUTE_DEVICE", "cpu")])

    def output(self, device, name, *arguments, **variables):
        result = subprocess.run([sys.executable, ROOT / "examples/python" / name, *map(str, arguments)], timeout=600,
                                capture_output=True, text=True, check=False,
                                env={**os.environ, "COMPUTE_DEVICE": device, "COMPUTE_LOG": "error", **variables})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def outputs(self, name, *arguments):
        """What a program prints on each device, without times and the device's name."""
        return [TIMES.sub("", self.output(device, name, *arguments)).replace(device, "DEVICE") for device in self.devices()]

    def test_exp_loop(self):
        for device in self.devices():
            text = self.output(device, "exp_loop.py", "--iterations", 3)
            # One unit in the last place is the device's to choose.
            found = re.findall(r"^Looping 3 times took \d+\.\d{6} seconds, .*\nResult is \[(.*)\]$", text, re.M)
            self.assertEqual(len(found), 3, text)
            for numbers in found:
                for number, right in zip(numbers.replace("... ", "").split(), (1.23178029, 1.61879337, 1.52278066, 2.20771813, 2.29967761, 1.62323284)):
                    self.assertLess(abs(float(number) - right), 3e-7, text)
            self.assertTrue(text.endswith("Used the cpu\n" if device == "cpu" else f"Used {device}\n"), text)

    def test_default_dtype(self):
        text = self.output("cpu", "exp_loop.py", "--iterations", 1, "--keep", COMPUTE_FLOAT="float64")
        self.assertIn("Result is [1.23178032 1.61879341 1.52278065 ... 2.20771815 2.29967753 1.62323285]\n", text)

    def test_affine_loop(self):
        firsts = set()
        for device in self.devices():
            text = self.output(device, "affine_loop.py", "--iterations", 3)
            rows = {row[0]: row[1:] for row in re.findall(r"^(\w+) .* s +(\d+) copies to \S+ and +(\d+) from it +y\[0, 0\] = (\S+)$", text, re.M)}
            self.assertEqual(list(rows), ["numpy", "host", "explicit", "model", "mirrored", "resident"], text)
            firsts |= {row[2] for row in rows.values()}
            copies = {name: [int(count) for count in row[:2]] for name, row in rows.items()}
            if device == "cpu":
                self.assertEqual(set(map(tuple, copies.values())), {(0, 0)}, text)
            else:  # the result of the last turn is read once more where it is on the device
                self.assertEqual([copies[name] for name in ("explicit", "model", "resident")], [[9, 3], [3, 3], [0, 1]], text)
                self.assertLessEqual(copies["mirrored"][0], 6, text)
        self.assertEqual(len(firsts), 1, firsts)

    def test_custom_kernel(self):
        for text in self.outputs("custom_kernel.py"):
            self.assertEqual(text.count("greatest difference 0.0"), 3)

    def test_matmul_hello(self):
        for text in self.outputs("matmul_hello.py"):
            self.assertIn("[[22. 28.]\n [49. 64.]]", text)

    def need(self, *packages):
        missing = [name for name in packages if importlib.util.find_spec(name) is None]
        if missing:
            self.skipTest(f"{' and '.join(missing)} not installed: pip install {' '.join(packages)}")

    def test_dask_blocks(self):
        self.need("dask", "distributed")
        for text in self.outputs("dask_blocks.py"):
            self.assertIn("sums [6899, 6900, 6900, 6900], greatest 1.9951", text)

    def test_ray_store(self):
        self.need("ray")
        for text in self.outputs("ray_store.py"):
            self.assertIn("256000 bytes out of band, pickle below 200 bytes: True", text)
            self.assertRegex(text, "sum -0.20, first 0.0997\n.*sum -1.57, first 0.1974")

    def test_device_query(self):
        self.assertIn("cpu: ", self.output("cpu", "device_query.py"))

    def test_logistic_regression(self):
        texts = self.outputs("logistic_regression.py", "--samples", 40, "--features", 64, "--steps", 50)
        losses = {loss for text in texts for loss in re.findall(r"loss (\S+)", text)}
        self.assertEqual(len(losses), 1, texts)

    def check_losses(self, texts):
        """The losses fall, and are the same on each device."""
        first = None
        for text in texts:
            losses = [float(loss) for loss in re.findall(r"^loss \d+: (\S+)$", text, re.M)]
            self.assertGreaterEqual(len(losses), 8)
            self.assertLess(sum(losses[-3:]), sum(losses[:3]))
            first = first or losses
            for ours, theirs in zip(first, losses):
                self.assertLessEqual(abs(ours - theirs), 1e-4 * abs(ours))

    def test_mnist_cnn(self):
        with tempfile.TemporaryDirectory() as folder:
            data_maker().make_digits(pathlib.Path(folder))
            self.check_losses(self.outputs("mnist_cnn.py", folder, "--steps", 12, "--batch", 4, "--rate", 3e-5, "--losses", 12))

    def test_imdb_cnn(self):
        with tempfile.TemporaryDirectory() as folder:
            data_maker().make_reviews(pathlib.Path(folder))
            options = {"train": 64, "batch": 16, "length": 40, "words": 60, "epochs": 5, "losses": 20}
            arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
            self.check_losses(self.outputs("imdb_cnn.py", f"{folder}/reviews.tsv", *arguments))

    def test_transformer(self):
        with tempfile.TemporaryDirectory() as folder:
            data_maker().make_text(pathlib.Path(folder))
            options = {"steps": 12, "batch": 4, "context": 16, "layers": 2, "heads": 2, "width": 32, "rate": 0.003,
                       "losses": 12, "generate": 20}
            arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
            self.check_losses(self.outputs("transformer.py", f"{folder}/text.txt", *arguments))

    def test_wrong_files(self):
        """They end a program in one line that names the file."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "short"
            for text in ("", "a few words"):
                file.write_text(text)
                for name, problem in (("imdb_cnn.py", "line 1: expected 0 or 1"), ("transformer.py", "too short")):
                    result = subprocess.run([sys.executable, ROOT / "examples/python" / name, file], timeout=600,
                                            capture_output=True, text=True, check=False)
                    self.assertEqual(result.returncode, 1, result.stderr)
                    self.assertRegex(result.stderr, rf"\A{re.escape(str(file))}.*{problem}.*\n\Z")

    def test_plots(self):
        self.need("matplotlib")
        with tempfile.TemporaryDirectory() as folder:
            data_maker().make_text(pathlib.Path(folder))
            small = {"steps": 2, "batch": 2, "context": 8, "layers": 1, "heads": 1, "width": 8, "generate": 1}
            arguments = [part for name, value in small.items() for part in (f"--{name}", value)]
            self.output("cpu", "transformer.py", f"{folder}/text.txt", *arguments, "--plot", f"{folder}/loss.png",
                        "--profile", f"{folder}/profile.png")
            for name in ("loss.png", "profile.png"):
                self.assertEqual((pathlib.Path(folder) / name).read_bytes()[:4], b"\x89PNG", name)
