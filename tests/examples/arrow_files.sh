#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Parquet, Arrow files, Arrow streams and folders of save_to_disk give the lengths of their rows. Exit status
# 77: Python has no pyarrow, or the program is built without Arrow C++.
#
# usage: arrow_files.sh PROGRAM
set -eu
program=$(realpath "$1")
. "$(dirname "$0")/find_python.sh"
"$python" - "$program" <<'PYTHON'
import json, pathlib, subprocess, sys

try:
    import pyarrow, pyarrow.parquet
except ImportError:
    print("skipped: there is no pyarrow")
    sys.exit(77)

program = sys.argv[1]
failures = 0


def complain(text):
    global failures
    failures += 1
    print("FAILED:", text)


def pack(*words):
    done = subprocess.run([program, *words, "--no-picture", "--quiet", "--output", "plan"],
                          capture_output=True, text=True, errors="replace")
    names = ("items", "offsets", "loads", "order", "oversized")
    plan = [pathlib.Path("plan", name + ".npy").read_bytes() for name in names] if done.returncode == 0 else None
    return plan, done.stderr


def write_stream(table, name):
    with pyarrow.OSFile(name, "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table, max_chunksize=2)


def write_all(table):
    """The table in each format, in parts of two rows."""
    pyarrow.parquet.write_table(table, "a.parquet", row_group_size=2)
    write_stream(table, "a.stream")
    with pyarrow.OSFile("a.feather", "wb") as sink:
        options = pyarrow.ipc.IpcWriteOptions(compression="lz4")
        with pyarrow.ipc.new_file(sink, table.schema, options=options) as out:
            out.write_table(table, max_chunksize=2)
    pathlib.Path("saved").mkdir(exist_ok=True)
    for number in range(2):
        half = (table.num_rows + 1) // 2
        write_stream(table.slice(number * half, half), "saved/data-%d.arrow" % number)
    files = [{"filename": "data-%d.arrow" % number} for number in range(2)]
    pathlib.Path("saved/state.json").write_text(json.dumps({"_data_files": files, "_split": None}))
    return ["a.parquet", "a.stream", "a.feather", "saved"]


def check(table, tokens, *options, images=None):
    """Each format has these tokens, and these images."""
    if images is None:
        options += ("--text",)
        pathlib.Path("expected.txt").write_text("\n".join(map(str, tokens)))
    else:
        rows = ["%d,%d\n" % row for row in zip(images, tokens)]
        pathlib.Path("expected.txt").write_text("vit_num,token_num\n" + "".join(rows))
    limits = ("--capacity", "400") if images is None else ("--capacity", "9", "400")
    expected, message = pack("expected.txt", *limits, *(() if images else ("--text",)))
    assert expected is not None, message
    for name in write_all(table):
        plan, message = pack(name, *options, *limits)
        if plan != expected:
            complain("%s %s: %s" % (name, options, message or "another plan"))


def refuse(table, *options, words, images=False):
    for name in write_all(table):
        plan, message = pack(name, *options, *(() if images else ("--text",)))
        missing = [word for word in words if word not in message]
        if plan is not None or missing:
            complain("%s %s: %s is not in: %s" % (name, options, missing, message))


tokens = [100, 30, 0, 200, 50]
lists = [list(range(n)) for n in tokens]
table = pyarrow.table({
    "token_num": tokens, "vit_num": pyarrow.array([4, 0, 9, 1, 2], pyarrow.uint8()),
    "input_ids": lists, "seconds": [n / 8 for n in tokens],
    "stats": [{"text": {"ids": ids, "n": n}, "n": n, "tiles": t}
              for ids, n, t in zip(lists, tokens, [4, 0, 9, 1, 2])],
})
write_all(table)
if "without Arrow C++" in pack("a.parquet")[1]:
    print("skipped: the program is built without Arrow C++")
    sys.exit(77)

check(table, tokens, "--token-field", "token_num")
check(table, tokens, "--length-of", "input_ids")
check(table, tokens, "--token-field", "stats.n")
check(table, tokens, "--token-field", "stats.text.n")
check(table, tokens, "--length-of", "stats.text.ids")
check(table, tokens, "--token-field", "seconds", "--token-scale", "8")
check(table, [n // 2 for n in tokens], "--length-of", "input_ids", "--token-scale", "0.5")
check(table, tokens, images=[4, 0, 9, 1, 2])
check(table, tokens, "--image-field", "stats.tiles", "--length-of", "stats.text.ids", images=[4, 0, 9, 1, 2])

# All types of integers and lists; a float is the shortest decimal that means it.
kinds = [getattr(pyarrow, sign + str(bits))() for sign in ("int", "uint") for bits in (8, 16, 32, 64)]
types = pyarrow.table(
    {kind.__str__(): pyarrow.array([5, 7, 3], kind) for kind in kinds}
    | {"large": pyarrow.array([[1], [], [2, 3]], pyarrow.large_list(pyarrow.int8())),
       "fixed": pyarrow.array([[5, 7]] * 3, pyarrow.list_(pyarrow.int8(), 2)),
       "float": pyarrow.array([0.1, 0.7, 1.0], pyarrow.float32())})
for kind in kinds:
    check(types, [5, 7, 3], "--token-field", str(kind))
check(types, [1, 0, 2], "--length-of", "large")
check(types, [2, 2, 2], "--length-of", "fixed")
check(types, [1, 7, 10], "--token-field", "float", "--token-scale", "10")

# A whole name comes before a path. (Parquet forbids this table, and its columns "a.b".)
whole = pyarrow.table({"a": [{"b": 7, "b.c": 1}], "a.b": [5], "c": [{"d.e": 3, "d": {"e": 4}}]})
write_stream(whole, "whole.arrow")
for name, count in (("a.b", 5), ("c.d.e", 3), ("a.b.c", 1)):
    pathlib.Path("expected.txt").write_text("%d" % count)
    if pack("whole.arrow", "--text", "--token-field", name)[0] != pack("expected.txt", "--text")[0]:
        complain(name + " is another field")

bad = pyarrow.table({
    "null": [1, 2, None], "lists": [[1], None, [2]], "negative": [1, 2, -3],
    "large": pyarrow.array([1, 2, 2**63], pyarrow.uint64()), "floats": [1.0, 2.0, 3.5],
    "nan": [1.0, 2.0, float("nan")], "text": ["a", "b", "c"], "struct": [{"x": 1}, {"x": 2}, None],
    "dated": pyarrow.array([1, 2, 3], pyarrow.date32()), "half": pyarrow.array([1, 2, 3], pyarrow.float16()),
})
one = bad.slice(2)
for column, *words in (("null", "record 1", '"null" is null'), ("negative", "record 1", "is -3, which is negative"),
                       ("large", "is 9223372036854775808"), ("floats", "is 3.5, which is not an integer"),
                       ("struct.x", "record 1", '"struct.x" is null')):
    refuse(one, "--token-field", column, words=words)
refuse(one, "--token-field", "nan", "--token-scale", "2", words=["record 1", "is nan"])
refuse(bad.slice(1, 1), "--length-of", "lists", words=["record 1", '"lists" is null', "must be a list"])
for column, *words in (("text", "type string"), ("struct", "type struct<"), ("dated", "type date32"),
                       ("half", "type halffloat"), ("lists", "begins a list"), ("nul", 'did you mean "null"?'),
                       ("struct.y", 'did you mean "struct.x"?'), ("text.x", 'no field "text.x"')):
    refuse(bad, "--token-field", column, words=words)
refuse(bad, "--length-of", "negative", words=["record 1", "is 1", "must be a list"])
refuse(bad, "--token-field", "negative", "--tar-member", "x", words=["is no tar archive"])
refuse(bad, "--format", "csv", words=["--format names another format"])
write_stream(bad, "two.arrow")
if 'two.arrow: record 3: field "null" is null' not in pack("two.arrow", "--text", "--token-field", "null")[1]:
    complain("the third row is not named")

# Of every cut file an error names the file.
for name in write_all(table.slice(0, 3))[:3]:
    data = pathlib.Path(name).read_bytes()
    for size in sorted({*range(4, len(data), len(data) // 40), *range(len(data) - 9, len(data))}):
        pathlib.Path("cut").write_bytes(data[:size])
        plan, message = pack("cut", "--text")
        if plan is not None or "error" not in message:
            complain("%s of %d bytes: %s" % (name, size, message or "no error"))

# Other folders.
for name, content, word in (("dataset_dict.json", {"splits": ["train"]}, "several data sets"),
                            ("state.json", {"_indices_files": [{"filename": "x"}]}, "flatten_indices"),
                            ("state.json", {"_data_files": []}, "_data_files")):
    folder = pathlib.Path("folder-" + word.split("_")[0].replace(" ", "-"))
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(content))
    message = pack(str(folder), "--text")[1]
    if word not in message:
        complain("%s: %s" % (folder, message))

try:
    import datasets
except ImportError:
    print("no package datasets")
else:
    saved = datasets.Dataset.from_dict({"token_num": tokens, "input_ids": lists})
    saved.save_to_disk("of_package", num_shards=2)
    pathlib.Path("expected.txt").write_text("\n".join(map(str, tokens)))
    expected = pack("expected.txt", "--text")[0]
    for options in ((), ("--length-of", "input_ids")):
        plan, message = pack("of_package", "--text", *options)
        if plan != expected:
            complain("save_to_disk %s: %s" % (options, message or "another plan"))

print("all alike" if failures == 0 else "%d failures" % failures)
sys.exit(failures != 0)
PYTHON
