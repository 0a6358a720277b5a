# SPDX-License-Identifier: Apache-2.0
"""omnibal.lengths on files that the packages themselves write, where they are installed."""

import contextlib
import doctest
import gzip
import importlib.util
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy as np
import omnibal.lengths
from omnibal.lengths import read_lengths

try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    pyarrow = None
try:
    import datasets
except ImportError:
    datasets = None


class Folder(unittest.TestCase):
    def setUp(self):
        stack = contextlib.ExitStack()
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.addCleanup(stack.close)

    def refuses(self, path, *words, **options):
        """The call raises a ValueError whose text has all words."""
        column = options.pop("column", None)
        with self.assertRaises(ValueError) as caught:
            read_lengths(path, column, **options)
        for word in words:
            self.assertIn(word, str(caught.exception))


def index(lengths=(100, 30, 200, 50), documents=(0, 1, 3, 3, 4), token_type=4, places=None, modes=(),
          version=1):
    size = {1: 1, 4: 4, 8: 2}.get(token_type, 1)
    if places is None:
        places = np.concatenate([[0], np.cumsum(lengths)[:-1]]) * size
    parts = [b"MMIDIDX\0\0", np.array([version], "<u8"), bytes([token_type])]
    parts += [np.array([len(lengths), len(documents)], "<u8"), np.array(lengths, "<i4")]
    parts += [np.array(places, "<i8"), np.array(documents, "<i8"), np.array(modes, "i1")]
    return b"".join(part if isinstance(part, bytes) else part.tobytes() for part in parts)


class Megatron(Folder):
    def write(self, data):
        (self.folder / "a.idx").write_bytes(data)
        return self.folder / "a.idx"

    def test_sequences_and_documents(self):
        for data in (index(), index(token_type=8), index(modes=[0] * 4)):
            path = self.write(data)
            found = read_lengths(path)
            self.assertEqual((found.dtype, found.tolist()), (np.int64, [100, 30, 200, 50]))
            self.assertEqual(read_lengths(str(path), documents=True).tolist(), [100, 230, 0, 50])
        self.assertEqual(read_lengths(path, scale="0.25").tolist(), [25, 8, 50, 13])

    def test_every_cut_is_refused(self):
        data = index()
        for size in range(9, len(data)):
            self.refuses(self.write(data[:size]), "a.idx", "truncated")
        self.refuses(self.write(data + b"\0"), "do not fit")

    def test_contradictions_are_refused(self):
        for data, word in (
            (index(version=2), "version 2"), (index(token_type=9), "type 9"),
            (index(lengths=(1, -1, 0, 0)), "sequence 1"), (index(places=[0, 1, 2, 3]), "sequence 1"),
            (index(documents=(0, 3, 2, 4)), "4 sequences"), (index(documents=()), "4 sequences"),
            (index(documents=(0, 3)), "4 sequences"), (index(modes=(0, 0, 0, 1)), "modes"),
        ):
            self.refuses(self.write(data), word)
        self.refuses(self.write(index()), "column", "'n'", column="n")

    def test_the_program_prints_them(self):
        words = [sys.executable, "-m", "omnibal.lengths", str(self.write(index())), "--documents"]
        done = subprocess.run(words, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout.split()), (0, ["100", "230", "0", "50"]))
        done = subprocess.run(words + ["--scale", "x"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("scale is 'x'", done.stderr)

    def test_examples(self):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            failed = doctest.testmod(omnibal.lengths).failed
        self.assertEqual(failed, 0, printed.getvalue())

    def test_without_pyarrow_it_says_so(self):
        code = (
            "import sys; sys.modules['pyarrow'] = None\n"
            "from omnibal.lengths import read_lengths\n"
            "open(sys.argv[1], 'wb').write(b'PAR1')\n"
            "try: read_lengths(sys.argv[1], 'n')\n"
            "except ImportError as error: assert 'pip install pyarrow' in str(error), error\n"
            "else: raise SystemExit('no error')\n"
        )
        with tempfile.NamedTemporaryFile() as file:
            subprocess.run([sys.executable, "-c", code, file.name], check=True)


def zstd(data):
    return pyarrow.compress(data, codec="zstd", asbytes=True)


def shard(columns, samples):
    """A shard of MDS: name, encoding, fixed size or None for each column, and the bytes of each value."""
    fixed = [size for _, _, size in columns]
    bodies = []
    for sample in samples:
        sizes = [len(value) for value, size in zip(sample, fixed) if size is None]
        bodies.append(np.array(sizes, "<u4").tobytes() + b"".join(sample))
    config = b'{"format": "mds"}'
    begin = 4 * (len(samples) + 2) + len(config)
    ends = np.cumsum([begin] + [len(body) for body in bodies])
    head = np.array([len(samples), *ends], "<u4").tobytes()
    return head + config + b"".join(bodies)


class Mosaic(Folder):
    COLUMNS = [("any", "ndarray", None), ("f", "float32", 4), ("n", "int", 8), ("s", "str", None),
               ("t", "ndarray:int32", None), ("v", "ndarray:int8:2,3", 6)]

    def write(self, counts, **changes):
        samples = [
            [bytes([33, 2 << 2, t, 2]) + bytes(8 * t), np.float32(t / 8).tobytes(),
             np.int64(t).tobytes(), b"x" * t,
             bytes([1 << 2 | 1]) + np.uint16(t).tobytes() + bytes(4 * t), bytes(6)]
            for t in counts
        ]
        data = shard(self.COLUMNS, samples)
        (self.folder / "s.mds").write_bytes(data)
        about = {"column_names": [c[0] for c in self.COLUMNS], "format": "mds", "version": 2,
                 "column_encodings": [c[1] for c in self.COLUMNS], "samples": len(counts),
                 "column_sizes": [c[2] for c in self.COLUMNS], "compression": None,
                 "raw_data": {"basename": "s.mds", "bytes": len(data)}, "zip_data": None}
        about.update(changes)
        (self.folder / "index.json").write_text(json.dumps({"shards": [about], "version": 2}))
        return data, about

    def test_numbers_and_arrays(self):
        self.write([100, 30, 200])
        for path in (self.folder, self.folder / "index.json"):
            for column, expected in (("n", [100, 30, 200]), ("t", [100, 30, 200]),
                                     ("any", [100, 30, 200]), ("v", [2, 2, 2])):
                found = read_lengths(path, column)
                self.assertEqual((found.dtype, found.tolist()), (np.int64, expected), column)
            self.assertEqual(read_lengths(path, "f", scale="8").tolist(), [100, 30, 200])

    def test_what_is_not_understood_is_refused(self):
        self.write([3, 4])
        self.refuses(self.folder, "'str'", column="s")
        self.refuses(self.folder, "float32", "scale", column="f")
        self.refuses(self.folder, "no column 'x'", column="x")
        for change, word in (({"samples": None}, "'samples'"), ({"column_sizes": 3}, "'column_sizes'"),
                             ({"raw_data": {}}, "its size"), ({"format": "json"}, "'json'"), ({"version": 1}, "version 1"),
                             ({"samples": 3}, "3 samples"),
                             ({"column_sizes": [None, 4, 4, None, None, 6]}, "do not fit")):
            self.write([3, 4], **change)
            self.refuses(self.folder, word, column="n")
        names = [c[0] for c in self.COLUMNS]
        for change in ({"column_names": names[1:]}, {"column_names": names[1:] + [3]},
                       {"column_sizes": [None, 4, -8, None, None, 6]}):
            self.write([3, 4], **change)
            self.refuses(self.folder, "for each column", column="n")
        self.write([3, 4], column_names=["n"] + names[1:])
        self.refuses(self.folder, "'n' occurs twice", column="n")
        for encoding in ("ndarray:int33", "ndarray:int32:x", "ndarray:int8:2,"):
            encodings = [c[1] for c in self.COLUMNS]
            encodings[4] = encoding
            self.write([3, 4], column_encodings=encodings)
            self.refuses(self.folder, repr(encoding), "unknown", column="t")

    def test_compressed_shards(self):
        for pack in [gzip.compress] + ([zstd] if pyarrow is not None else []):
            data, _ = self.write([3, 0, 250], zip_data={"basename": "s.mds.z", "bytes": 1})
            packed = pack(data)
            (self.folder / "s.mds.z").write_bytes(packed)
            # A shard that is not compressed comes first.
            (self.folder / "s.mds.z").write_bytes(b"")
            self.assertEqual(read_lengths(self.folder, "n").tolist(), [3, 0, 250])
            (self.folder / "s.mds").unlink()
            (self.folder / "s.mds.z").write_bytes(packed)
            self.assertEqual(read_lengths(self.folder, "t").tolist(), [3, 0, 250])
            for size in range(0, len(packed), 5):
                (self.folder / "s.mds.z").write_bytes(packed[:size])
                self.refuses(self.folder, "s.mds.z", column="n")
        (self.folder / "s.mds.z").write_bytes(b"BZh9")
        self.refuses(self.folder, "s.mds.z", "neither gzip nor zstd", column="n")

    def test_every_cut_is_refused(self):
        data, about = self.write([2, 1])
        for size in range(len(data)):
            (self.folder / "s.mds").write_bytes(data[:size])
            self.refuses(self.folder, "s.mds", column="t")
            # The same where the index does not know the size.
            about["raw_data"]["bytes"] = size
            (self.folder / "index.json").write_text(json.dumps({"shards": [about], "version": 2}))
            self.refuses(self.folder, "s.mds", column="t")


def chunk(items):
    """A chunk of litData: the bytes of each value of each item."""
    bodies = [np.array([len(v) for v in item], "<u4").tobytes() + b"".join(item) for item in items]
    ends = np.cumsum([4 * (len(items) + 2)] + [len(body) for body in bodies])
    return np.array([len(items), *ends], "<u4").tobytes() + b"".join(bodies)


def leaf():
    return {"type": None, "context": None, "children_spec": []}


def tree(value):
    """PyTorch's description of a tree of dictionaries and lists."""
    if isinstance(value, dict):
        return {"type": "builtins.dict", "context": json.dumps(list(value)),
                "children_spec": [tree(one) for one in value.values()]}
    if isinstance(value, list):
        return {"type": "builtins.list", "context": "null", "children_spec": [tree(one) for one in value]}
    return leaf()


class LitData(Folder):
    ITEM = {"n": 0, "f": 0, "ids": 0, "t": 0, "m": 0, "d": {"a": 0, "b": 0}, "l": [0]}
    TYPES = ["int", "float", "no_header_numpy:3", "no_header_tensor:17", "numpy", "tensor", "str", "int"]

    def write(self, counts, item=None, types=None, spec=None, pack=None, data=None, **config):
        items = [
            [np.int64(n).tobytes(), np.float64(n / 8).tobytes(), bytes(8 * n), bytes(8 * n),
             np.array([2, 2, n, 2], "<u4").tobytes() + bytes(8 * n),
             np.array([11, 2, n, 1], ">u4").tobytes() + bytes(n), b"text", np.int64(n + 1).tobytes()]
            for n in counts
        ]
        data = chunk(items) if data is None else data
        (self.folder / "c.bin").write_bytes(pack(data) if pack else data)
        spec = json.dumps([1, tree(self.ITEM if item is None else item)]) if spec is None else spec
        about = {"chunk_bytes": len(data), "chunk_size": len(counts), "dim": None, "filename": "c.bin"}
        base = {"compression": None, "encryption": None, "item_loader": "PyTreeLoader",
                "data_format": self.TYPES if types is None else types, "data_spec": spec}
        text = json.dumps({"chunks": [about], "config": dict(base, **config)})
        (self.folder / "index.json").write_text(text)
        return data

    def test_numbers_and_arrays(self):
        self.write([3, 0, 300])
        for path in (self.folder, self.folder / "index.json"):
            for column in ("n", "ids", "t", "m", "d.a"):
                found = read_lengths(path, column)
                self.assertEqual((found.dtype, found.tolist()), (np.int64, [3, 0, 300]), column)
            self.assertEqual(read_lengths(path, "f", scale="8").tolist(), [3, 0, 300])
            self.assertEqual(read_lengths(path, "l.0").tolist(), [4, 1, 301])
        self.refuses(self.folder, "'str'", column="d.b")
        self.refuses(self.folder, "no column 'd.c'", "'d.a'", column="d.c")
        self.refuses(self.folder, "float", "scale", column="f")
        self.refuses(self.folder, "column is None")

    def test_items_that_are_one_array(self):
        data = chunk([[bytes(12)], [b""]])
        self.write([0, 0], item=0, types=["no_header_tensor:16"], data=data)
        self.assertEqual(read_lengths(self.folder).tolist(), [3, 0])
        self.assertEqual(read_lengths(self.folder, scale="0.5").tolist(), [2, 0])
        self.refuses(self.folder, "no names", "'n'", column="n")
        self.write([0, 0], item=0, types=["no_header_tensor:16"], data=chunk([[bytes(6)], [b""]]))
        self.refuses(self.folder, "6 bytes")

    def test_what_is_not_understood_is_refused(self):
        for config, word in (({"encryption": {"algorithm": "fernet"}}, "encryption"),
                             ({"compression": "lz4"}, "'lz4'"), ({"compression_level": "batch"}, "'batch'"),
                             ({"item_loader": "TokensLoader"}, "'TokensLoader'")):
            self.write([3], **config)
            self.refuses(self.folder, word, "StreamingDataset", "'n'", column="n")
        self.write([3], compression="zstd")
        self.refuses(self.folder, "c.bin", "neither gzip nor zstd", column="n")
        for types in (self.TYPES[1:], "int", self.TYPES[1:] + [3]):
            self.write([3], types=types)
            self.refuses(self.folder, "no type for each of", column="n")
        for place, kind, column in ((3, "no_header_tensor:77", "t"), (2, "no_header_numpy:x", "ids"),
                                    (2, "no_header_numpy", "ids"), (4, "tensor", "m"), (5, "numpy", "d.a")):
            types = list(self.TYPES)
            types[place] = kind
            self.write([3], types=types)
            self.refuses(self.folder, "array", column=column)
        good = tree(self.ITEM)
        for spec in (None, "x", "[" * 100000, json.dumps([2, good]), json.dumps([1, good, 3]),
                     json.dumps([1, dict(good, context='["n"]')]), json.dumps([1, dict(good, context=None)]),
                     json.dumps([1, {"type": None}]), json.dumps([1, 3])):
            self.write([3], spec=json.dumps(spec) if spec is None else spec)
            self.refuses(self.folder, "data_spec", column="n")
        self.write([3], item={"a.b": 0, "a": {"b": 0}}, types=["int", "int"])
        self.refuses(self.folder, "'a.b' occurs twice", column="a.b")
        for content in ({"chunks": [], "config": 3}, {"chunks": 3, "config": {}}):
            (self.folder / "index.json").write_text(json.dumps(content))
            self.refuses(self.folder, "'config' and 'chunks'", column="n")

    @unittest.skipIf(pyarrow is None, "there is no pyarrow")
    def test_compressed_chunks_and_rows_of_arrow(self):
        self.write([3, 0, 300], pack=zstd, compression="zstd:4")
        self.assertEqual(read_lengths(self.folder, "ids").tolist(), [3, 0, 300])
        sink = pyarrow.BufferOutputStream()
        table = pyarrow.table({"stats": [{"n": 3}, {"n": 0}, {"n": 5}], "ids": [[1, 2], [], [3]]})
        with pyarrow.ipc.new_file(sink, table.schema) as out:
            out.write_table(table, max_chunksize=2)
        rows = sink.getvalue().to_pybytes()
        data = b"head" + rows + np.array([len(rows)], "<u4").tobytes() + b"LDARW01\0"
        self.write([0, 0, 0], data=data)
        self.assertEqual(read_lengths(self.folder, "stats.n").tolist(), [3, 0, 5])
        self.assertEqual(read_lengths(self.folder, "ids").tolist(), [2, 0, 1])
        self.assertEqual(read_lengths(self.folder, "stats.n", scale="0.5").tolist(), [2, 0, 3])
        self.refuses(self.folder, "'x'", column="x")
        self.refuses(self.folder, "column is None")
        self.write([0, 0], data=data)
        self.refuses(self.folder, "2 samples", column="ids")
        for size in (len(data) - 13, 3, 0):
            self.write([0, 0, 0], data=data[:size] + b"LDARW01\0")
            self.refuses(self.folder, "c.bin", column="ids")

    def test_every_cut_is_refused(self):
        data = self.write([2, 1])
        for size in range(len(data)):
            (self.folder / "c.bin").write_bytes(data[:size])
            self.refuses(self.folder, "c.bin", column="m")


class FilesOfPackages(Folder):
    """What the packages themselves write."""

    TOKENS = [3, 2, 40, 7, 1]

    def agrees(self, folder, *columns, **options):
        for column in columns:
            self.assertEqual(read_lengths(folder, column, **options).tolist(), self.TOKENS, (folder, column))

    @unittest.skipIf(importlib.util.find_spec("litdata") is None, "there is no litdata")
    def test_litdata(self):
        import torch
        from litdata.streaming.writer import BinaryWriter

        def write(name, item, **options):
            writer = BinaryWriter(str(self.folder / name), chunk_size=3, **options)
            for number, tokens in enumerate(self.TOKENS):
                writer[number] = item(tokens)
            writer.done()
            writer.merge()
            return self.folder / name

        def arrays(t):
            return {"s": {"n": t, "f": t / 8}, "i": np.arange(t), "t": torch.arange(t),
                    "m": np.zeros((t, 2), np.float16), "u": torch.zeros((t, 3))}

        for name, options in (("plain", {}), ("packed", {"compression": "zstd", "compression_level": "chunk"})):
            folder = write(name, arrays, **options)
            self.agrees(folder, "s.n", "i", "t", "m", "u")
            self.agrees(folder, "s.f", scale=8)
        self.agrees(write("rows", lambda t: {"s": {"n": t}, "i": list(range(t))}), "s.n", "i")
        self.agrees(write("nameless", torch.arange), None)
        frames = write("frames", arrays, compression="zstd", compression_level="batch")
        self.refuses(frames, "'batch'", "StreamingDataset", column="i")

    @unittest.skipIf(importlib.util.find_spec("streaming") is None, "there is no mosaicml-streaming")
    def test_mosaicml(self):
        from streaming import MDSWriter

        columns = {"n": "int", "i": "ndarray:int32", "any": "ndarray", "f": "float32"}
        for packed in ({}, {"compression": "zstd:7"}, {"compression": "gz"}):
            folder = self.folder / str(packed.get("compression")).replace(":", "")
            with MDSWriter(out=str(folder), columns=columns, size_limit=500, **packed) as out:
                for t in self.TOKENS:
                    ids = np.arange(t, dtype=np.int32)
                    out.write({"n": t, "i": ids, "any": ids.reshape(t, 1), "f": np.float32(t / 8)})
            self.agrees(folder, "n", "i", "any")
            self.agrees(folder, "f", scale=8)

    @unittest.skipIf(importlib.util.find_spec("megatron") is None, "there is no megatron-core")
    def test_megatron_core(self):
        # The bytes are those of `index`, so that the other tests have files as Megatron writes them.
        import torch
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from megatron.core.datasets.indexed_dataset import DType, IndexedDatasetBuilder

        def write(name, dtype, multimodal=False, modes=None):
            builder = IndexedDatasetBuilder(str(self.folder / (name + ".bin")), dtype, multimodal)
            first, second = self.TOKENS[:2], self.TOKENS[2:]
            for place, tokens in enumerate(first):
                builder.add_item(torch.arange(tokens), *(modes[place : place + 1] if modes else ()))
            builder.end_document()
            builder.end_document()
            builder.add_document(torch.arange(sum(second)), second, modes and modes[len(first):])
            builder.finalize(str(self.folder / (name + ".idx")))
            return self.folder / (name + ".idx")

        for dtype in (np.uint8, np.int32, np.int64, np.uint16, np.float32):
            path = write(np.dtype(dtype).name, dtype)
            self.agrees(path, None)
            self.assertEqual(read_lengths(path, documents=True).tolist(), [5, 0, 48])
            # Every token has its place in the file of tokens.
            size = path.with_suffix(".bin").stat().st_size
            self.assertEqual(size, sum(self.TOKENS) * np.dtype(dtype).itemsize)
        for dtype in (np.uint8, np.int32, np.uint16):
            path = self.folder / (np.dtype(dtype).name + ".idx")
            ours = index(self.TOKENS, (0, 2, 2, 5), DType.code_from_dtype(dtype))
            self.assertEqual(path.read_bytes(), ours)
        self.agrees(write("text", np.int32, True, [0] * 5), None)
        self.refuses(write("images", np.int32, True, [0, 1, 0, 0, 1]), "modes", "only text")


ROWS = {
    "tokens": [3, 0, 2],
    "input_ids": [[7, 8, 9], [], [5, 6]],
    "seconds": [0.3, 0.0, 1.04],
    "stats": [{"tokens": 3, "text": {"ids": [1]}}, {"tokens": 0, "text": {"ids": []}},
              {"tokens": 2, "text": {"ids": [1, 2]}}],
}


@unittest.skipIf(pyarrow is None, "there is no pyarrow")
class Arrow(Folder):
    def files(self, table):
        """The same table in each format, in several parts."""
        pyarrow.parquet.write_table(table, self.folder / "a.parquet", row_group_size=2)
        with pyarrow.OSFile(str(self.folder / "a.stream"), "wb") as sink:
            with pyarrow.ipc.new_stream(sink, table.schema) as out:
                out.write_table(table, max_chunksize=2)
        with pyarrow.OSFile(str(self.folder / "a.arrow"), "wb") as sink:
            with pyarrow.ipc.new_file(sink, table.schema) as out:
                out.write_table(table, max_chunksize=2)
        return [self.folder / name for name in ("a.parquet", "a.stream", "a.arrow")]

    def test_columns_lists_and_paths(self):
        for path in self.files(pyarrow.table(ROWS)):
            for column, expected in (("tokens", [3, 0, 2]), ("input_ids", [3, 0, 2]),
                                     ("stats.tokens", [3, 0, 2]), ("stats.text.ids", [1, 0, 2])):
                found = read_lengths(path, column)
                self.assertEqual((found.dtype, found.tolist()), (np.int64, expected), (path, column))
            self.assertEqual(read_lengths(path, "seconds", scale=12.5).tolist(), [4, 0, 13])
            # Neither the factor nor the number is rounded before.
            self.assertEqual(read_lengths(path, "seconds", scale="10").tolist(), [3, 0, 11])

    def test_every_type_of_integer_and_list(self):
        kinds = [pyarrow.int8(), pyarrow.uint16(), pyarrow.int32(), pyarrow.uint64()]
        lists = [pyarrow.large_list(pyarrow.int32()), pyarrow.list_(pyarrow.int8(), 2)]
        table = pyarrow.table(
            {str(i): pyarrow.array([5, 7], kind) for i, kind in enumerate(kinds)}
            | {"l%d" % i: pyarrow.array([[5, 7], [1, 2]], kind) for i, kind in enumerate(lists)}
            | {"f": pyarrow.array([0.1, 0.7], pyarrow.float32())}
        )
        for path in self.files(table):
            for i in range(len(kinds)):
                self.assertEqual(read_lengths(path, str(i)).tolist(), [5, 7])
            for i in range(len(lists)):
                self.assertEqual(read_lengths(path, "l%d" % i).tolist(), [2, 2])
            # The shortest decimal of a float of 32 bits.
            self.assertEqual(read_lengths(path, "f", scale=10).tolist(), [1, 7])

    def test_a_whole_name_comes_first(self):
        table = pyarrow.table({"a": [{"b": 7}], "a.b": [5], "c": [{"d.e": 3, "d": {"e": 4}}]})
        for path in self.files(table)[1:]:
            self.assertEqual(read_lengths(path, "a.b").tolist(), [5])
            self.assertEqual(read_lengths(path, "c.d.e").tolist(), [3])

    def test_bad_rows_are_named(self):
        table = pyarrow.table({
            "null": [1, 2, None], "lists": [[1], None, [2]], "negative": [1, 2, -3],
            "large": pyarrow.array([1, 2, 2**63], pyarrow.uint64()), "floats": [1.0, 2.0, 3.0],
            "nan": [1.0, 2.0, float("nan")], "minus": [1.0, 2.0, -0.5], "huge": [1.0, 2.0, 1e19],
            "text": ["a", "b", "c"], "struct": [{"x": 1}, {"x": 2}, None],
        })
        for path in self.files(table):
            for column, *words in (
                ("null", "row 2", "'null'", "null"), ("lists", "row 1", "null"),
                ("negative", "row 2", "is -3"), ("large", "row 2", "9223372036854775808"),
                ("floats", "double", "scale"), ("text", "string"), ("struct.x", "row 2", "null"),
                ("struct", "struct"), ("other", "'other'", "'null'"), ("struct.y", "'struct.y'"),
                ("text.x", "'text.x'"),
            ):
                self.refuses(path, *words, column=column)
            for column, word in (("nan", "nan"), ("minus", "-0.5"), ("huge", "1e+19")):
                self.refuses(path, "row 2", repr(column), word, column=column, scale=1)
            for scale in (0, -1, "x", float("nan"), float("inf")):
                self.refuses(path, "scale is %r" % scale, column="floats", scale=scale)
            self.refuses(path, "documents", column="null", documents=True)
            self.refuses(path, "column is None")

    def test_truncated_and_other_files_are_refused(self):
        for path in self.files(pyarrow.table({"tokens": [3, 0, 2]})):
            data = path.read_bytes()
            self.assertEqual(read_lengths(path, "tokens").tolist(), [3, 0, 2])
            for size in {*range(0, len(data), 7), *range(len(data) - 20, len(data))}:
                cut = self.folder / "cut"
                cut.write_bytes(data[:size])
                self.refuses(cut, "cut", column="tokens")
        (self.folder / "b.json").write_text("[1, 2, 3, 4]")
        self.refuses(self.folder / "b.json", "b.json", "no Parquet", column="tokens")
        with self.assertRaises(FileNotFoundError):
            read_lengths(self.folder / "none", "tokens")
        self.refuses(self.folder, "state.json", column="tokens")


@unittest.skipIf(datasets is None, "there is no package datasets")
class SaveToDisk(Folder):
    def test_a_folder_is_read_in_order(self):
        data = datasets.Dataset.from_dict(ROWS)
        data.save_to_disk(self.folder / "a", num_shards=2)
        self.assertEqual(read_lengths(self.folder / "a", "input_ids").tolist(), [3, 0, 2])
        self.assertEqual(read_lengths(self.folder / "a", "stats.tokens").tolist(), [3, 0, 2])
        # Rows that were selected are written, in their order.
        data.select([2, 0]).save_to_disk(self.folder / "b")
        self.assertEqual(read_lengths(self.folder / "b", "tokens").tolist(), [2, 3])
        datasets.DatasetDict(train=data).save_to_disk(self.folder / "c")
        self.refuses(self.folder / "c", "train", column="tokens")
        data.to_parquet(self.folder / "d.parquet")
        self.assertEqual(read_lengths(self.folder / "d.parquet", "input_ids").tolist(), [3, 0, 2])


if __name__ == "__main__":
    unittest.main()
