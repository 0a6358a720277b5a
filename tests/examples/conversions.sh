#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Files of other programs are read, or they are named and what docs/reference/files.md says converts
# each of them. One whose tool or package is not here is skipped by its name. Exit status 77: there is no python3.
#
# usage: conversions.sh PROGRAM PAGE
set -eu
program=$(realpath "$1")
page=$(realpath "$2")
. "$(dirname "$0")/find_python.sh"
"$python" - "$program" "$page" <<'PYTHON'
import array, bz2, importlib.util, io, json, lzma, os, pathlib, pickle, re, shutil, sqlite3, struct
import subprocess, sys, tarfile, zipfile

program, page = sys.argv[1:]
os.mkdir("bin")
os.symlink(program, "bin/pack_dataset")
os.environ["PATH"] = os.path.abspath("bin") + os.pathsep + os.environ["PATH"]

images, tokens = [4, 0, 9, 1], [100, 30, 200, 50]
records = [{"vit_num": i, "token_num": t} for i, t in zip(images, tokens)]
lines = "".join(json.dumps(record) + "\n" for record in records)
table = "vit_num,token_num\n" + "".join("%d,%d\n" % pair for pair in zip(images, tokens))


def write(name, data):
    pathlib.Path(name).write_bytes(data)


def npy():
    header = "{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }\n".encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + struct.pack("<4q", *tokens)


def compressed(tool, name, compress):
    """Nothing without the tool that the page names."""
    if shutil.which(tool):
        write(name, compress(lines.encode()))
        return tool
    return None


def by_tool(*words):
    return lambda data: subprocess.run(words, input=data, stdout=subprocess.PIPE, check=True).stdout


def parquet():
    import pyarrow, pyarrow.parquet
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), "lengths.parquet")


def arrow_file():
    import pyarrow, pyarrow.feather
    pyarrow.feather.write_feather(pyarrow.Table.from_pylist(records), "lengths.feather")


def arrow_stream():
    import pyarrow
    rows = pyarrow.Table.from_pylist(records)
    with pyarrow.OSFile("lengths.arrow", "wb") as sink, pyarrow.ipc.new_stream(sink, rows.schema) as out:
        out.write_table(rows)


def megatron():
    write("corpus.idx", b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 4, 4, 5)
          + struct.pack("<4i", *tokens) + struct.pack("<4q", 0, 400, 520, 1320)
          + struct.pack("<5q", *range(5)))


def npz():
    with zipfile.ZipFile("lengths.npz", "w") as archive:
        archive.writestr("lengths.npy", npy())


def pickled(protocol):
    def fixture():
        write("lengths.pkl", pickle.dumps(tokens, protocol))
    return fixture


def hdf5():
    import h5py
    with h5py.File("lengths.h5", "w") as file:
        file["vit_num"], file["token_num"] = images, tokens


def sqlite():
    pathlib.Path("lengths.db").unlink(missing_ok=True)
    with sqlite3.connect("lengths.db") as base:
        base.execute("CREATE TABLE samples (vit_num, token_num)")
        base.executemany("INSERT INTO samples VALUES (:vit_num, :token_num)", records)
    base.close()


def tar():
    with tarfile.open("shard.tar", "w") as shard:
        for number, record in enumerate(records):
            for suffix, data in (("json", json.dumps(record).encode()), ("txt", b"a caption")):
                entry = tarfile.TarInfo("%06d.%s" % (number, suffix))
                entry.size = len(data)
                shard.addfile(entry, io.BytesIO(data))


def checksum(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def tfrecord():
    def field(number, data):
        return bytes([number << 3 | 2, len(data)]) + data

    def example(record):
        features = b""
        for name, value in record.items():
            varint = bytes([value]) if value < 128 else bytes([value & 127 | 128, value >> 7])
            feature = field(3, field(1, varint))
            features += field(1, field(1, name.encode()) + field(2, feature))
        return field(1, features)

    out = b""
    for record in records:
        data, size = example(record), struct.pack("<Q", len(example(record)))
        out += size + checksum(size) + data + checksum(data)
    write("lengths.tfrecord", out)


def raw():
    write("lengths.bin", array.array("H", tokens).tobytes())


def samples():
    with open("samples.jsonl", "w") as out:
        for i, t in zip(images, tokens):
            sample = {"stats": {"tiles": i}, "input_ids": list(range(t)), "seconds": t / 8}
            out.write(json.dumps(sample) + "\n")


def webdataset_shard():
    import webdataset
    with webdataset.TarWriter("written.tar") as sink:
        for number, record in enumerate(records):
            sink.write({"__key__": "a/%d" % number,
                        "json": record, "txt": "x" * record["token_num"]})


def other_litdata():
    """Items in frames of zstd, which are not read, with an index as old versions cannot have it."""
    shutil.rmtree("folder", ignore_errors=True)
    if importlib.util.find_spec("litdata") is None:
        os.makedirs("folder")
        config = {"compression": "zstd", "compression_level": "batch"}
        write("folder/index.json", json.dumps({"chunks": [{"chunk_bytes": 9}], "config": config}).encode())
        return
    write_litdata("folder", compression="zstd", compression_level="batch")


def write_litdata(folder, **options):
    import litdata.streaming.writer, numpy
    shutil.rmtree(folder, ignore_errors=True)
    writer = litdata.streaming.writer.BinaryWriter(folder, chunk_size=3, **options)
    for number, (i, t) in enumerate(zip(images, tokens)):
        writer[number] = {"stats": {"tiles": i}, "input_ids": numpy.arange(t)}
    writer.done()
    writer.merge()


def litdata_rows():
    """Numbers and lists of Python, which litData keeps as rows of Arrow."""
    import litdata.streaming.writer
    shutil.rmtree("rows", ignore_errors=True)
    writer = litdata.streaming.writer.BinaryWriter("rows", chunk_size=3)
    for number, (i, t) in enumerate(zip(images, tokens)):
        writer[number] = {"stats": {"tiles": i}, "input_ids": list(range(t))}
    writer.done()
    writer.merge()


def write_mds(folder, **options):
    import numpy, streaming
    shutil.rmtree(folder, ignore_errors=True)
    columns = {"tiles": "int", "input_ids": "ndarray:int32", "any": "ndarray", "seconds": "float32"}
    with streaming.MDSWriter(out=folder, columns=columns, size_limit=2000, **options) as out:
        for i, t in zip(images, tokens):
            ids = numpy.arange(t, dtype=numpy.int32)
            out.write({"tiles": i, "input_ids": ids, "any": ids.reshape(t, 1), "seconds": numpy.float32(t / 8)})


# The program may be built with Arrow C++.
read_with_arrow = ["is a Parquet file", "is an Arrow (Feather) file", "is an Arrow stream"]
# How the row of the page begins; the file, what its error must say, what makes it, and the package that the
# conversion needs.
conversions = [
    ("Parquet", "lengths.parquet", read_with_arrow[0], parquet, "pyarrow"),
    ("Arrow file (Feather)", "lengths.feather", read_with_arrow[1], arrow_file, "pyarrow"),
    ("Arrow stream", "lengths.arrow", read_with_arrow[2], arrow_stream, "pyarrow"),
    ("NPZ", "lengths.npz", "is a zip file", npz, "numpy"),
    *(("Pickle", "lengths.pkl", "is a Python pickle", pickled(p), None) for p in range(6)),
    ("HDF5", "lengths.h5", "is an HDF5 file", hdf5, "h5py"),
    ("SQLite", "lengths.db", "is an SQLite database", sqlite, None),
    ("litData", "folder", '"config.compression_level" is "batch"', other_litdata, "litdata"),
    ("TFRecord", "lengths.tfrecord", "is a TFRecord file", tfrecord, "tensorflow"),
    ("raw numbers", "lengths.bin", "holds a zero byte, so it is no text", raw, None),
]
lists_and_tiles = ["--image-field", "stats.tiles", "--length-of", "input_ids"]
mds_fields = ["--image-field", "tiles", "--length-of", "input_ids"]
made_without_package = {"NPZ", "TFRecord", "litData"}
# What is read as it is: the file, what makes it, its package, the options, and the plan it must have.
readable = [
    ("corpus.idx", megatron, None, [], "plain.txt.plan"),
    ("corpus.idx", megatron, None, ["--megatron-documents"], "plain.txt.plan"),
    ("shard.tar", tar, None, [], "plain.csv.plan"),
    ("written.tar", webdataset_shard, "webdataset", [], "plain.csv.plan"),
    ("written.tar", webdataset_shard, "webdataset", ["--tar-member", "txt"], "plain.txt.plan"),
    ("chunks", lambda: write_litdata("chunks"), "litdata", lists_and_tiles, "plain.csv.plan"),
    ("packed", lambda: write_litdata("packed", compression="zstd", compression_level="chunk"), "litdata",
     lists_and_tiles, "plain.csv.plan"),
    ("rows", litdata_rows, "litdata", lists_and_tiles, "plain.csv.plan"),
    ("mds", lambda: write_mds("mds"), "streaming", mds_fields, "plain.csv.plan"),
    ("mds/index.json", lambda: None, "streaming", ["--text", "--length-of", "any"], "plain.txt.plan"),
    ("mds", lambda: None, "streaming", ["--text", "--token-field", "seconds", "--token-scale", "8"],
     "plain.txt.plan"),
    ("mds.zstd", lambda: write_mds("mds.zstd", compression="zstd:7"), "streaming", mds_fields, "plain.csv.plan"),
    ("samples.jsonl", samples, None, ["--image-field", "stats.tiles", "--length-of", "input_ids"],
     "plain.csv.plan"),
    ("samples.jsonl", samples, None, ["--text", "--token-field", "seconds", "--token-scale", "8"],
     "plain.txt.plan"),
]
tools = [("xz", "lengths.jsonl.xz", lzma.compress, "is an xz file"),
         ("bzip2", "lengths.jsonl.bz2", bz2.compress, "is a bzip2 file"),
         ("lz4", "lengths.jsonl.lz4", by_tool("lz4", "-qc"), "is an lz4 file"),
         ("iconv", "lengths16.jsonl", lambda data: data.decode().encode("utf-16"), "is a text in UTF-16")]

section = re.search(r"^## Formats that are not read\n(.*?)^## ", open(page).read(), re.S | re.M).group(1)
commands, frame = (re.search("^```%s\n(.*?)^```" % kind, section, re.S | re.M).group(1)
                   for kind in ("sh", "python"))
rows = re.findall(r"^\| (.*) \| `([^`]+)` \| `([^`]+)` \|$", section, re.M)
titles = {one[0] for one in conversions}
assert len(rows) == len(titles) == section.count("\n|") - 2, rows


def program_of(title):
    (row,) = [row for row in rows if re.match(re.escape(title) + r"\b|" + re.escape(title) + "$", row[0])]
    return frame.replace("MODULE", row[1]).replace("EXPRESSION", row[2])


failures, skipped = 0, []


def complain(text):
    global failures
    failures += 1
    print("FAILED:", text)


def pack(*words):
    return subprocess.run([program, *words, "--no-picture"], capture_output=True, text=True, errors="replace")


def plan_of(folder):
    return [pathlib.Path(folder, name + ".npy").read_bytes() for name in ("items", "offsets", "loads")]


def check_named(name, text):
    done = pack(name, "--output", "never")
    if done.returncode == 0 and text in read_with_arrow:
        if plan_of("never") != plan_of("plain.csv.plan"):
            complain(name + ": another plan")
        shutil.rmtree("never")
    elif done.returncode != 1 or text not in done.stderr:
        complain("%s: '%s' is not in the message: %s" % (name, text, done.stderr))
    # Nor is it read as what it is not where a format is given.
    if text.startswith("is a"):
        for form in ("json", "jsonl", "csv", "numbers", "manifest"):
            done = pack(name, "--format", form, "--output", "never")
            if text not in done.stderr:
                complain("%s as %s: %s" % (name, form, done.stderr))


write("plain.csv", table.encode())
write("plain.txt", "\n".join(map(str, tokens)).encode())
for name in ("plain.csv", "plain.txt"):
    assert pack(name, "--output", name + ".plan").returncode == 0

for title, name, message, fixture, package in conversions:
    has_package = package is None or importlib.util.find_spec(package) is not None
    if not has_package:
        skipped.append(title + " (no " + package + ")")
    if not has_package and title not in made_without_package:
        continue
    fixture()
    check_named(name, message)
    if not has_package:
        continue
    pathlib.Path("lengths.json").unlink(missing_ok=True)
    done = subprocess.run([sys.executable, "-c", program_of(title)], capture_output=True, text=True)
    done = pack("lengths.json", "--output", "plan") if done.returncode == 0 else done
    if done.returncode != 0:
        complain("%s: %s" % (title, done.stderr))
    elif plan_of("plan") not in (plan_of("plain.csv.plan"), plan_of("plain.txt.plan")):
        complain(title + ": another plan")

commands = commands.strip().split("\n")
assert [command.split()[0] for command in commands] == [tool[0] for tool in tools]
for (tool, name, compress, message), command in zip(tools, commands):
    if not compressed(tool, name, compress):
        skipped.append(tool)
        continue
    check_named(name, message)
    shutil.rmtree("plan", ignore_errors=True)
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    if done.returncode != 0 or plan_of("plan") != plan_of("plain.csv.plan"):
        complain("%s: %s" % (command, done.stderr))

for name, fixture, package, options, expected in readable:
    if package is not None and importlib.util.find_spec(package) is None:
        skipped.append("%s (no %s)" % (name, package))
        continue
    fixture()
    done = pack(name, *options, "--output", "plan")
    without = [one for one in ("without Arrow C++", "without libzstd") if one in done.stderr]
    if without:
        skipped.append("%s (built %s)" % (name, without[0]))
    elif done.returncode != 0 or plan_of("plan") != plan_of(expected):
        complain("%s %s: %s" % (name, options, done.stderr or "another plan"))
    if name != "samples.jsonl":
        done = pack(name, "--format", "csv", "--output", "never")
        if "--format names another format" not in done.stderr:
            complain("%s as csv: %s" % (name, done.stderr))

# Expanded, or the command is named.
if compressed("zstd", "lengths.jsonl.zst", by_tool("zstd", "-qc")):
    done = pack("lengths.jsonl.zst", "--output", "plan")
    if done.returncode != 0 and "zstd -dc lengths.jsonl.zst" in done.stderr:
        skipped.append("zstd without libzstd")
        done = subprocess.run("zstd -dc lengths.jsonl.zst | pack_dataset -", shell=True, capture_output=True)
    if done.returncode != 0 or plan_of("plan") != plan_of("plain.csv.plan"):
        complain("zstd: %s" % done.stderr)
else:
    skipped.append("zstd")

print("skipped:", ", ".join(skipped) if skipped else "nothing")
sys.exit(failures != 0)
PYTHON
