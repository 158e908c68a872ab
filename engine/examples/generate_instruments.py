"""Make the main job's data: financial instruments of which 13 in 14 have the same currency, and the currencies.

    python -m drey.examples.generate_instruments --rows 1400000 --out DIR [--seed S] [--format csv|parquet]

writes ``DIR/instruments/part-0000K.csv`` and ``DIR/currencies.csv`` (or ``.parquet``) and nothing else. The same rows
and seed give the same data. Some currencies have no ISOCode: null for some, an empty string for others.

Held by: tests/integration/test_skew_join.py
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

PART_COUNT = 4
CURRENCY_COUNT = 492
#: currency of 13 in 14 instruments
DOMINANT_CURRENCY_ID = 1
DOMINANT_SHARE = 13 / 14
_CHUNK_ROWS = 100_000

INSTRUMENTS = pa.schema(
    [
        ("RIC", pa.string()),
        ("Asset", pa.string()),
        ("AssetClass", pa.string()),
        ("Exchange", pa.string()),
        ("Periodicity", pa.string()),
        ("ContractType", pa.string()),
        ("CallPutOption", pa.string()),
        ("ExpiryDate", pa.string()),
        ("StrikePrice", pa.float64()),
        ("StrikePriceMultiplier", pa.float64()),
        ("LotSize", pa.int32()),
        ("CurrencyID", pa.int64()),
        ("AssetState", pa.string()),
    ]
)
CURRENCIES = pa.schema(
    [("CurrencyID", pa.int64()), ("ISOCode", pa.string()), ("ISOExtended", pa.string()), ("Name", pa.string())]
)

_WELL_KNOWN = ("EUR", "USD", "GBP", "JPY", "CHF", "CAD", "AUD", "SEK", "NOK", "DKK")
_CHOICES: dict[str, list[str | None]] = {
    "Asset": [f"Asset {letter}{digit}" for letter in "ABCDEFGHIJ" for digit in range(10)],
    "AssetClass": ["Equity", "Future", "Option", "Bond", "Commodity", "Index, composite"],
    "Exchange": ["XETR", "XLON", "XNYS", "XNAS", "XPAR", "XTKS", "XSWX", "XHKG"],
    "Periodicity": ["Daily", "Weekly", "Monthly", "Quarterly"],
    "ContractType": ["American", "European", None],
    "CallPutOption": ["Call", "Put", None],
    "AssetState": ["Active", "Expired", "Suspended", 'Halted "pending news"'],
}


class _Writer(Protocol):
    def write_batch(self, batch: pa.RecordBatch) -> None: ...
    def close(self) -> None: ...


class _Random:
    """Columns from one seeded stream of random numbers."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._draw = 0

    def uniform(self, count: int) -> pa.Array:
        """Return ``count`` floats in [0, 1)."""
        self._draw += 1
        return pc.random(count, initializer=(self._seed * 1_000_003 + self._draw) % (1 << 63))

    def integers(self, count: int, limit: int) -> pa.Array:
        """Return ``count`` int64 in [0, limit)."""
        return pc.cast(pc.floor(pc.multiply(self.uniform(count), float(limit))), pa.int64())

    def choices(self, count: int, values: Sequence[str | None]) -> pa.Array:
        """Return ``count`` of the values."""
        return pa.array(values, pa.string()).take(self.integers(count, len(values)))


def currencies() -> pa.RecordBatch:
    """Return the currencies; every 7th has a null ISOCode, every 11th an empty one."""
    ids = list(range(1, CURRENCY_COUNT + 1))
    codes = [_WELL_KNOWN[i - 1] if i <= len(_WELL_KNOWN) else f"C{i:03d}" for i in ids]
    extended = [f"{code}X" for code in codes]
    iso: list[str | None] = [
        code if i <= len(_WELL_KNOWN) or (i % 7 and i % 11) else (None if i % 7 == 0 else "")
        for i, code in zip(ids, codes, strict=True)
    ]
    names = [f"Currency {code}" for code in codes]
    return pa.record_batch([pa.array(ids, pa.int64()), iso, extended, names], schema=CURRENCIES)


def _two_digits(numbers: pa.Array) -> pa.Array:
    return pc.utf8_lpad(pc.cast(numbers, pa.string()), 2, "0")


def instruments(start: int, count: int, seed: int) -> pa.RecordBatch:
    """Return instruments ``start`` to ``start + count`` of a seed."""
    random = _Random(seed * 7919 + start)
    numbers = pa.array(range(start, start + count), pa.int64())
    exchange = random.choices(count, _CHOICES["Exchange"])
    ric = pc.binary_join_element_wise(pc.utf8_lpad(pc.cast(numbers, pa.string()), 9, "0"), exchange, ".")
    year = pc.cast(pc.add(random.integers(count, 12), 2020), pa.string())
    month = _two_digits(pc.add(random.integers(count, 12), 1))
    day = _two_digits(pc.add(random.integers(count, 28), 1))
    is_dominant = pc.less(random.uniform(count), DOMINANT_SHARE)
    other = pc.add(random.integers(count, CURRENCY_COUNT - 1), DOMINANT_CURRENCY_ID + 1)
    columns = {
        "RIC": ric,
        "Exchange": exchange,
        "ExpiryDate": pc.binary_join_element_wise(year, month, day, "-"),
        "StrikePrice": pc.divide(pc.cast(random.integers(count, 1_000_000), pa.float64()), 100.0),
        "StrikePriceMultiplier": pa.array([1.0, 10.0, 100.0, 0.5], pa.float64()).take(random.integers(count, 4)),
        "LotSize": pa.array([1, 10, 50, 100, 1000], pa.int32()).take(random.integers(count, 5)),
        "CurrencyID": pc.if_else(is_dominant, pa.scalar(DOMINANT_CURRENCY_ID, pa.int64()), other),
    }
    for name, values in _CHOICES.items():
        if name not in columns:
            columns[name] = random.choices(count, values)
    return pa.record_batch([columns[name] for name in INSTRUMENTS.names], schema=INSTRUMENTS)


def _open_writer(path: Path, schema: pa.Schema, file_format: str) -> _Writer:
    if file_format == "parquet":
        parquet: _Writer = pq.ParquetWriter(path, schema)
        return parquet
    csv: _Writer = pa_csv.CSVWriter(path, schema, write_options=pa_csv.WriteOptions(include_header=False))
    return csv


def _chunks(start: int, end: int) -> Iterator[tuple[int, int]]:
    for first in range(start, end, _CHUNK_ROWS):
        yield first, min(_CHUNK_ROWS, end - first)


def generate(row_count: int, target: Path | str, seed: int = 1, file_format: str = "csv") -> None:
    """Write ``row_count`` instruments in parts, and the currencies, below ``target``."""
    target = Path(target)
    folder = target / "instruments"
    folder.mkdir(parents=True, exist_ok=True)
    for part in range(PART_COUNT):
        start, end = row_count * part // PART_COUNT, row_count * (part + 1) // PART_COUNT
        writer = _open_writer(folder / f"part-{part:05d}.{file_format}", INSTRUMENTS, file_format)
        for first, count in _chunks(start, end):
            writer.write_batch(instruments(first, count, seed))
        writer.close()
    writer = _open_writer(target / f"currencies.{file_format}", CURRENCIES, file_format)
    writer.write_batch(currencies())
    writer.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and write the data."""
    parser = argparse.ArgumentParser(prog="generate_instruments.py", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rows", type=int, required=True, metavar="N", help="number of instruments")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write to")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="same seed, same data (default 1)")
    parser.add_argument("--format", choices=("csv", "parquet"), default="csv", help="default csv, without header")
    options = parser.parse_args(arguments)
    if options.rows < 0:
        parser.error("--rows must not be negative")
    generate(options.rows, options.out, options.seed, options.format)


if __name__ == "__main__":
    main()
