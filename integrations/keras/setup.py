# SPDX-License-Identifier: Apache-2.0
"""Adds the file that installs the import hook when Python starts. Everything else is in pyproject.toml."""
import pathlib

import setuptools
from setuptools.command.build_py import build_py

NAME = "keras_compute.pth"


class Build(build_py):
    def run(self):
        super().run()
        self.copy_file(pathlib.Path(__file__).with_name(NAME), pathlib.Path(self.build_lib) / NAME)

    def get_outputs(self, include_bytecode=1):
        return [*super().get_outputs(include_bytecode), str(pathlib.Path(self.build_lib) / NAME)]


setuptools.setup(cmdclass={"build_py": Build})
