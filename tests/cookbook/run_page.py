# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of a page in order in an empty folder, and compares what they print.

usage: run_page.py PAGE ROOT PACK_DATASET CXX [write]

Blocks of sh and python run; a block of cpp becomes the file that the next block of sh compiles. Each
line of a block of text must be among the lines that the block before it prints, in that order. The
clone of the page is a folder `omnibal` with the headers of ROOT, and its script of the main job calls
PACK_DATASET. With `write`, a block of text that is one word in `@` becomes what was printed.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile


def lacking(expected, printed):
    """Returns the first line of `expected` that is not among those of `printed`, in order."""
    lines = iter(printed.splitlines())
    for line in expected.splitlines():
        if not any(line == other for other in lines):
            return line
    return None


def main():
    page, root, program, compiler = map(pathlib.Path, sys.argv[1:5])
    text = page.read_text()
    blocks = re.findall(r"(?m)^```(sh|python|cpp|text)\n(.*?)^```$", text, re.S)
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "omnibal/scripts").mkdir(parents=True)
        (folder / "omnibal/include").symlink_to(root.resolve() / "include")
        script = folder / "omnibal/scripts/main_job.sh"
        script.write_text('#!/bin/sh\nexec "%s" "$@"\n' % program)
        script.chmod(0o755)
        (folder / "bin").mkdir()
        gxx = folder / "bin/g++"
        gxx.write_text('#!/bin/sh\nexec "%s" "$@" -O0\n' % compiler)
        gxx.chmod(0o755)
        path = "%s:%s" % (folder / "bin", os.environ["PATH"])
        printed = code = ""
        for kind, block in blocks:
            if kind == "cpp":
                code = block
                continue
            if kind == "text":
                if re.fullmatch(r"@\w+@\n", block) and "write" in sys.argv[5:]:
                    text = text.replace(block, printed)
                    continue
                line = lacking(block, printed)
                if line is not None:
                    failed = True
                    print("%s: not printed: %s\nbut:\n%s" % (page, line, printed))
                continue
            command = ["bash", "-ec", block]
            if kind == "python":
                command = [sys.executable, "-c", block]
            elif code:
                source = re.search(r"\S+\.cpp", block).group()
                (folder / source).write_text(code)
                code = ""
            done = subprocess.run(
                command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True
            )
            printed = done.stdout
            if done.returncode != 0:
                sys.exit("%s: fails:\n%s%s" % (page, block, done.stderr))
    if "write" in sys.argv[5:]:
        page.write_text(text)
    sys.exit(failed)


if __name__ == "__main__":
    main()
