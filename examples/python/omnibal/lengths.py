# SPDX-License-Identifier: Apache-2.0
"""Lengths of samples from files: Parquet, Arrow, folders of `save_to_disk`, and Megatron's index.

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
    """Returns the lengths of all samples of a file, or of a folder of `save_to_disk`, in order.

    The first bytes of a file tell its format: Parquet, Arrow (file or stream), or Megatron's index
    (.idx). All but the last one need pyarrow.

    Args:
        path: the file or the folder.
        column: the column of numbers or of lists, which are counted. A name that no column has may be
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
    for part in _columns(path, column):
        parts.append(_row_lengths(part, "column %r of %s" % (column, path), row, factor))
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
