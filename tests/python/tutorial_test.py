# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/tutorial.md."""
import contextlib
import doctest
import io
import os
import pathlib
import re
import tempfile
import unittest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"


class OnAnyDevice(doctest.OutputChecker):
    """The page shows arrays on cpu, whose text does not name the device."""

    def check_output(self, want, got, optionflags):
        return super().check_output(want, re.sub(r", device='[^']*'\)", ")", got), optionflags)


class Tutorial(unittest.TestCase):
    def test_dialogues(self):
        page = doctest.DocTestParser().get_doctest(PAGE.read_text(), {"__name__": "__main__"}, PAGE.name, str(PAGE), 0)
        found = doctest.DocTestRunner(OnAnyDevice()).run(page)
        self.assertEqual(found.failed, 0)
        self.assertGreater(found.attempted, 15)

    def test_program(self):
        text = PAGE.read_text()
        program = re.search(r"^# spiral.py\n.*?(?=^```)", text, re.M | re.S)[0]
        expected = re.search(r"^It prints\n\n```\n(.*?)^```", text, re.M | re.S)[1]
        printed, here = io.StringIO(), os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                with contextlib.redirect_stdout(printed):
                    exec(compile(program, "spiral.py", "exec"), {"__name__": "__main__"})
                self.assertTrue(os.path.getsize("spiral.safetensors") > 17_000)
            finally:
                os.chdir(here)
        self.assertEqual(re.sub(r" on .*:", " on cpu:", printed.getvalue()), expected)


if __name__ == "__main__":
    unittest.main()
