# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments and wrong files end the example programs with a message that names them.

    misuse.py FOLDER

FOLDER holds the programs; those that are not there were not built.
"""

import gzip
import pathlib
import struct
import subprocess
import sys
import tempfile


def make_files(folder):
    (folder / "empty").write_bytes(b"")
    (folder / "short").write_text("a few words")
    (folder / "half.gz").write_bytes(gzip.compress(bytes(range(256)) * 100)[:200])
    for name, image in {"cut": b"\0\0\x08", "text": b"hello", "none": struct.pack(">BBBBIII", 0, 0, 8, 3, 0, 28, 28),
                        "small": struct.pack(">BBBBIII", 0, 0, 8, 3, 1, 2, 2) + bytes(4)}.items():
        (folder / name).mkdir()
        count = int(name == "small")
        for prefix in ("train", "t10k"):
            (folder / name / f"{prefix}-images-idx3-ubyte").write_bytes(image)
            (folder / name / f"{prefix}-labels-idx1-ubyte").write_bytes(
                struct.pack(">BBBBI", 0, 0, 8, 1, count) + bytes(count))


# A program, its arguments, its exit status, and what its message has.
def cases(folder):
    usage = "usage: "
    yield "exp_loop", ["--iterations", "abc"], 2, usage
    yield "exp_loop", ["--iterations", "0"], 2, usage
    yield "exp_loop", ["--iterations", "99999999999"], 2, usage
    yield "exp_loop", ["--dtype", "float16"], 2, usage
    yield "affine_loop", ["--rowz", "5"], 2, usage
    yield "affine_loop", ["--rows", "5x"], 2, usage
    yield "affine_loop", ["--mode", "all"], 2, usage
    yield "affine_loop", ["--rows"], 2, usage
    yield "custom_kernel", ["--nonsense"], 2, usage
    yield "custom_kernel", ["cdua0"], 1, 'did you mean "cuda"?'
    yield "perceptron", ["--nonsense"], 2, usage
    yield "perceptron", ["cdua0"], 1, 'did you mean "cuda"?'
    yield "logistic_regression", ["--stepz=1"], 2, "--stepz is not known"
    yield "logistic_regression", ["--steps=1x"], 1, "--steps=1x is not a number"
    yield "logistic_regression", ["--samples=0"], 1, "--samples=0 is below 1"
    yield "logistic_regression", ["--mode=all4"], 2, "--mode is all4"
    for name in ("mnist_cnn", "imdb_cnn", "transformer"):
        yield name, [], 2, "--data is missing"
        yield name, [f"--data={folder}/missing"], 1, f"cannot open {folder}/missing"
    yield "mnist_cnn", [f"--data={folder}/cut"], 1, "train-images-idx3-ubyte is no IDX file of bytes"
    yield "mnist_cnn", [f"--data={folder}/text"], 1, "train-images-idx3-ubyte is no IDX file of bytes"
    yield "mnist_cnn", [f"--data={folder}/none"], 1, "expected images of 28 x 28"
    yield "mnist_cnn", [f"--data={folder}/small"], 1, "expected images of 28 x 28"
    for name in ("imdb_cnn", "transformer"):
        yield name, [f"--data={folder}"], 1, f"cannot read {folder}: Is a directory"
        yield name, [f"--data={folder}/half.gz"], 1, "half.gz: unexpected end of file"
    yield "imdb_cnn", [f"--data={folder}/empty"], 1, "empty holds no reviews"
    yield "imdb_cnn", [f"--data={folder}/short"], 1, "short, line 1: expected 0 or 1"
    yield "transformer", [f"--data={folder}/empty"], 1, "empty is too short"
    yield "transformer", [f"--data={folder}/short"], 1, "short is too short"


def main():
    programs = pathlib.Path(sys.argv[1])
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_files(folder)
        asked = list(cases(folder))
        helps = [(program, ["--help"], 0, "usage: ") for program in dict.fromkeys(case[0] for case in asked)]
        for program, arguments, status, text in [*helps, *asked]:
            if not (programs / program).exists():
                continue
            result = subprocess.run([programs / program, *arguments], capture_output=True, text=True, timeout=600)
            if result.returncode != status or text not in (result.stderr if status else result.stdout):
                wrong.append(f"{program} {' '.join(arguments)} ended with {result.returncode}, not {status} and {text!r}:\n"
                             f"{result.stdout}{result.stderr}")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
