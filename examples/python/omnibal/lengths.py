# SPDX-License-Identifier: Apache-2.0
"""Lengths of samples from files: Parquet, Arrow, folders of `save_to_disk`, shards of MosaicML (MDS),
chunks of litData, and Megatron's index.

`python3 -m omnibal.lengths FILE [COLUMN]` prints one length per line, for the programs in C++.
"""

import argparse
import gzip
import json
import os
import pathlib
import zlib
from decimal import Decimal, InvalidOperation
from typing import Any, Callable, Iterator, List, Optional, Union

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
    (.idx). A folder is one of `save_to_disk`, or of MosaicML's shards or litData's chunks with an
    index.json. Parquet, Arrow, `save_to_disk`, zstd, and litData's chunks of Python's numbers and lists
    need pyarrow.

    Args:
        path: the file or the folder.
        column: the column of numbers, or of lists or arrays, whose `len` counts. A name that no column has may be
            a path: `stats.tokens` is the field `tokens` of the column `stats`. Megatron's index has none,
            and neither has a data set of litData whose items are single arrays.
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
    index = path / "index.json" if path.is_dir() else path
    if index.name == "index.json" and index.exists():
        columns = _indexed_columns(index, column, factor is not None)
    else:
        columns = _columns(path, _named(path, column))
    what = "column %r of %s" % (column, path) if column is not None else str(path)
    parts: List[np.ndarray] = [np.zeros(0, np.int64)]
    row = 0
    for values in columns:
        if not isinstance(values, np.ndarray):
            parts.append(_row_lengths(values, what, row, factor))
        elif factor is None:
            parts.append(_checked(values, what, row))
        else:
            parts.append(_scaled(values, factor, what, row))
        row += len(values)
    return np.concatenate(parts)


def _named(path: pathlib.Path, column: Optional[str]) -> str:
    if column is None:
        raise ValueError("read_lengths: column is None, must name a column of %s" % path)
    return column


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


def _indexed_columns(index: pathlib.Path, column: Optional[str], floats: bool) -> Iterator[Any]:
    """The parts of a column of a data set of MosaicML or litData: numbers, or the lengths of arrays, or
    rows of Arrow."""
    content = json.loads(index.read_text())
    if isinstance(content, dict) and "chunks" in content:
        return _chunk_columns(index, content, column, floats)
    if not isinstance(content, dict) or not isinstance(content.get("shards"), list):
        raise ValueError("read_lengths: %s lists no shards" % index)
    return _shard_columns(index, content["shards"], _named(index, column), floats)


def _shard_columns(
    index: pathlib.Path, shards: List[Any], column: str, floats: bool
) -> Iterator[np.ndarray]:
    """The numbers or the lengths of the arrays in each shard of MosaicML's format MDS."""
    for shard in shards:
        _check_shard(index, shard)
        if shard.get("format") != "mds" or shard.get("version") != 2:
            raise ValueError(
                "read_lengths: %s has a shard of format %r and version %r, must be 'mds' and 2"
                % (index, shard.get("format"), shard.get("version"))
            )
        file = index.parent / shard["raw_data"]["basename"]
        packed = shard.get("zip_data")
        if not file.exists() and isinstance(packed, dict) and isinstance(packed.get("basename"), str):
            file = index.parent / packed["basename"]
            data = _expanded(file)
        else:
            data = file.read_bytes()
        size = shard["raw_data"]["bytes"]
        if len(data) != size:
            raise ValueError(
                "read_lengths: the shard %s has %d bytes, must have %d" % (file, len(data), size)
            )
        names, fixed = shard["column_names"], shard["column_sizes"]
        read = _Shard("shard", file, data, shard["samples"], fixed)
        place = _place(index, names, column)
        yield read.lengths(column, place, _mds_type(shard["column_encodings"][place]), floats)


def _place(index: pathlib.Path, names: List[str], column: str) -> int:
    if names.count(column) > 1:
        raise ValueError("read_lengths: column %r occurs twice in %s" % (column, index))
    if column not in names:
        raise ValueError(
            "read_lengths: there is no column %r in %s, which has %s" % (column, index, names)
        )
    return names.index(column)


def _expanded(file: pathlib.Path) -> bytes:
    """The content of a file that is compressed with gzip or zstd."""
    data = file.read_bytes()
    try:
        if data.startswith(b"\x1f\x8b"):
            return gzip.decompress(data)
        if data.startswith(b"\x28\xb5\x2f\xfd"):
            pyarrow = _pyarrow()
            with pyarrow.CompressedInputStream(pyarrow.BufferReader(data), "zstd") as stream:
                return bytes(stream.read())
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError("read_lengths: cannot expand %s: %s" % (file, error)) from error
    raise ValueError("read_lengths: %s is compressed with neither gzip nor zstd" % file)


# Behind rows of Arrow and their size, if the items of a chunk have only texts, numbers and lists of Python.
_ROWS = b"LDARW01\0"


def _chunk_columns(
    index: pathlib.Path, content: Any, column: Optional[str], floats: bool
) -> Iterator[Any]:
    """The numbers, the lengths of the arrays, or the rows of Arrow in each chunk of litData."""
    config, chunks = content.get("config"), content["chunks"]
    if not isinstance(config, dict) or not isinstance(chunks, list):
        raise ValueError("read_lengths: %s has no good 'config' and 'chunks'" % index)
    compression = config.get("compression")
    known = {"encryption": (None,), "compression_level": (None, "chunk"), "item_loader": (None, "PyTreeLoader")}
    bad = [name for name, values in known.items() if config.get(name) not in values]
    if compression is not None and not str(compression).startswith("zstd"):
        bad.append("compression")
    if bad:
        raise ValueError(
            "read_lengths: %s has the %s %r, which is not read; this prints lengths:\n%s"
            % (index, bad[0], config[bad[0]], _LITDATA % (str(index.parent), column))
        )
    names, encodings = _leaves(index, config.get("data_spec")), config.get("data_format")
    is_list = isinstance(encodings, list) and all(isinstance(one, str) for one in encodings)
    if not is_list or len(encodings) != len(names):
        raise ValueError("read_lengths: %s has no type for each of %s" % (index, names))
    is_nameless = names == [""]
    if is_nameless and column is not None:
        raise ValueError("read_lengths: column is %r, but the items of %s have no names" % (column, index))
    for about in chunks:
        for name, kind in (("filename", str), ("chunk_size", int)):
            if not isinstance(about, dict) or not isinstance(about.get(name), kind):
                raise ValueError("read_lengths: %s has a chunk without a good %r" % (index, name))
        file, samples = index.parent / about["filename"], about["chunk_size"]
        data = file.read_bytes() if compression is None else _expanded(file)
        if data.endswith(_ROWS):
            yield from _chunk_rows(file, data, samples, _named(index, column))
            continue
        own = "" if is_nameless else _named(index, column)
        place = _place(index, names, own)
        chunk = _Shard("chunk", file, data, samples, [None] * len(names))
        yield chunk.lengths(own, place, _litdata_type(encodings[place]), floats)


def _leaves(index: pathlib.Path, spec: Any) -> List[str]:
    """The paths of the values of an item, in order, from a tree of PyTorch."""

    def refuse() -> None:
        raise ValueError("read_lengths: %s has a 'data_spec' that is no tree of PyTorch 1" % index)

    def walk(node: Any, path: str) -> Iterator[str]:
        is_node = isinstance(node, dict) and "type" in node
        if not is_node or not isinstance(node.get("children_spec"), list):
            refuse()
        children = node["children_spec"]
        keys: Any = range(len(children))
        if node["type"] is None:
            yield path
        elif node["type"] == "builtins.dict":
            keys = json.loads(node["context"]) if isinstance(node.get("context"), str) else None
            if not isinstance(keys, list) or len(keys) != len(children):
                refuse()
        for key, child in zip(keys, children):
            yield from walk(child, "%s.%s" % (path, key) if path else str(key))

    try:
        tree = json.loads(spec) if isinstance(spec, str) else None
        if not isinstance(tree, list) or len(tree) != 2 or tree[0] != 1:
            refuse()
        return list(walk(tree[1], ""))
    except (json.JSONDecodeError, RecursionError):
        refuse()
    return []


def _chunk_rows(file: pathlib.Path, data: bytes, samples: int, column: str) -> Iterator[Any]:
    """A column of the rows of Arrow in a chunk."""
    pyarrow = _pyarrow()
    end = len(data) - len(_ROWS) - 4
    begin = end - int.from_bytes(data[end : end + 4], "little") if end >= 0 else -1
    if begin < 0:
        raise ValueError("read_lengths: the chunk %s is cut before its rows of Arrow" % file)
    rows = 0
    try:
        reader = pyarrow.ipc.open_file(pyarrow.py_buffer(data[begin:end]))
        steps = _steps(pyarrow, reader.schema, column, file)
        for i in range(reader.num_record_batches):
            batch = reader.get_batch(i)
            rows += batch.num_rows
            yield _descend(pyarrow, batch.column(steps[0]), steps[1:])
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise ValueError("read_lengths: cannot read %s: %s" % (file, error)) from error
    if rows != samples:
        raise ValueError(
            "read_lengths: the chunk %s does not have the %d samples of its index" % (file, samples)
        )


def _check_shard(index: pathlib.Path, shard: Any) -> None:
    """The fields of a shard of an index have the types that are read."""
    fields = (("column_names", list), ("column_encodings", list), ("column_sizes", list),
              ("raw_data", dict), ("samples", int))  # fmt: skip
    for name, kind in fields:
        if not isinstance(shard, dict) or not isinstance(shard.get(name), kind):
            raise ValueError("read_lengths: %s has a shard without a good %r" % (index, name))
    if not {"basename", "bytes"} <= set(shard["raw_data"]):
        raise ValueError("read_lengths: %s has a shard without a file and its size" % index)
    names, encodings, sizes = (shard["column_" + one] for one in ("names", "encodings", "sizes"))
    texts = all(isinstance(one, str) for one in names + encodings)
    good = all(one is None or isinstance(one, int) and one >= 0 for one in sizes)
    if not texts or not good or not len(names) == len(encodings) == len(sizes):
        raise ValueError(
            "read_lengths: %s must have a name, an encoding and a size, or null, for each column" % index
        )


class _Shard:
    """A file of samples: the number of samples and the end of each (4 bytes each), then the samples: the sizes
    of the columns without a fixed one (4 bytes each), and the columns."""

    def __init__(self, kind: str, file: pathlib.Path, data: bytes, count: int, fixed: List[Any]) -> None:
        self.kind = kind
        self.file = file
        self.fixed = fixed
        self.data = data
        start = 4 * (count + 2)
        if len(data) < start or np.frombuffer(data, "<u4", 1)[0] != count:
            self.refuse("does not have the %d samples of its index" % count)
        self.ends = np.frombuffer(data, "<u4", count + 1, 4).tolist()
        if self.ends[0] < start or self.ends[-1] != len(data) or sorted(self.ends) != self.ends:
            self.refuse("has samples that are not in order")

    def refuse(self, problem: str) -> None:
        raise ValueError("read_lengths: the %s %s %s" % (self.kind, self.file, problem))

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

    def lengths(self, name: str, column: int, kind: Union[str, "_Array"], floats: bool) -> np.ndarray:
        """The numbers of a type of NumPy, or the first extents of arrays."""
        values = [self.value(sample, column) for sample in range(len(self.ends) - 1)]
        if not isinstance(kind, str):
            return np.array([self.extent(kind, value) for value in values], np.int64)
        if kind not in _BYTES or kind.startswith("float") and not floats:
            self.refuse(
                "has the encoding %r of column %r, must be integers or arrays%s"
                % (kind, name, " or floats" if floats else "; scale accepts floats")
            )
        if any(len(value) != _BYTES[kind] for value in values):
            self.refuse("has values of column %r of another size than %s" % (name, kind))
        return np.frombuffer(b"".join(values), np.dtype(kind).newbyteorder("<"))

    def extent(self, array: "_Array", value: bytes) -> int:
        found = array(value)
        if found is None:
            self.refuse("has a damaged array of %d bytes" % len(value))
        return found  # type: ignore[return-value]


# The first extent of the array that has these bytes; None if the bytes do not fit.
_Array = Callable[[bytes], Optional[int]]


def _first_extent(shape: List[int], width: Optional[int], size: int) -> Optional[int]:
    """The first extent of a shape if its elements of `width` bytes have `size` bytes."""
    elements = 1
    for extent in shape:
        elements *= extent
    return shape[0] if shape and width and elements * width == size else None


# The bytes of types of numbers, in the order in which litData counts them.
_BYTES = {"int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8,
          "float16": 2, "float32": 4, "float64": 8}  # fmt: skip


def _mds_type(encoding: str) -> Union[str, _Array]:
    """The name of a type of numbers, or how arrays are read: `ndarray`, `ndarray:int32` or
    `ndarray:int32:2,3`."""
    kinds = {8: 1, 9: 1, 16: 2, 17: 2, 18: 2, 32: 4, 33: 4, 34: 4, 64: 8, 65: 8, 66: 8}
    words = encoding.split(":")
    if words[0] != "ndarray":
        return "int64" if encoding == "int" else encoding
    fixed = words[2].split(",") if len(words) > 2 else []
    if len(words) > 3 or words[1:2] and words[1] not in _BYTES or not all(map(str.isdecimal, fixed)):
        raise ValueError("read_lengths: the encoding %r of an array is unknown" % encoding)

    def first_extent(value: bytes) -> Optional[int]:
        if fixed:
            return _first_extent([int(extent) for extent in fixed], _BYTES[words[1]], len(value))
        place = 0
        width: Optional[int] = None
        if len(words) > 1:
            width = _BYTES[words[1]]
        elif value:
            width = kinds.get(value[0])
            place = 1
        code = value[place] if place < len(value) else 0
        shape_bytes = (code >> 2) << (code & 3)
        if place + 1 + shape_bytes > len(value):
            return None
        kind = "<u%d" % (1 << (code & 3))
        shape = np.frombuffer(value, kind, code >> 2, place + 1).tolist()
        return _first_extent(shape, width, len(value) - place - 1 - shape_bytes)

    return first_extent


def _litdata_type(encoding: str) -> Union[str, _Array]:
    """The name of a type of numbers, or how arrays are read."""
    torch_bytes = (4, 4, 8, 8, 8, 8, 16, 16, 2, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8, 1, 2)
    kind, _, code = encoding.partition(":")
    is_torch = kind.endswith("tensor")
    all_bytes = torch_bytes if is_torch else tuple(_BYTES.values())
    # Torch's tensors have the high bytes of their extents first.
    order = ">u4" if is_torch else "<u4"

    def width_of(number: int) -> Optional[int]:
        return all_bytes[number] if 0 <= number < len(all_bytes) else None

    def with_header(value: bytes) -> Optional[int]:
        if len(value) < 8:
            return None
        number, axes = np.frombuffer(value, order, 2).tolist()
        if 4 * (2 + axes) > len(value):
            return None
        shape = np.frombuffer(value, order, axes, 8).tolist()
        return _first_extent(shape, width_of(number), len(value) - 4 * (2 + axes))

    def without_header(value: bytes) -> Optional[int]:
        width = width_of(int(code)) if code.isascii() and code.isdecimal() else None
        return len(value) // width if width and len(value) % width == 0 else None

    if encoding in ("numpy", "tensor"):
        return with_header
    if kind in ("no_header_numpy", "no_header_tensor"):
        return without_header
    return {"int": "int64", "float": "float64"}.get(encoding, encoding)


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
    parser.add_argument(
        "path", metavar="FILE", help="Parquet, Arrow, save_to_disk, MDS, litData or Megatron's .idx"
    )
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
