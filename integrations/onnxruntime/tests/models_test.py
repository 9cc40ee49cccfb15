# SPDX-License-Identifier: Apache-2.0
"""Models as their packages ship them: the answers are those of ONNX Runtime's provider for CPUs."""
import json
import pathlib
import subprocess
import sys

from case import np, package_file, session_of, session_on_cpu, share_of_nodes, unittest

PICTURES = """
import json, logging, sys
import numpy as np, cv2
from rapidocr import RapidOCR
logging.disable(logging.INFO)
engine = RapidOCR(params={"Global.log_level": "error"})
read = []
for lines in (["HELLO WORLD", "ONNX 2026"], ["Invoice 4711", "Total 12.50 EUR", "Thank you"], ["one line of text"]):
    picture = np.full((64 + 80 * len(lines), 640, 3), 255, np.uint8)
    for i, line in enumerate(lines):
        cv2.putText(picture, line, (24, 80 + 80 * i), cv2.FONT_HERSHEY_SIMPLEX, 1.6, (0, 0, 0), 3, cv2.LINE_AA)
    result = engine(picture)
    read.append([list(result.txts or []), [round(float(score), 2) for score in result.scores or []]])
print("RESULT", json.dumps(read))
"""

FILES = """
import json
from magika import Magika
magika = Magika()
samples = [b"import os\\n\\ndef main():\\n    print(os.getcwd())\\n" * 20, b'{"a": [1, 2, 3], "b": null}' * 30,
           b"<html><head><title>x</title></head><body><p>text</p></body></html>" * 10,
           b"#include <stdio.h>\\nint main(void) { return 0; }\\n" * 20,
           b"The quick brown fox jumps over the lazy dog. " * 40, bytes(range(256)) * 20]
results = [magika.identify_bytes(data) for data in samples]
print("RESULT", json.dumps([[str(result.output.label), round(float(result.score), 3)] for result in results]))
"""


def answers(program, launched):
    arguments = [sys.executable, "-B"]
    path = pathlib.Path(sys.argv[0]).parent  # any folder
    if launched:
        arguments += ["-c", "import onnxruntime_compute; onnxruntime_compute.use_everywhere()\n" + program]
    else:
        arguments += ["-c", program]
    result = subprocess.run(arguments, capture_output=True, text=True, check=False, cwd=path if path.is_dir() else None)
    if result.returncode != 0:
        raise AssertionError(result.stderr[-2000:])
    return json.loads(result.stdout.split("RESULT", 1)[1])


class Models(unittest.TestCase):
    def test_rapidocr(self):
        package_file("rapidocr", "models")
        found, expected = answers(PICTURES, True), answers(PICTURES, False)
        self.assertEqual([texts for texts, _ in found], [texts for texts, _ in expected])
        self.assertTrue(any("ONNX" in text for text in found[0][0]), found)

    def test_rapidocr_nodes(self):
        for name in ("PP-OCRv6_det_small", "PP-OCRv6_rec_small", "ch_ppocr_mobile_v2.0_cls_mobile"):
            share, counts = share_of_nodes(package_file("rapidocr", f"models/{name}.onnx"))
            print(name, counts)
            self.assertGreaterEqual(share, 0.95, counts)

    def test_magika(self):
        package_file("magika", "models")
        self.assertEqual(answers(FILES, True), answers(FILES, False))
        path = package_file("magika", "models/standard_v3_3/model.onnx")
        session, other = session_of(path), session_on_cpu(path)
        random = np.random.default_rng(3)
        for rows in (1, 1, 3, 1, 3):
            feed = {"bytes": random.integers(0, 257, (rows, 2048)).astype(np.int32)}
            np.testing.assert_allclose(session.run(None, feed)[0], other.run(None, feed)[0], rtol=1e-3, atol=1e-5)

    def test_silero(self):
        random = np.random.default_rng(4)
        time = np.arange(16000 * 2) / 16000
        sound = np.sin(2 * np.pi * 220 * time) * (np.sin(2 * np.pi * 3 * time) > 0) * 0.3
        sound = (sound + 0.02 * random.normal(size=time.size)).astype(np.float32)
        for name in ("silero_vad", "silero_vad_16k_op15", "silero_vad_op18_ifless"):
            path = package_file("silero_vad", f"data/{name}.onnx")
            answers = []
            for session in (session_of(path), session_on_cpu(path)):
                state, past, probabilities = np.zeros((2, 1, 128), np.float32), np.zeros((1, 64), np.float32), []
                for begin in range(0, 512 * 20, 512):
                    piece = np.concatenate([past, sound[None, begin:begin + 512]], axis=1)
                    past = piece[:, -64:]
                    out, state = session.run(None, {"input": piece, "state": state, "sr": np.array(16000)})
                    probabilities.append(out.item())
                answers.append(probabilities)
            np.testing.assert_allclose(answers[0], answers[1], rtol=2e-3, atol=1e-4, err_msg=name)


if __name__ == "__main__":
    unittest.main()
