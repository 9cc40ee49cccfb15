# SPDX-License-Identifier: Apache-2.0
"""Builds the provider with CMake and puts it into the package. CMAKE_PREFIX_PATH names where compute is installed."""
import pathlib
import subprocess

import setuptools
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

LIBRARY = "libonnxruntime_compute.so"


class Build(build_py):
    def run(self):
        super().run()
        source = pathlib.Path(__file__).parent.resolve()
        build = pathlib.Path(self.get_finalized_command("build").build_temp).resolve()
        subprocess.run(["cmake", "-S", source, "-B", build, "-DCMAKE_UNITY_BUILD=ON"], check=True)
        subprocess.run(["cmake", "--build", build], check=True)
        self.copy_file(build / LIBRARY, pathlib.Path(self.build_lib) / "onnxruntime_compute" / LIBRARY)

    def get_outputs(self, include_bytecode=1):
        return [*super().get_outputs(include_bytecode), str(pathlib.Path(self.build_lib) / "onnxruntime_compute" / LIBRARY)]


class Binary(Distribution):
    def has_ext_modules(self):
        return True  # a wheel of one platform


setuptools.setup(cmdclass={"build_py": Build}, distclass=Binary)
