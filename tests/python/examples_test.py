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
    def output(self, device, name, *arguments):
        result = subprocess.run([sys.executable, ROOT / "examples/python" / name, *map(str, arguments)], timeout=150,
                                capture_output=True, text=True, check=False,
                                env={**os.environ, "COMPUTE_DEVICE": device, "COMPUTE_LOG": "error"})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def outputs(self, name, *arguments):
        """What a program prints on each device, without times and the device's name."""
        devices = dict.fromkeys(["cpu", os.environ.get("COMPUTE_DEVICE", "cpu")])
        return [TIMES.sub("", self.output(device, name, *arguments)).replace(device, "DEVICE") for device in devices]

    def test_exp_loop(self):
        for text in self.outputs("exp_loop.py", "--size", 1000, "--iterations", 5):
            self.assertEqual(text.count("exp(1) = 2.718282"), 3)

    def test_affine_loop(self):
        sums = [set(re.findall(r"sum = \S+", text)) for text in self.outputs("affine_loop.py", "--iterations", 3)]
        self.assertEqual(len(set.union(*sums)), 1, sums)

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
                    result = subprocess.run([sys.executable, ROOT / "examples/python" / name, file], timeout=150,
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
