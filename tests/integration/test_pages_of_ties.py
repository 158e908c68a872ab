"""Pages of a sorted result over ties: together they have each row once, and they are the same whatever runs them."""

import random
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import DreyWarning, Environment, avg, col, count, sum_
from engine.optimizer import sort_planning

ROWS = 1_200
PAGE = 330
SETTINGS = [
    {"parallelism.default": 1},
    {"parallelism.default": 3},
    {"parallelism.default": 3, "debug.force-spill": True},
    {"parallelism.default": 4, "execution.mode": "BATCH"},
]


@pytest.fixture(scope="module")
def rows():
    rng = random.Random(4)
    return pa.table(
        {
            "id": list(range(ROWS)),
            "k": [rng.choice([None, 1, 2, 3]) for _ in range(ROWS)],
            "s": [rng.choice(["a", "b", None]) for _ in range(ROWS)],
            "f": [rng.random() for _ in range(ROWS)],
            "l": [[number % 3] * (number % 2) for number in range(ROWS)],
        }
    )


@pytest.fixture(scope="module")
def files(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for number in range(5):
        part = rows.slice(number * ROWS // 5, ROWS // 5)
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=50)
    return folder


@pytest.fixture(scope="module")
def environments(open_environment):
    return [open_environment(**{"taskmanager.memory.managed.size": "8mb"}, **settings) for settings in SETTINGS]


def names_of(environment):
    currencies = pa.table({"k": [1, 2, 3, 3], "name": ["one", "two", "three", "drei"]})
    return environment.from_arrow(currencies)


def double(row):
    return row.id * 2, row.k


NUMBERS = pa.schema([("id", pa.int64()), ("k", pa.int64())])

#: rows that are sorted: those of files are in their order where keys are equal
IN_FILES = {
    "as they are": lambda env, data: data,
    "filtered and projected": lambda env, data: data.filter(col("id") % 3 > 0).select("id", "k", t=col("id") * 2),
    "of a function": lambda env, data: data.map(double, NUMBERS),
    "exploded": lambda env, data: data.select("id", "k", "l").explode("l"),
}
#: rows that come in any order
IN_ANY_ORDER = {
    "rebalanced": lambda env, data: data.rebalance(),
    "joined": lambda env, data: data.drop("l").join(names_of(env), on="k"),
    "joined by a large key": lambda env, data: data.join(data.select("id", other=col("f")).rebalance(), on="id"),
    "grouped": lambda env, data: data.group_by("s", "id").agg(k=sum_("k"), mean=avg("f")),
    "united": lambda env, data: data.union(data.filter(col("k") == 1)),
    "of windows": lambda env, data: data.select("id", "k", n=count().over("s")),
}


def pages_of(ordered):
    """Return the rows of pages, each a job of its own, the first without an offset."""
    found, page = [], ordered.limit(PAGE)
    while rows := page.to_arrow().to_pylist():
        found += rows
        page = ordered.limit(PAGE, offset=len(found))
    return found


def as_rows(table):
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("name", [*IN_FILES, *IN_ANY_ORDER])
def test_pages_have_each_row_once_and_are_the_same_whatever_runs_them(environments, files, name):
    made = {**IN_FILES, **IN_ANY_ORDER}[name]
    found = []
    for environment in environments:
        data = made(environment, environment.read_parquet(f"{files}/*.parquet"))
        pages = pages_of(data.sort("k", descending=True))
        assert as_rows(pa.Table.from_pylist(pages, data.schema)) == as_rows(data.to_arrow())
        found.append([(row["id"], row["k"]) for row in pages])
    assert all(each == found[0] for each in found)


@pytest.mark.parametrize("name", IN_FILES)
def test_equal_keys_keep_the_order_of_the_files(environments, files, name, monkeypatch):
    for small_bytes in (0, sort_planning.SMALL_SORT_BYTES):
        monkeypatch.setattr(sort_planning, "SMALL_SORT_BYTES", small_bytes)
        for environment in environments:
            data = IN_FILES[name](environment, environment.read_parquet(f"{files}/*.parquet"))
            wanted = sorted(data.to_arrow().to_pylist(), key=lambda row: row["k"] or 0)
            ordered = data.sort("k")
            assert ordered.to_arrow().to_pylist() == wanted
            assert ordered.limit(7, offset=500).to_arrow().to_pylist() == wanted[500:507]
            assert ordered.limit(None, offset=700).to_arrow().to_pylist() == wanted[700:]
            assert ordered.tail(3).to_arrow().to_pylist() == wanted[-3:]


def test_pages_far_behind_are_of_the_same_order_as_the_first_ones(rows, tmp_path):
    """A limit that does not fit in memory is one of sorted ranges; smaller ones are tops."""
    wide = rows.append_column("w", pa.array([f"{number % 7}" * 2500 for number in range(ROWS)]))
    pq.write_table(wide, tmp_path / "wide.parquet", row_group_size=150)
    settings = {"parallelism.default": 2, "taskmanager.memory.managed.size": "4mb"}
    with Environment(config=settings) as environment:
        read = environment.read_parquet(str(tmp_path / "wide.parquet"))
        for ordered in (read.sort("k"), read.rebalance().sort("k")):
            deep = ordered.limit(1100)
            assert "SORT_RUNS" in deep.explain()
            assert "LOCAL_TOP" in ordered.limit(100).explain()
            ids = [ordered.limit(50, offset).to_arrow()["id"].to_pylist() for offset in (0, 50, 1050)]
            found = deep.to_arrow()["id"].to_pylist()
            assert (found[:50], found[50:100], found[1050:]) == tuple(ids)


def test_a_top_and_numbers_of_rows_are_settled_too(environments, rows):
    found = []
    for environment in environments:
        data = environment.from_arrow(rows).rebalance()
        numbered = data.sort("k").with_row_index("n").select("n", "id").to_arrow()
        found.append(
            (data.top(40, "k").to_arrow()["id"].to_pylist(), sorted(map(tuple, map(dict.values, numbered.to_pylist()))))
        )
    assert all(each == found[0] for each in found)


def test_pages_in_sql_fit_together(environments, rows):
    found = []
    for environment in environments[:2]:
        environment.register("t", environment.from_arrow(rows.drop_columns(["l"])))
        environment.register("names", names_of(environment))
        query = "SELECT id, name FROM t JOIN names USING (k) ORDER BY k LIMIT {} OFFSET {}"
        whole = environment.sql("SELECT id, name FROM t JOIN names USING (k)").to_arrow()
        pages = [environment.sql(query.format(300, offset)).to_arrow() for offset in range(0, len(whole), 300)]
        assert as_rows(pa.concat_tables(pages)) == as_rows(whole)
        found.append(pa.concat_tables(pages).to_pylist())
    assert found[0] == found[1]


def test_an_offset_into_rows_without_an_order_is_told(environments, rows):
    data = environments[1].from_arrow(rows)
    for unordered in (data.rebalance(), data.union(data).filter(col("id") > 3), data.group_by("k").agg(n=count())):
        with pytest.warns(DreyWarning, match=r"limit\(offset=2\): rows behind a join, .* sort\(\) them first"):
            unordered.limit(1, offset=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ordered in (data, data.rebalance().sort("k").select("id"), data.with_row_index()):
            ordered.limit(1, offset=2)
        data.rebalance().limit(1)


def test_of_equal_rows_of_a_group_the_first_or_last_of_the_files_is_taken(environments, rows, files):
    listed = rows.select(["id", "k", "s"]).to_pylist()
    ordered = sorted(listed, key=lambda row: (row["k"] is not None, row["k"] or 0))
    firsts = {row["s"]: row["id"] for row in reversed(ordered)}
    lasts = {row["s"]: row["id"] for row in ordered}
    heads = {row["id"] for s in firsts for row in [one for one in ordered if one["s"] == s][:50]}
    for environment in environments:
        data = environment.read_parquet(f"{files}/*.parquet").select("id", "k", "s")
        for keep, wanted in (("first", firsts), ("last", lasts)):
            found = data.drop_duplicates("s", keep=keep, order_by="k").collect()
            assert {row.s: row.id for row in found} == wanted
        assert {row.id for row in data.group_by("s").head(50, "k").collect()} == heads
