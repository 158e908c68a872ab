"""Plans of a scan of ten files of tables with very many, beside the library that reads the log or the manifests.

The files themselves are not there: what is measured is done before one is opened. Each program has planned a scan of
another table before, so that what it needs is loaded.
"""

import json
from pathlib import Path

from tests.bench.lake.beside import in_turns, ratio, seconds_of
from tests.bench.lake.row import Figure

#: files of the table of Delta; that of Iceberg has a tenth
DEFAULT_ROWS = 100_000
COLUMNS = 8
_ROWS_OF_FILE = 100
_DELTA = {
    "Drey": """
from engine import Environment, col
def plan(path, first, last):
    data = env.read_delta(path).filter((col("c0") >= first) & (col("c0") <= last))
    return data.explain()
with Environment() as env:
    plan(arguments["small"], 0, 0)
    begin()
    explained = plan(arguments["table"], *arguments["range"])
    end()
assert f"reads 10 of {arguments['files']} files" in explained, explained
""",
    "deltalake": """
from deltalake import DeltaTable
def plan(path, first, last):
    return DeltaTable(path).file_uris(file_pruning_predicate=f"c0 >= {first} AND c0 <= {last}")
plan(arguments["small"], 0, 0)
begin()
found = plan(arguments["table"], *arguments["range"])
end()
assert len(found) == 10, len(found)
""",
}
_CATALOG = """
from pyiceberg.catalog.sql import SqlCatalog
def loaded(table):
    return SqlCatalog("bench", uri=f"sqlite:///{arguments['catalog']}/c.db").load_table(f"bench.{table}")
"""
_ICEBERG = {
    "Drey": """
from engine import Environment, col
def plan(table, first, last):
    data = env.read_iceberg(loaded(table)).filter((col("c0") >= first) & (col("c0") <= last))
    return data.explain()
with Environment() as env:
    plan("small", 0, 0)
    begin()
    explained = plan("large", *arguments["range"])
    end()
assert f"reads 10 of {arguments['files']} files" in explained, explained
""",
    "pyiceberg": """
def plan(table, first, last):
    return list(loaded(table).scan(row_filter=f"c0 >= {first} and c0 <= {last}").plan_files())
plan("small", 0, 0)
begin()
found = plan("large", *arguments["range"])
end()
assert len(found) == 10, len(found)
""",
}


def figures(rows: int, runs: int, folder: Path) -> list[Figure]:
    """Plan both."""
    made = folder / f"lake-plans-{rows}"
    if not made.exists():
        unfinished = made.with_suffix(".unfinished")
        for name, files in (("small", 10), ("large", rows)):
            _make_delta(unfinished / name, files)
        _make_iceberg(unfinished / "iceberg", made / "iceberg", {"small": 10, "large": rows // 10})
        unfinished.rename(made)
    wanted = [5 * _ROWS_OF_FILE, 15 * _ROWS_OF_FILE - 1]
    places = {"small": str(made / "small"), "table": str(made / "large")}
    delta = in_turns(runs, _DELTA, **places, range=wanted, files=rows)
    programs = {name: _CATALOG + program for name, program in _ICEBERG.items()}
    iceberg = in_turns(runs, programs, catalog=str(made / "iceberg"), range=wanted, files=rows // 10)
    return [
        Figure(
            f"plan of a Delta table of {rows:,} files", ratio(delta, "Drey", "deltalake"), 1.0, 0.3, seconds_of(delta)
        ),
        Figure(
            f"plan of an Iceberg table of {rows // 10:,} files",
            ratio(iceberg, "Drey", "pyiceberg"),
            1.0,
            0.3,
            seconds_of(iceberg),
        ),
    ]


def _bounds(file: int) -> tuple[list[int | str], list[int | str]]:
    """Return the lowest and the highest value of each column: whole numbers, and texts."""
    first, last = file * _ROWS_OF_FILE, (file + 1) * _ROWS_OF_FILE - 1
    lows = [first if column % 2 == 0 else f"{first:012}" for column in range(COLUMNS)]
    return lows, [last if column % 2 == 0 else f"{last:012}" for column in range(COLUMNS)]


def _make_delta(path: Path, files: int) -> None:
    import pyarrow as pa
    from deltalake import DeltaTable

    names = [f"c{column}" for column in range(COLUMNS)]
    types = [pa.int64() if column % 2 == 0 else pa.string() for column in range(COLUMNS)]
    DeltaTable.create(str(path), pa.schema(list(zip(names, types, strict=True))))
    with (path / "_delta_log" / f"{1:020}.json").open("w") as log:
        for file in range(files):
            lows, highs = (dict(zip(names, values, strict=True)) for values in _bounds(file))
            nulls = dict.fromkeys(names, 0)
            known = {"numRecords": _ROWS_OF_FILE, "minValues": lows, "maxValues": highs, "nullCount": nulls}
            added = {"path": f"{file:07}.parquet", "partitionValues": {}, "size": 100_000, "modificationTime": 0}
            log.write(json.dumps({"add": {**added, "dataChange": True, "stats": json.dumps(known)}}) + "\n")
    DeltaTable(str(path)).create_checkpoint()


def _make_iceberg(path: Path, place: Path, tables: dict[str, int]) -> None:
    """Make tables whose metadata says that they lie in another place, to which the folder is moved."""
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.conversions import to_bytes
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.schema import Schema
    from pyiceberg.typedef import Record
    from pyiceberg.types import LongType, NestedField, StringType

    path.mkdir(parents=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(path, target_is_directory=True)
    types = [LongType() if column % 2 == 0 else StringType() for column in range(COLUMNS)]
    fields = [NestedField(column + 1, f"c{column}", types[column], required=False) for column in range(COLUMNS)]
    catalog = SqlCatalog("bench", uri=f"sqlite:///{path}/c.db", warehouse=f"file://{place}")
    catalog.create_namespace("bench")
    for name, files in tables.items():
        table = catalog.create_table(f"bench.{name}", Schema(*fields))
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as appended:
            for file in range(files):
                lows, highs = (
                    {at + 1: to_bytes(types[at], value) for at, value in enumerate(values)} for values in _bounds(file)
                )
                appended.append_data_file(
                    DataFile.from_args(
                        content=DataFileContent.DATA,
                        file_path=f"file://{place}/{name}/{file:07}.parquet",
                        file_format=FileFormat.PARQUET,
                        partition=Record(),
                        record_count=_ROWS_OF_FILE,
                        file_size_in_bytes=100_000,
                        column_sizes={at + 1: 10_000 for at in range(COLUMNS)},
                        value_counts={at + 1: _ROWS_OF_FILE for at in range(COLUMNS)},
                        null_value_counts={at + 1: 0 for at in range(COLUMNS)},
                        nan_value_counts={},
                        lower_bounds=lows,
                        upper_bounds=highs,
                        split_offsets=[4],
                        spec_id=table.spec().spec_id,
                    )
                )
    place.unlink()
    place.parent.rmdir()
