# SPDX-License-Identifier: Apache-2.0
"""The package as a whole: stubs, docstrings, the pages."""

import ast
import contextlib
import doctest
import inspect
import io
import os
import pathlib
import re
import unittest

import omnibal
from omnibal import _core

ROOT = pathlib.Path(os.environ["OMNIBAL_ROOT"])


def stubs():
    return ast.parse((ROOT / "examples/python/omnibal/_core.pyi").read_text()).body


def built_signature(function):
    """Names and defaults that pybind11 names where an argument is missing."""
    try:
        function()
    except TypeError as error:
        line = str(error).splitlines()[1]
    inside = line[line.index("(") + 1 : line.rindex(") ->")]
    inside = re.sub(r"<[^>]*>", "None", inside)
    names = []
    for part in re.split(r", (?=[a-z_]+:|\*)", inside):
        if part == "*" or not part:
            continue
        name, _, default = part.partition(" = ")
        names.append((name.partition(":")[0], default))
    return names


class Stubs(unittest.TestCase):
    def test_functions_have_the_same_arguments(self):
        functions = {node.name: node for node in stubs() if isinstance(node, ast.FunctionDef)}
        built = {name for name, value in vars(_core).items() if inspect.isbuiltin(value)}
        self.assertEqual(set(functions), built)
        for name, node in functions.items():
            arguments = node.args.args + node.args.kwonlyargs
            defaults = [None] * (len(node.args.args) - len(node.args.defaults))
            defaults += node.args.defaults + node.args.kw_defaults
            found = built_signature(getattr(_core, name))
            self.assertEqual([a.arg for a in arguments], [a for a, _ in found], name)
            for (argument, value), expected in zip(found, defaults):
                self.assertEqual(bool(value), expected is not None, (name, argument))
                if value:
                    self.assertEqual(ast.literal_eval(value), expected.value, (name, argument))

    def test_inspect_reads_the_signatures(self):
        # Editors, and libraries that bind arguments, ask inspect for them.
        for node in stubs():
            if isinstance(node, ast.FunctionDef):
                self.check_signature(node, getattr(omnibal, node.name))
            for method in node.body if isinstance(node, ast.ClassDef) else ():
                if not isinstance(method, ast.FunctionDef):
                    continue
                if method.name == "__init__":
                    self.check_signature(method, getattr(omnibal, node.name), skipped=1)
                elif ast.get_docstring(method):
                    self.check_signature(method, getattr(getattr(omnibal, node.name), method.name))

    def check_signature(self, node, function, skipped=0):
        found = inspect.signature(function).parameters.values()
        for arguments, kind in ((node.args.args[skipped:], inspect.Parameter.POSITIONAL_OR_KEYWORD),
                                (node.args.kwonlyargs, inspect.Parameter.KEYWORD_ONLY)):
            self.assertEqual([a.arg for a in arguments], [p.name for p in found if p.kind == kind])
        defaults = [d.value for d in node.args.defaults + node.args.kw_defaults if d]
        self.assertEqual([p.default for p in found if p.default is not p.empty], defaults, node.name)

    def test_classes_have_the_same_members(self):
        classes = {node.name: node for node in stubs() if isinstance(node, ast.ClassDef)}
        built = {name for name, value in vars(_core).items() if inspect.isclass(value)}
        self.assertEqual(set(classes), built)
        for name, node in classes.items():
            members = {f.name for f in node.body if isinstance(f, ast.FunctionDef)}
            members -= {m for m in members if m.startswith("__")}
            found = {m for m in vars(getattr(_core, name)) if not m.startswith("_")}
            self.assertEqual(members, found, name)
            protocols = {"__len__", "__getitem__", "__iter__", "__call__", "__bool__"}
            declared = {f.name for f in node.body if isinstance(f, ast.FunctionDef)} & protocols
            self.assertEqual(declared, protocols & set(vars(getattr(_core, name))), name)

    def test_all_is_exported(self):
        self.assertEqual(set(omnibal.__all__),
                         {name for name in vars(_core) if not name.startswith("_")})
        self.assertTrue(os.path.exists(os.path.join(os.path.dirname(omnibal.__file__), "py.typed")))


class OldNames(unittest.TestCase):
    def test_they_warn_and_are_the_new_functions(self):
        for old, new in (("balance_within", "balance_under_capacity"),
                         ("improve", "improve_packing"),
                         ("minimax", "partition_minimax"),
                         ("refine", "refine_parts"),
                         ("utilisation", "utilization")):
            with self.assertWarnsRegex(DeprecationWarning, "omnibal.%s is now omnibal.%s" % (old, new)):
                self.assertIs(getattr(omnibal, old), getattr(omnibal, new))
        with self.assertRaisesRegex(AttributeError, "no attribute 'balance_with'"):
            omnibal.balance_with


class Docstrings(unittest.TestCase):
    def test_they_are_the_comments_of_the_headers(self):
        import sys
        sys.path.insert(0, str(ROOT / "examples/python"))
        import docstrings
        include = ROOT / "include"
        for name, header in docstrings.ALGORITHMS.items():
            text = docstrings.docstring(include, name, header)
            self.assertRegex(text, "Complexity", name)
            self.assertTrue(getattr(omnibal, name).__doc__.rstrip().endswith(text), name)
        for name, header in docstrings.CLASSES.items():
            of = getattr(omnibal, docstrings.class_name(name))
            self.assertTrue(of.__doc__.endswith(docstrings.docstring(include, name, header)), name)

    def test_examples(self):
        for name in omnibal.__all__:
            of = getattr(omnibal, name)
            if not callable(of):
                continue
            text = of.__doc__
            example = doctest.DocTestParser().get_doctest(text, {"omnibal": omnibal}, name, None, 0)
            self.assertTrue(example.examples, name)
            printed = io.StringIO()
            failed = doctest.DocTestRunner().run(example, out=printed.write).failed
            self.assertEqual(failed, 0, printed.getvalue())
            if not inspect.isclass(of):
                self.assertRegex(text, r"(?s)\n\nArgs:\n.*\n\nReturns:\n.*\n\nRaises:\n", name)
            elif "__init__" in self.written(name):
                self.assertRegex(text, r"(?s)\n\nArgs:\n.*\n\nRaises:\n", name)
            self.assertEqual(self.described(text), self.arguments(name), name)

    @staticmethod
    def written(name):
        """The functions that the stubs have of a class, by name."""
        node = next(n for n in stubs() if getattr(n, "name", "") == name)
        return {f.name: f for f in node.body if isinstance(f, ast.FunctionDef)}

    def arguments(self, name):
        """The arguments of a function, or of a class that can be made."""
        of = getattr(omnibal, name)
        if inspect.isclass(of) and "__init__" not in self.written(name):
            return []
        return list(inspect.signature(of).parameters)

    @staticmethod
    def described(text):
        """The arguments that a docstring describes."""
        lines = re.search(r"(?s)\n\nArgs:\n(.*?)\n\n", text)
        return re.findall(r"(?m)^    (\w+): ", lines.group(1)) if lines else []

    def test_every_function_and_member_has_one(self):
        for name in omnibal.__all__:
            of = getattr(omnibal, name)
            self.assertTrue(of.__doc__, name)
            for member, value in vars(of).items() if inspect.isclass(of) else ():
                if not member.startswith("_"):
                    self.assertTrue(value.__doc__, (name, member))

    def test_every_function_of_other_systems_has_one(self):
        for path in (ROOT / "examples/python/omnibal/compat").glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                    # The function below its overloads has their docstring.
                    decorators = map(ast.unparse, getattr(node, "decorator_list", ()))
                    if "overload" not in decorators and not getattr(node, "name", "").startswith("_"):
                        self.assertTrue(ast.get_docstring(node), (path.name, node))


class Pages(unittest.TestCase):
    """The programs of README and docs/ in Python run, and print what stands below them.

    The conversions of files.md and the tutorial have tests of their own.
    """

    def test_programs(self):
        pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
        pages = [page for page in pages if page.name not in ("files.md", "tutorial.md")]
        with_programs = 0
        for page in pages:
            programs = re.findall(
                r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", page.read_text(), re.S
            )
            with_programs += bool(programs)
            for program, expected in programs:
                with self.subTest(page=page.name, program=program):
                    printed = io.StringIO()
                    with contextlib.redirect_stdout(printed):
                        exec(compile(program, str(page), "exec"), {})
                    self.assertEqual(printed.getvalue(), expected)
        self.assertGreater(with_programs, 2)


if __name__ == "__main__":
    unittest.main()
