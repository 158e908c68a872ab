"""A scan of a table with thousands of files is planned by what its log says, in whatever order the log has them."""

import json
import random
from itertools import pairwise
from urllib.parse import quote

import pyarrow as pa
import pytest

from engine import Environment, col
from engine.delta_tables.delta_source import SPLIT_BYTES, delta_source

deltalake = pytest.importorskip("deltalake")

FILES = 3000


def made(place, files):
    """Make a table whose files are in its log alone: (path, size, statistics or None) each."""
    deltalake.DeltaTable.create(str(place), pa.schema([("k", pa.int64()), ("t", pa.string())]))
    with (place / "_delta_log" / f"{1:020}.json").open("w") as log:
        for path, size, stats in files:
            add = {"path": path, "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True}
            log.write(json.dumps({"add": add if stats is None else {**add, "stats": json.dumps(stats)}}) + "\n")
    return place


def stats_of(number, rows=100):
    first, last = {"k": 100 * number, "t": f"{number:06}"}, {"k": 100 * number + 99, "t": f"{number:06}~"}
    return {"numRecords": rows, "minValues": first, "maxValues": last, "nullCount": {"k": 0, "t": 0}}


def splits_by_hand(place, files):
    """Return what splits must be: path, start, end, size and rows, -1 for unknown."""
    found = []
    for path, size, stats in sorted(files, key=lambda each: each[0]):
        name = path.removeprefix("file://") if path.startswith("file://") else f"{place}/{path.replace('%25', '%')}"
        pieces = max(1, -(-size // SPLIT_BYTES))
        ends = [size * piece // pieces for piece in range(pieces + 1)]
        rows = stats["numRecords"] if stats is not None and pieces == 1 else -1
        found += [(name, start, end, end - start or 1, rows) for start, end in pairwise(ends)]
    return found


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
@pytest.mark.parametrize("others", ["none", "encoded", "absolute", "large", "empty", "unknown"])
def test_splits_and_statistics_are_those_of_the_log(tmp_path, order, others):
    files = [(f"{number:07}.parquet", 1000 + number, stats_of(number)) for number in range(FILES)]
    rows = 100 * FILES
    match others:
        case "encoded":
            files[7] = (quote("0000007%.parquet"), 1007, stats_of(7))
        case "absolute":
            files[7] = (f"file://{tmp_path}/elsewhere/7.parquet", 1007, stats_of(7))
        case "large":
            files[7] = (files[7][0], 3 * SPLIT_BYTES + 1, stats_of(7))
        case "empty":
            empty = {"numRecords": 0, "minValues": {}, "maxValues": {}, "nullCount": {"k": 0, "t": 0}}
            files[7], rows = (files[7][0], 0, empty), rows - 100
        case "unknown":
            files[7], rows = (*files[7][:2], None), None
    if order == "shuffled":
        random.Random(7).shuffle(files)
    place = made(tmp_path / "t", files)
    spec, statistics, _ = delta_source(place)
    found = [(each.path, each.start, each.end, each.size_bytes, each.row_count) for each in spec.splits]
    assert found == splits_by_hand(place, files)
    assert statistics.row_count == rows
    if rows is not None:
        known = statistics.columns
        assert (known["k"].minimum, known["k"].maximum) == (0, 100 * FILES - 1)
        assert (known["t"].minimum, known["t"].maximum) == ("000000", f"{FILES - 1:06}~")


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_bounds_are_those_of_the_files_they_stand_for(tmp_path, order):
    files = [(f"{number:07}.parquet", 1000, stats_of(number)) for number in range(FILES)]
    if order == "shuffled":
        random.Random(8).shuffle(files)
    place = made(tmp_path / "t", files)
    with Environment() as env:
        data = env.read_delta(place)
        wanted = data.filter((col("k") >= 1500) & (col("k") < 1700))
        assert f"reads 2 of {FILES} files" in wanted.explain()
        assert f"reads 1 of {FILES} files" in wanted.filter(col("t") >= "000016").explain()
        for number in (0, FILES // 2, FILES - 1):
            assert f"reads 1 of {FILES} files" in data.filter(col("k") == 100 * number + 5).explain()


def test_a_file_of_nulls_alone_takes_no_bounds_from_the_column(tmp_path):
    empty = {"numRecords": 100, "minValues": {}, "maxValues": {}, "nullCount": {"k": 100, "t": 100}}
    files = [(f"{number:07}.parquet", 1000, empty if number == 5 else stats_of(number)) for number in range(20)]
    _, statistics, _ = delta_source(made(tmp_path / "t", files))
    assert (statistics.columns["k"].minimum, statistics.columns["k"].maximum) == (0, 1999)
    assert statistics.columns["k"].null_fraction == 0.05


def test_a_log_without_statistics_rules_out_nothing(tmp_path):
    place = made(tmp_path / "t", files := [(f"{number}.parquet", 1000, None) for number in range(3)])
    spec, statistics, _ = delta_source(place)
    assert [(each.path, each.row_count) for each in spec.splits] == [(f"{place}/{name}", -1) for name, _, _ in files]
    assert statistics.row_count is None
    with Environment() as env:
        assert "reads 3 files" in env.read_delta(place).filter(col("k") > 1).explain()
