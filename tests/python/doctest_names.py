#!/usr/bin/env -S python3 -BP
# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of NumPy's or PyTorch's docstrings with this package in the place of it, and counts what happens.

    PYTHONPATH=build/ci/bindings/python/package doctest_names.py numpy                 # the NumPy that is installed
    PYTHONPATH=build/ci/bindings/python/package doctest_names.py torch FOLDER/torch    # an unpacked wheel of PyTorch

doctests_numpy.txt and doctests_torch.txt list the functions. -v shows the examples that differ. Of texts, brackets and
numbers are compared. An example counts as "same" if it has the value of the docstring, or shows none or a random one; as
"rule" with another dtype of the same kind, as a complex number without an imaginary part, or if only float64 as the
default dtype gives the value; as "remedy" if it raises an exception that says what to do; else as "other". One that
uses what a failed one should have made counts as that one. Where PyTorch draws an operand and shows it, the shown numbers
are taken. Plots, times, other packages and examples whose value NumPy itself does not give are left out.
"""
import ast
import collections
import contextlib
import doctest
import functools
import io
import math
import os
import pathlib
import re
import sys
import tempfile

import compute
import numpy

RANDOM = re.compile(r"\brand|\bnormal|\buniform|bernoulli|multinomial|\bempty|rng|may vary|choice|shuffle")
LEFT_OUT = re.compile(r"cuda|matplotlib|plt\.|\bax\.|timeit|\bt[12]\b|doctest: ?\+SKIP|\bid\(")
NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
TOKEN = re.compile(rf"\[|\]|\b(?:True|False)\b|[-+]?(?:\bnan\b|\binf\b)|(?:(?<![\w.])[-+]|(?<=[\d.])[-+](?=[\d.]))?(?<!\w){NUMBER}")
NOISE = re.compile(r"(?:dtype|shape|device|size|layout|grad_fn|axis)=(?:torch\.size)?(?:\([^)]*\)|<[^>]*>|'[^']*'|[\w.]+)|\b(?:u?int|b?float|complex)\d+\b|#.*|\b\w+=", re.I)
REMEDY = re.compile(r"here it is|here they are|not implemented|the package (has|does not have)|; (use|convert|expected|call|say|write|pass|name|give)\b|; for \w+|arrays hold numbers|is maximum|is minimum|say correction")


def values(text):
    """The brackets and numbers in a text."""
    words = {"True": 1.0, "False": 0.0, "[": "[", "]": "]"}
    return [words[token] if token in words else float(token) for token in TOKEN.findall(NOISE.sub(" ", text))]


def compared(want, got, digits):
    """Whether two texts show the same value; with less digits in the first one."""
    if want.strip() == got.strip():
        return "same"
    a, b = values(want.partition("...")[0]), values(got)
    if "..." in want or a.count("[") > a.count("]"):  # the docstring leaves the rest out, or a blank line ends it
        b = b[:len(a)]
    if not a and not b:
        kinds = [re.search(r"(bool|u?int|b?float|complex)\d*", text) for text in (want, got)]
        return "rule" if all(kinds) and kinds[0][1] == kinds[1][1] else "other"
    if len(a) != len(b):  # scalars of NumPy have no brackets
        a, b = ([one for one in x if one not in ("[", "]")] for x in (a, b))
    if len(a) != len(b) or [x for x in a if isinstance(x, str)] != [x for x in b if isinstance(x, str)]:
        return "other"
    a, b = (numpy.asarray([one for one in x if not isinstance(one, str)]) for x in (a, b))
    scale = abs(a[numpy.isfinite(a)]).max(initial=1 if digits < 6 else 0)
    return "same" if numpy.allclose(a, b, rtol=1e-7, atol=scale * (2 * 10.0 ** -digits if digits < 6 else 2e-7), equal_nan=True) else "other"


def pinned(examples):
    """The examples, where operands that are drawn at random have the numbers that the next line shows."""
    for one, after in zip(examples, examples[1:]):
        match = re.match(r"(\w+) = .*rand", one.source)
        if match and after.source.strip() == match[1] and "..." not in after.want:
            one.source = re.sub(r"\s+", " ", f"{match[1]} = {after.want.strip()}".replace("tensor(", "torch.tensor(")) + "\n"
    return examples


def forget(source, names):
    """Removes the names that a failed statement assigns, so that statements with them fail, too."""
    with contextlib.suppress(SyntaxError):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.pop(node.id, None)


def outcomes(name, text, digits, package):
    """The outcome of each example of a docstring with a package, and what there is to see."""
    names = {"np": package, "torch": package, "array": package.array, "numpy": numpy, "math": math, "StringIO": io.StringIO}
    failed, found, is_random = None, [], False
    package.set_printoptions(precision=8, threshold=1000, edgeitems=3, linewidth=75, suppress=False)
    for example in pinned(doctest.DocTestParser().get_examples(text)):
        source = re.sub(r"\b(from|import) (numpy|torch)\b(?!\.testing)", rf"\1 {package.__name__}", example.source)
        if LEFT_OUT.search(source):
            failed = failed or "left out"
            forget(source, names)
            continue
        is_random = is_random or RANDOM.search(source)
        printed, error = io.StringIO(), None
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
                exec(compile(source, name, "single"), names)
        except Exception as raised:  # whatever it is, it is counted
            error = raised
            if match := re.match("cannot import name '(\\w+)' from 'compute.(\\w+)'", str(error)):
                error = AttributeError(compute._names.missing(f"compute.{match[2]}", match[1]))
        if error is not None and (example.exc_msg is not None or "Error" in example.want):
            kind = "same"
        elif error is not None:
            forget(source, names)
            is_absent = isinstance(error, ModuleNotFoundError) and not error.name.startswith("compute")
            if isinstance(error, SyntaxError) or is_absent:  # a fault of the docstring, or a package that is not installed
                failed = "left out"
            elif not failed or not isinstance(error, NameError):
                failed = "remedy" if REMEDY.search(str(error)) else "other"
            kind = failed
        elif not example.want.strip() or is_random or "may vary" in example.want:
            kind = "same"
        else:
            kind = compared(example.want, printed.getvalue(), digits)
            if kind == "other" and "j" not in example.want:
                kind = "rule" if compared(example.want, re.sub(r"[+-]0\.j", "", printed.getvalue()), digits) == "same" else "other"
            kind = failed if kind == "other" and failed and source.strip().isidentifier() else kind  # of an array that a failed example should have changed
        found.append((kind, f"{source}want: {example.want.strip()}\ngot:  {repr(error) if error is not None else printed.getvalue().strip()}"))
    return found


def docstrings_of_torch(names, folder):
    """Read from the sources: an import would need the libraries of the wheel."""
    known = {}
    for file in ("_torch_docs.py", "functional.py", "nn/functional.py", "special/__init__.py", "_tensor_docs.py"):
        for node in ast.walk(ast.parse((folder / file).read_text(encoding="utf-8"))):
            if getattr(getattr(node, "func", None), "id", "") in ("add_docstr", "_add_docstr", "add_docstr_all"):
                constants = sorted((one for one in ast.walk(node) if isinstance(one, ast.Constant)), key=lambda one: one.lineno)
                texts = [one.value for one in constants if isinstance(one.value, str)]
                known.setdefault(getattr(node.args[0], "attr", None) or (texts or [""])[0], "\n".join(texts).replace("{{", "{").replace("}}", "}"))
            elif isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
                known.setdefault(node.name, ast.get_docstring(node))
    return [(name, known.get(name, "")) for name in names]


def main():
    library, *rest = [one for one in sys.argv[1:] if one != "-v"]
    names = re.sub("#.*", "", (pathlib.Path(__file__).parent / f"doctests_{library}.txt").read_text(encoding="utf-8")).split()
    texts = [(name, functools.reduce(lambda owner, part: getattr(owner, part, None), name.split("."), numpy).__doc__ or "") for name in names] if library == "numpy" else docstrings_of_torch(names, pathlib.Path(rest[0]))
    counts, kinds = collections.Counter(), ("same", "rule", "remedy", "other")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # some examples write files
        for name, text in texts:
            runs, digits = [], 7 if library == "numpy" else 4
            for default in (compute.float32, compute.float64):
                compute.set_default_dtype(default)
                runs.append(outcomes(name, text, digits, compute))
            with numpy.printoptions():
                runs.append(outcomes(name, text, digits, numpy) if library == "numpy" else runs[0])
            for (kind, shown), (wide, _), (theirs, _) in zip(*runs, strict=True):
                kind = "rule" if kind == "other" and wide in ("same", "rule") else kind
                kind = "left out" if kind == theirs == "other" and library == "numpy" else kind
                counts[kind] += 1
                if "-v" in sys.argv and kind in ("remedy", "other"):
                    print(f"--- {kind}: {name}\n{shown}")
    total = sum(counts[kind] for kind in kinds)
    print(f"{library}: {len(names)} functions, {total} examples: " + ", ".join(f"{counts[kind]} {kind} ({counts[kind] / total:.1%})" for kind in kinds))


main()
