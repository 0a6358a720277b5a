# SPDX-License-Identifier: Apache-2.0
"""Lengths of samples from files: Parquet, Arrow, folders of `save_to_disk`, MosaicML's shards (MDS),
and Megatron's index.

`python3 -m omnibal.lengths FILE [COLUMN]` prints one length per line, for the programs in C++.
"""

import argparse
import json
import os
import pathlib
from decimal import Decimal, InvalidOperation
from typing import Any, Iterator, List, Optional, Union

import numpy as np

__all__ = ["read_lengths"]

_MEGATRON = b"MMIDIDX\0\0"
_LARGEST = 2**63 - 1


def read_lengths(
    path: Union[str, "os.PathLike[str]"],
    column: Optional[str] = None,
    *,
    scale: Any = None,
    documents: bool = False,
) -> np.ndarray:
    """Returns the lengths of all samples of a file or folder, in order.

    The first bytes of a file tell its format: Parquet, Arrow (file or stream), or Megatron's index
    (.idx). A folder is one of `save_to_disk`, or of MosaicML's shards with an index.json, none of them
    compressed. Parquet, Arrow and `save_to_disk` need pyarrow.

    Args:
        path: the file or the folder.
        column: the column of numbers, or of lists or arrays, whose `len` counts. A name that no column has may be
            a path: `stats.tokens` is the field `tokens` of the column `stats`. An index has none.
        scale: a factor of the numbers, which may then have fractions, such as seconds. The exact
            product is rounded up. Default: the numbers are integers.
        documents: whether the samples of an index are its documents. Default: its sequences.

    Returns:
        An array of int64 with one length per sample.

    Raises:
        ImportError: if there is no pyarrow.
        ValueError: if the file is damaged or has another format, if there is no such column, or if
            a row has no length: null, a negative number, or a fraction without `scale`.

    Example:
        >>> import tempfile
        >>> index = b"MMIDIDX" + bytes(2) + np.array([1], "<u8").tobytes() + bytes([4])
        >>> for numbers, kind in (([2, 2], "<u8"), ([3, 5], "<i4"), ([0, 12, 0, 2], "<i8")):
        ...     index += np.array(numbers, kind).tobytes()
        >>> with tempfile.NamedTemporaryFile(suffix=".idx") as file:
        ...     _ = file.write(index)
        ...     file.flush()
        ...     read_lengths(file.name).tolist()
        [3, 5]
    """
    path = pathlib.Path(path)
    factor = _factor(scale)
    if not path.is_dir():
        with open(path, "rb") as file:
            is_index = file.read(len(_MEGATRON)) == _MEGATRON
        if is_index:
            if column is not None:
                raise ValueError(
                    "read_lengths: column is %r, but %s is an index without columns" % (column, path)
                )
            lengths = _index_lengths(path, documents)
            return lengths if factor is None else _scaled(lengths, factor, str(path), 0)
    if documents:
        raise ValueError("read_lengths: documents is True, but %s is no index of Megatron" % path)
    if column is None:
        raise ValueError("read_lengths: column is None, must name a column of %s" % path)
    parts: List[np.ndarray] = [np.zeros(0, np.int64)]
    row = 0
    what = "column %r of %s" % (column, path)
    index = path / "index.json" if path.is_dir() else path
    if index.name == "index.json" and index.exists():
        for values in _shard_columns(index, column, factor is not None):
            to_int = _checked(values, what, row) if factor is None else _scaled(values, factor, what, row)
            parts.append(to_int)
            row += len(values)
        return np.concatenate(parts)
    for part in _columns(path, column):
        parts.append(_row_lengths(part, what, row, factor))
        row += len(part)
    return np.concatenate(parts)


def _factor(scale: Any) -> Optional[Decimal]:
    """The factor without an error of rounding."""
    if scale is None:
        return None
    try:
        factor = Decimal(str(scale))
    except InvalidOperation:
        factor = Decimal("NaN")
    if not factor.is_finite() or factor <= 0:
        raise ValueError("read_lengths: scale is %r, must be a number above 0" % (scale,))
    return factor


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "read_lengths: Parquet and Arrow files need pyarrow: pip install pyarrow"
        ) from error
    return pyarrow


def _shards(folder: pathlib.Path) -> List[pathlib.Path]:
    """The files of a data set that `save_to_disk` wrote."""
    if (folder / "dataset_dict.json").exists():
        splits = json.loads((folder / "dataset_dict.json").read_text())["splits"]
        raise ValueError(
            "read_lengths: %s holds several data sets, must be the folder of one: %s"
            % (folder, ", ".join(str(folder / split) for split in splits))
        )
    if not (folder / "state.json").exists():
        raise ValueError("read_lengths: %s has no state.json, which save_to_disk writes" % folder)
    state = json.loads((folder / "state.json").read_text())
    if any(files for name, files in state.items() if name.startswith("_indices") and "files" in name):
        raise ValueError(
            "read_lengths: %s selects rows by an index; save flatten_indices() of it" % folder
        )
    return [folder / one["filename"] for one in state["_data_files"]]


def _columns(path: pathlib.Path, column: str) -> Iterator[Any]:
    """The parts of a column of Arrow's arrays, in order."""
    pyarrow = _pyarrow()
    for file in _shards(path) if path.is_dir() else [path]:
        try:
            yield from _file_columns(pyarrow, file, column)
        except (pyarrow.ArrowInvalid, OSError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise ValueError("read_lengths: cannot read %s: %s" % (file, error)) from error


def _file_columns(pyarrow: Any, file: pathlib.Path, column: str) -> Iterator[Any]:
    with open(file, "rb") as opened:
        magic = opened.read(8)
    if len(magic) < 8:
        raise ValueError("read_lengths: %s is truncated: it has %d bytes" % (file, len(magic)))
    if magic.startswith(b"PAR1"):
        with pyarrow.parquet.ParquetFile(file) as parquet:
            steps = _steps(pyarrow, parquet.schema_arrow, column, file)
            for batch in parquet.iter_batches(columns=[".".join(steps)]):
                yield _descend(pyarrow, batch.column(steps[0]), steps[1:])
        return
    is_file = magic.startswith(b"ARROW1")
    if magic.startswith(b"\xff\xff\xff\xff"):
        with open(file, "rb") as opened:
            opened.seek(-8, os.SEEK_END)
            # Without the mark, a stream that is cut between two batches would look whole.
            if opened.read() != b"\xff\xff\xff\xff\0\0\0\0":
                raise ValueError("read_lengths: %s is an Arrow stream without an end" % file)
    if not is_file and not magic.startswith(b"\xff\xff\xff\xff"):
        raise ValueError(
            "read_lengths: %s is no Parquet, Arrow or Megatron file; it begins with %r" % (file, magic)
        )
    with pyarrow.memory_map(str(file)) as source:
        if is_file:
            reader = pyarrow.ipc.open_file(source)
            steps = _steps(pyarrow, reader.schema, column, file)
            for i in range(reader.num_record_batches):
                yield _descend(pyarrow, reader.get_batch(i).column(steps[0]), steps[1:])
        else:
            stream = pyarrow.ipc.open_stream(source)
            steps = _steps(pyarrow, stream.schema, column, file)
            for batch in stream:
                yield _descend(pyarrow, batch.column(steps[0]), steps[1:])


def _steps(pyarrow: Any, schema: Any, column: str, file: pathlib.Path) -> List[str]:
    """The names that lead to a column; the longest name first, so that a whole name wins."""

    def search(fields: Any, rest: str) -> List[str]:
        for field in sorted(fields, key=lambda one: -len(one.name)):
            if field.name == rest:
                return [rest]
            if rest.startswith(field.name + ".") and pyarrow.types.is_struct(field.type):
                inner = [field.type.field(i) for i in range(field.type.num_fields)]
                found = search(inner, rest[len(field.name) + 1 :])
                if found:
                    return [field.name] + found
        return []

    if schema.names.count(column) > 1:
        raise ValueError("read_lengths: column %r occurs twice in %s" % (column, file))
    found = search(list(schema), column)
    if not found:
        raise ValueError(
            "read_lengths: there is no column %r in %s, which has %s" % (column, file, schema.names)
        )
    return found


def _descend(pyarrow: Any, values: Any, steps: List[str]) -> Any:
    for step in steps:
        values = pyarrow.compute.struct_field(values, [step])
    return values


def _row_lengths(values: Any, what: str, first: int, factor: Optional[Decimal]) -> np.ndarray:
    """The lengths of the rows of a part of a column, of which the first has the number `first`."""
    pyarrow = _pyarrow()
    types = pyarrow.types
    if values.null_count:
        row = first + int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
        raise ValueError("read_lengths: row %d of %s is null" % (row, what))
    kinds = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
    if any(getattr(types, kind)(values.type) for kind in kinds if hasattr(types, kind)):
        values = pyarrow.compute.list_value_length(values)
    is_integer = types.is_integer(values.type)
    if not is_integer and (factor is None or not types.is_floating(values.type)):
        raise ValueError(
            "read_lengths: %s has the type %s, must have integers or lists%s"
            % (what, values.type, "; scale accepts floats" if factor is None else " or floats")
        )
    array = values.to_numpy(zero_copy_only=False)
    if factor is not None:
        return _scaled(array, factor, what, first)
    return _checked(array, what, first)


def _checked(array: np.ndarray, what: str, first: int) -> np.ndarray:
    """Integers from 0 to 2^63 - 1 as int64."""
    bad = np.flatnonzero((array < 0) | (array > _LARGEST))
    if len(bad):
        raise ValueError(
            "read_lengths: row %d of %s is %d, must be from 0 to %d"
            % (first + int(bad[0]), what, array[bad[0]], _LARGEST)
        )
    return array.astype(np.int64)


def _scaled(array: np.ndarray, factor: Decimal, what: str, first: int) -> np.ndarray:
    """The exact products, rounded up. A float is the shortest decimal that means it."""
    up, down = factor.as_integer_ratio()
    result = np.empty(len(array), np.int64)
    for i, value in enumerate(array):
        number = Decimal(str(value))
        if not number.is_finite() or number < 0:
            raise ValueError(
                "read_lengths: row %d of %s is %s, must be a number from 0" % (first + i, what, value)
            )
        over, under = number.as_integer_ratio()
        product = -(-over * up // (under * down))
        if product > _LARGEST:
            raise ValueError(
                "read_lengths: row %d of %s is %s, whose product with %s is above %d"
                % (first + i, what, value, factor, _LARGEST)
            )
        result[i] = product
    return result


_LITDATA = """import litdata
for row in litdata.StreamingDataset(%r):
    print(len(row[%r]))"""


def _shard_columns(index: pathlib.Path, column: str, floats: bool) -> Iterator[np.ndarray]:
    """The numbers or the lengths of the arrays in each shard of MosaicML's format MDS."""
    content = json.loads(index.read_text())
    if isinstance(content, dict) and "chunks" in content:
        raise ValueError(
            "read_lengths: %s is of litData, whose chunks are not read; this prints lengths:\n%s"
            % (index, _LITDATA % (str(index.parent), column))
        )
    if not isinstance(content, dict) or not isinstance(content.get("shards"), list):
        raise ValueError("read_lengths: %s lists no shards" % index)
    for shard in content["shards"]:
        _check_shard(index, shard)
        if shard.get("format") != "mds" or shard.get("version") != 2:
            raise ValueError(
                "read_lengths: %s has a shard of format %r and version %r, must be 'mds' and 2"
                % (index, shard.get("format"), shard.get("version"))
            )
        if column not in shard["column_names"]:
            raise ValueError(
                "read_lengths: there is no column %r in %s, which has %s"
                % (column, index, shard["column_names"])
            )
        file = index.parent / shard["raw_data"]["basename"]
        if not file.exists() and shard.get("compression"):
            raise ValueError("read_lengths: %s is compressed; decompress the shards first" % file)
        yield _Shard(file, shard).lengths(column, floats)


def _check_shard(index: pathlib.Path, shard: Any) -> None:
    """The fields of a shard of an index have the types that are read."""
    fields = (("column_names", list), ("column_encodings", list), ("column_sizes", list),
              ("raw_data", dict), ("samples", int))  # fmt: skip
    for name, kind in fields:
        if not isinstance(shard, dict) or not isinstance(shard.get(name), kind):
            raise ValueError("read_lengths: %s has a shard without a good %r" % (index, name))
    if not {"basename", "bytes"} <= set(shard["raw_data"]):
        raise ValueError("read_lengths: %s has a shard without a file and its size" % index)


class _Shard:
    """A shard: the number of samples and the end of each (4 bytes each), then the samples: the sizes
    of the columns without a fixed one (4 bytes each), and the columns."""

    def __init__(self, file: pathlib.Path, shard: Any) -> None:
        self.file = file
        self.names = shard["column_names"]
        self.encodings = shard["column_encodings"]
        self.fixed = shard["column_sizes"]
        self.data = file.read_bytes()
        if len(self.data) != shard["raw_data"]["bytes"]:
            self.refuse("has %d bytes, must have %d" % (len(self.data), shard["raw_data"]["bytes"]))
        count = shard["samples"]
        start = 4 * (count + 2)
        if len(self.data) < start or np.frombuffer(self.data, "<u4", 1)[0] != count:
            self.refuse("does not have the %d samples of its index" % count)
        self.ends = np.frombuffer(self.data, "<u4", count + 1, 4).tolist()
        if self.ends[0] < start or self.ends[-1] != len(self.data) or sorted(self.ends) != self.ends:
            self.refuse("has samples that are not in order")

    def refuse(self, problem: str) -> None:
        raise ValueError("read_lengths: the shard %s %s" % (self.file, problem))

    def value(self, sample: int, column: int) -> bytes:
        """The bytes of a column of a sample."""
        begin, end = self.ends[sample], self.ends[sample + 1]
        head = 4 * self.fixed.count(None)
        if end - begin < head:
            self.refuse("has a sample %d that is too short" % sample)
        own = iter(np.frombuffer(self.data, "<u4", head // 4, begin).tolist())
        sizes = [next(own) if size is None else size for size in self.fixed]
        if head + sum(sizes) != end - begin:
            self.refuse("has columns of sample %d that do not fit to its size" % sample)
        first = begin + head + sum(sizes[:column])
        return self.data[first : first + sizes[column]]

    def array_length(self, encoding: str, value: bytes) -> int:
        """The first extent of an array."""
        kinds = {8: "u1", 9: "i1", 16: "u2", 17: "i2", 18: "f2", 32: "u4", 33: "i4", 34: "f4",
                 64: "u8", 65: "i8", 66: "f8"}  # fmt: skip
        words = encoding.split(":")
        place = 0
        if len(words) > 1:
            width = np.dtype(words[1]).itemsize
        else:
            if not value or value[0] not in kinds:
                self.refuse("has an array of an unknown type")
            width = np.dtype(kinds[value[0]]).itemsize
            place = 1
        if len(words) > 2:
            shape = [int(extent) for extent in words[2].split(",")]
        else:
            code = value[place] if place < len(value) else 0
            shape_bytes = (code >> 2) << (code & 3)
            if code >> 2 == 0 or place + 1 + shape_bytes > len(value):
                self.refuse("has a damaged array")
            kind = "<u%d" % (1 << (code & 3))
            shape = np.frombuffer(value, kind, code >> 2, place + 1).tolist()
            place += 1 + shape_bytes
        elements = 1
        for extent in shape:
            elements *= extent
        if place + elements * width != len(value):
            self.refuse("has an array of shape %s in %d bytes" % (shape, len(value)))
        return shape[0]

    def lengths(self, name: str, floats: bool) -> np.ndarray:
        column = self.names.index(name)
        encoding = self.encodings[column]
        values = [self.value(sample, column) for sample in range(len(self.ends) - 1)]
        if encoding.split(":")[0] == "ndarray":
            return np.array([self.array_length(encoding, value) for value in values], np.int64)
        kind = "int64" if encoding == "int" else encoding
        integers = ["%s%d" % (sign, bits) for sign in ("int", "uint") for bits in (8, 16, 32, 64)]
        if kind not in integers and not (floats and kind in ("float16", "float32", "float64")):
            self.refuse(
                "has the encoding %r of column %r, must be integers or arrays%s"
                % (encoding, name, " or floats" if floats else "; scale accepts floats")
            )
        if any(len(value) != np.dtype(kind).itemsize for value in values):
            self.refuse("has values of column %r of another size than %s" % (name, kind))
        return np.frombuffer(b"".join(values), np.dtype(kind).newbyteorder("<"))


def _index_lengths(path: pathlib.Path, documents: bool) -> np.ndarray:
    """The tokens of the sequences or documents of a Megatron index."""

    def refuse(problem: str) -> None:
        raise ValueError("read_lengths: %s is an index of Megatron %s" % (path, problem))

    data = path.read_bytes()
    if len(data) < 34:
        refuse("that is truncated in its header")
    version = int.from_bytes(data[9:17], "little")
    if version != 1:
        refuse("of version %d, must be 1" % version)
    token_bytes = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 8, 7: 4, 8: 2}.get(data[17], 0)
    if not token_bytes:
        refuse("whose tokens have the type %d, must be from 1 to 8" % data[17])
    sequences = int.from_bytes(data[18:26], "little")
    ends = int.from_bytes(data[26:34], "little")
    modes = len(data) - 34 - 12 * sequences - 8 * ends
    if modes not in (0, sequences):
        refuse(
            "of %d sequences and %d ends of documents, to which its %d bytes do not fit; it may be "
            "truncated" % (sequences, ends, len(data))
        )
    lengths = np.frombuffer(data, "<i4", sequences, 34).astype(np.int64)
    places = np.frombuffer(data, "<i8", sequences, 34 + 4 * sequences)
    of_documents = np.frombuffer(data, "<i8", ends, 34 + 12 * sequences)
    if modes and np.frombuffer(data, "i1", sequences, len(data) - sequences).any():
        refuse("with modes, so its elements may be no tokens; only text is read")
    if (lengths < 0).any():
        refuse("whose sequence %d has a negative length" % np.flatnonzero(lengths < 0)[0])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    wrong = np.flatnonzero(places != offsets[:-1] * token_bytes)
    if len(wrong):
        refuse("whose sequence %d does not begin where the one before it ends" % wrong[0])
    is_whole = ends > 0 and of_documents[0] == 0 and of_documents[-1] == sequences
    if not is_whole or (np.diff(of_documents) < 0).any():
        refuse("whose documents do not divide its %d sequences" % sequences)
    return np.diff(offsets[of_documents]) if documents else lengths


def _main() -> None:
    parser = argparse.ArgumentParser(
        prog="python3 -m omnibal.lengths", description="Print the length of each sample on a line."
    )
    parser.add_argument("path", metavar="FILE", help="Parquet, Arrow, save_to_disk or Megatron's .idx")
    parser.add_argument("column", metavar="COLUMN", nargs="?", help="numbers or lists, by name or path")
    parser.add_argument("--scale", metavar="FACTOR", help="multiply numbers by it and round up")
    parser.add_argument("--documents", action="store_true", help="documents of an .idx as samples")
    words = parser.parse_args()
    try:
        lengths = read_lengths(words.path, words.column, scale=words.scale, documents=words.documents)
    except (ImportError, OSError, ValueError) as error:
        parser.exit(1, "omnibal.lengths: error: %s\n" % error)
    print("\n".join(map(str, lengths.tolist())))


if __name__ == "__main__":
    _main()
