"""The inputs: tables of SCALE times the managed memory, seeded, written in pieces, kept from run to run.

    facts      100 bytes a row      id, v (id in another order), k of 1000 with nulls, g of rows / 4, price, at, level
                                    (eighths), ratio (with NaN and null), text
    others     half as many         v as facts.v, w, o, other
    heavy      100 bytes            h: 99 % are 7; id, pad
    weights    half as many         the same of other rows
    nested     half as many         id, key as facts.v, parts (list), pair (struct), tags (map)
    left_pairs, right_pairs         1 KiB a row, 99 % of them with key 7: few, as their pairs are many; the right ones
                                    are as large as the managed memory
    names      1000                 h, name
    ranges     40                   low, high, label
    facts_csv  the columns of facts but the floats, as CSV in two files

A piece depends on the table's name and its number only. ``v`` is a permutation without a table of it: a multiple modulo
the number of rows, by a prime.
"""

import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

PIECE_ROWS = 250_000
GROUP_ROWS = 50_000
ROW_BYTES = 100
PAIR_BYTES = 1 << 10
LEFT_PAIRS = 4_000
HEAVY_KEY = 7
#: not close to a multiple of a power of two, which numbers of rows are
_PRIMES = (1_000_000_007, 2_654_435_761)
#: rows of most records with their keys, far above what the tables have
RECORD_BYTES_MAX = 2 * PAIR_BYTES

Columns = dict[str, pa.Array]
_CSV_COLUMNS = ["id", "v", "k", "g", "price", "at", "text"]


class Tables:
    """The tables of one size in a folder: ``path(name)`` makes what is not there yet."""

    def __init__(self, folder: Path, managed_bytes: int, scale: float) -> None:
        self.folder = folder
        self._row_count = max(1000, int(managed_bytes * scale) // ROW_BYTES)
        self._managed_bytes = managed_bytes
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, name: str) -> Path:
        """Return the file (of ``facts_csv`` the folder) of a table."""
        path = self.folder / (name if name.endswith("_csv") else f"{name}.parquet")
        if not path.exists():
            unfinished = path.with_name(f"{path.name}.unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.unlink(missing_ok=True)
            if path.suffix:
                self._write_parquet(name, unfinished)
            else:
                self._write_csv(name.removesuffix("_csv"), unfinished)
            unfinished.rename(path)
        return path

    def row_count(self, name: str) -> int:
        halves = self._row_count // 2
        few = {"names": 1000, "ranges": 40, "left_pairs": min(LEFT_PAIRS, halves)}
        sizes = {"others": halves, "weights": halves, "nested": halves}
        sizes["right_pairs"] = max(100, self._managed_bytes // PAIR_BYTES)
        return (few | sizes).get(name, self._row_count)

    def _pieces(self, name: str) -> Iterator[pa.Table]:
        make, rows = _MAKERS[name], self.row_count(name)
        for start in range(0, rows, PIECE_ROWS):
            chosen = np.random.default_rng([zlib.crc32(name.encode()), start])
            index = np.arange(start, min(rows, start + PIECE_ROWS), dtype=np.int64)
            yield pa.table(make(chosen, index, self._row_count))

    def _write_parquet(self, name: str, path: Path) -> None:
        writer = None
        for table in self._pieces(name):
            writer = writer or pq.ParquetWriter(path, table.schema, compression="none", use_dictionary=False)
            writer.write_table(table, row_group_size=GROUP_ROWS)
        writer.close()

    def _write_csv(self, name: str, folder: Path) -> None:
        folder.mkdir()
        schema = next(self._pieces(name)).select(_CSV_COLUMNS).schema
        writers = [pyarrow.csv.CSVWriter(folder / f"{number}.csv", schema) for number in range(2)]
        for number, table in enumerate(self._pieces(name)):
            writers[number % 2].write_table(table.select(_CSV_COLUMNS))
        for writer in writers:
            writer.close()


def _other_order(index: np.ndarray, rows: int, prime: int) -> np.ndarray:
    """Return index * prime modulo rows: each number below rows once."""
    return index * prime % rows


def _texts(chosen: np.random.Generator, rows: int, width: int, shortest: int | None = None) -> pa.Array:
    """Return texts of letters, of one width or of those from the shortest to it."""
    widths = np.full(rows, width) if shortest is None else chosen.integers(shortest, width + 1, rows)
    ends = np.zeros(rows + 1, np.int32)
    np.cumsum(widths, out=ends[1:])
    letters = chosen.integers(97, 123, int(ends[-1]), dtype=np.uint8)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(ends), pa.py_buffer(letters))


def _with_nulls(chosen: np.random.Generator, values: np.ndarray, share: float, kind: pa.DataType | None = None):
    return pa.array(values, kind, mask=chosen.random(len(values)) < share, from_pandas=False)


def _decimals(chosen: np.random.Generator, rows: int) -> pa.Array:
    low = chosen.integers(-(10**9), 10**9, rows)
    words = np.column_stack((low, low >> 63))
    return pa.Array.from_buffers(pa.decimal128(18, 2), rows, [None, pa.py_buffer(np.ascontiguousarray(words))])


def _facts(chosen: np.random.Generator, index: np.ndarray, rows: int) -> Columns:
    count = len(index)
    ratio = chosen.integers(-4000, 4000, count) / 8
    ratio[chosen.random(count) < 0.01] = np.nan
    return {
        "id": pa.array(index),
        "v": pa.array(_other_order(index, rows, _PRIMES[0])),
        "k": _with_nulls(chosen, chosen.integers(0, 1000, count), 0.01),
        "g": pa.array(chosen.integers(0, max(1, rows // 4), count)),
        "price": _decimals(chosen, count),
        "at": pa.array(chosen.integers(-(10**15), 10**15, count)).cast(pa.timestamp("us")),
        "level": pa.array(chosen.integers(0, 8000, count) / 8),
        "ratio": _with_nulls(chosen, ratio, 0.01),
        "text": _texts(chosen, count, 30, 14),
    }


def _others(chosen: np.random.Generator, index: np.ndarray, rows: int) -> Columns:
    return {
        "v": pa.array(_other_order(index, rows, _PRIMES[1])),
        "w": _with_nulls(chosen, chosen.integers(0, 10**6, len(index)), 0.02),
        "o": pa.array(chosen.integers(0, 1000, len(index))),
        "other": _texts(chosen, len(index), 60),
    }


def _heavy(chosen: np.random.Generator, index: np.ndarray, rows: int) -> Columns:
    keys = np.where(chosen.random(len(index)) < 0.99, HEAVY_KEY, chosen.integers(0, 1000, len(index)))
    return {"h": pa.array(keys), "id": pa.array(index), "pad": _texts(chosen, len(index), 80)}


def _pairs(chosen: np.random.Generator, index: np.ndarray, rows: int) -> Columns:
    return _heavy(chosen, index, rows) | {"pad": _texts(chosen, len(index), PAIR_BYTES - 24)}


def _nested(chosen: np.random.Generator, index: np.ndarray, rows: int) -> Columns:
    count = len(index)
    ends = np.zeros(count + 1, np.int32)
    np.cumsum(chosen.integers(0, 8, count), out=ends[1:])
    numbers = _with_nulls(chosen, chosen.integers(-100, 100, int(ends[-1])), 0.1, pa.int32())
    names = pa.array(["one", "two", "three"])
    entries = np.arange(0, 2 * count + 1, 2, dtype=np.int32)
    tags = names.take(pa.array(np.tile([0, 1, 1, 2], count // 2 + 1)[: 2 * count]))
    pair = [_with_nulls(chosen, chosen.integers(0, 100, count), 0.1, pa.int32()), _texts(chosen, count, 20, 0)]
    return {
        "id": pa.array(index),
        "key": pa.array(_other_order(index, rows, _PRIMES[0])),
        "parts": pa.ListArray.from_arrays(pa.array(ends), numbers),
        "pair": pa.StructArray.from_arrays(pair, ["a", "b"]),
        "tags": pa.MapArray.from_arrays(pa.array(entries), tags, pa.array(chosen.integers(0, 99, 2 * count))),
    }


def _names(_chosen: np.random.Generator, index: np.ndarray, _rows: int) -> Columns:
    return {"h": pa.array(index), "name": pa.array([f"name {number}" for number in index])}


def _ranges(_chosen: np.random.Generator, index: np.ndarray, _rows: int) -> Columns:
    labels = pa.array([f"from {25 * number}" for number in index])
    return {"low": pa.array(index * 25), "high": pa.array(index * 25 + 25), "label": labels}


_MAKERS: dict[str, Callable[[np.random.Generator, np.ndarray, int], Columns]] = {
    "facts": _facts,
    "others": _others,
    "heavy": _heavy,
    "weights": _heavy,
    "nested": _nested,
    "left_pairs": _pairs,
    "right_pairs": _pairs,
    "names": _names,
    "ranges": _ranges,
}
NAMES = (*_MAKERS, "facts_csv")
