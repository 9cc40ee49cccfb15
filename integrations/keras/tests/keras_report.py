# SPDX-License-Identifier: Apache-2.0
"""The outcomes of Keras' own tests in a file: a line of JSON for each, with the test, the outcome and what was said."""
import json
import pathlib

ORDER = ("passed", "skipped", "xfailed", "failed")


def outcomes(path):
    """The worst outcome of each test, and what was said about it."""
    found = {}
    if pathlib.Path(path).exists():
        for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
            test, outcome, text = json.loads(line)
            if test not in found or ORDER.index(found[test][0]) < ORDER.index(outcome):
                found[test] = outcome, text
    return found


def note(path, test, outcome, text=""):
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps([test, outcome, " ".join(text.split())[:300]]) + "\n")


def running(path):
    """The file that names the test that runs now, which stays if the process ends."""
    return pathlib.Path(f"{path}.running")
