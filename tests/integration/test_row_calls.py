"""Rows that are chosen, numbered and compared, against plain Python and DuckDB, with one subtask and with several."""

import random
from collections import Counter

import duckdb
import pyarrow as pa
import pytest

from engine import DataError, Environment, PlanError, SchemaError, col, count, row_place, sum_
from engine import selectors as cs
from engine.optimizer import sort_planning, window_planning

ROWS = 3_000


@pytest.fixture(autouse=True)
def small_inputs_are_moved_too(monkeypatch):
    monkeypatch.setattr(sort_planning, "SMALL_SORT_BYTES", 0)
    monkeypatch.setattr(window_planning, "SMALL_SORT_BYTES", 0)


@pytest.fixture(scope="module")
def rows():
    rng = random.Random(9)
    return pa.table(
        {
            "k": [rng.choice([None, 1, 2, 3]) for _ in range(ROWS)],
            "f": [rng.choice([None, float("nan"), 0.0, -0.0, 1.5]) for _ in range(ROWS)],
            "s": [rng.choice([None, "", "a", "ä" * 20]) for _ in range(ROWS)],
            "id": list(range(ROWS)),
        }
    )


@pytest.fixture(scope="module", params=[{"parallelism.default": 1}, {"parallelism.default": 3}])
def environment(request):
    with Environment(config={**request.param, "taskmanager.memory.managed.size": "8mb"}) as made:
        yield made


@pytest.fixture
def data(environment, rows):
    return environment.from_arrow(rows)


def test_head_tail_and_a_limit_behind_rows_follow_the_order(data):
    ordered = data.rebalance().sort("id", descending=True)
    assert [row.id for row in ordered.head(3).collect()] == [2999, 2998, 2997]
    assert [row.id for row in ordered.tail(3).collect()] == [2, 1, 0]
    assert [row.id for row in ordered.limit(2, offset=5).collect()] == [2994, 2993]
    assert [row.id for row in ordered.limit(None, offset=2998).collect()] == [1, 0]
    assert ordered.limit(None, offset=5000).count() == 0
    assert ordered.tail(0).count() == 0
    assert [row.id for row in data.tail().collect()] == list(range(2995, 3000))
    assert data.limit(10, offset=2995).count() == 5


def test_numbers_of_rows_have_no_gaps_and_follow_the_order(data):
    numbered = data.rebalance().sort("id", descending=True).with_row_index(offset=10)
    assert numbered.columns == ["index", "k", "f", "s", "id"]
    assert {row.index + row.id for row in numbered.collect()} == {10 + ROWS - 1}
    assert [row.n for row in data.with_row_index("n").collect()] == list(range(ROWS))
    shuffled = data.rebalance().with_row_index().collect()
    assert sorted(row.index for row in shuffled) == list(range(ROWS))


def test_places_of_rows_grow(data):
    places = data.select(row_place().alias("place")).to_arrow()["place"].to_pylist()
    assert places == sorted(set(places))


def test_a_sample_is_a_share_of_the_rows_and_a_seed_gives_it_again(data):
    first, again, other = (data.sample(0.3, seed=seed).to_arrow()["id"].to_pylist() for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert 0.25 * ROWS < len(first) < 0.35 * ROWS
    assert data.sample(0).count() == 0
    assert data.sample(1).count() == ROWS
    for wrong in (-0.1, 1.1, True, "half", float("nan")):
        with pytest.raises(PlanError, match="a share of the rows"):
            data.sample(wrong)


def test_nulls_are_dropped_and_filled(data, rows):
    listed = rows.to_pylist()
    assert data.drop_nulls().count() == sum(None not in row.values() for row in listed)
    assert data.drop_nulls(["k", "s"]).count() == sum(row["k"] is not None and row["s"] is not None for row in listed)
    filled = data.fill_null({"k": 0, "s": "none"}).to_arrow()
    assert filled["k"].to_pylist() == [row["k"] or 0 for row in listed]
    assert filled["s"].to_pylist() == ["none" if row["s"] is None else row["s"] for row in listed]
    assert data.fill_null(col("id")).to_arrow()["k"].null_count == 0
    assert data.fill_null("x").to_arrow()["k"].null_count > 0
    with pytest.raises(SchemaError, match="no column can hold"):
        data.select("k").fill_null("x")
    narrow = data.select(c=col("k").cast(pa.int32()))
    for filled in (narrow.fill_null({"c": 7}), narrow.fill_null(7), narrow.select(c=col("c").fill_null(7))):
        assert filled.schema.field("c").type == pa.int32()
        assert filled.to_arrow()["c"].to_pylist() == [7 if row["k"] is None else row["k"] for row in listed]
    with pytest.raises(SchemaError, match="3000000000 does not fit into int32: cast the column first"):
        narrow.fill_null({"c": 3_000_000_000})
    with pytest.raises(SchemaError, match=r"0\.5 does not fit into int32"):
        narrow.fill_null({"c": 0.5})
    with pytest.raises(SchemaError, match="no column 'q'"):
        data.fill_null({"q": 1})


@pytest.mark.parametrize("keep", ["first", "last"])
def test_one_row_of_each_is_the_first_or_last(data, rows, keep):
    chosen: dict[tuple[object, object], int] = {}
    for row in rows.to_pylist():
        key = (row["k"], row["s"])
        chosen[key] = chosen.get(key, row["id"]) if keep == "first" else row["id"]
    found = data.drop_duplicates(["k", "s"], keep=keep).to_arrow().to_pylist()
    assert {(row["k"], row["s"]): row["id"] for row in found} == chosen
    assert len(found) == len(chosen)
    by_id = data.rebalance().drop_duplicates(["k", "s"], keep=keep, order_by=col("id") * -1).to_arrow().to_pylist()
    other = data.drop_duplicates(["k", "s"], keep="last" if keep == "first" else "first").to_arrow().to_pylist()
    assert sorted(map(str, by_id)) == sorted(map(str, other))


def test_any_row_of_each_will_do(data, rows):
    listed = {(row["k"], row["s"], row["id"]) for row in rows.to_pylist()}
    for found in (data.drop_duplicates(["k", "s"], keep="any"), data.distinct(["k", "s"])):
        kept = [(row.k, row.s, row.id) for row in found.collect()]
        assert set(kept) <= listed
        assert Counter(row[:2] for row in kept) == Counter({row[:2] for row in listed})
    assert data.drop("id").drop_duplicates().count() == data.drop("id").distinct().count()
    with pytest.raises(PlanError, match="choose one of first, last, any"):
        data.drop_duplicates("k", keep="none")
    with pytest.raises(SchemaError, match="no columns"):
        data.distinct([])


def test_rows_in_order_of_expressions(data):
    found = data.sort([col("id") % 7, -col("id")], descending=[True, False]).to_arrow()
    assert found.column_names == ["k", "f", "s", "id"]
    assert found["id"].to_pylist() == sorted(range(ROWS), key=lambda number: (-(number % 7), -number))
    assert data.top(3, (col("id") - 1000).abs()).select("id").to_arrow()["id"].to_pylist() == [2999, 2998, 2997]


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("operation", ["intersect", "except_"])
def test_rows_of_two_are_matched_as_in_duckdb(environment, rows, operation, counts):
    left, right = rows.select(["k", "f", "s"]), rows.select(["k", "f", "s"]).slice(0, 20)
    right = pa.concat_tables([right, pa.table({"k": [7], "f": [1.5], "s": ["new"]})])
    data, other = environment.from_arrow(left), environment.from_arrow(right)
    with duckdb.connect() as oracle:
        oracle.register("l", left)
        oracle.register("r", right)
        for one, two, names in ((data, other, ("l", "r")), (other, data, ("r", "l"))):
            found = getattr(one, operation)(two.select("s", "k", "f"), all=counts).to_arrow()
            verb = f"{operation.strip('_').upper()}{' ALL' if counts else ''}"
            wanted = oracle.execute(f"FROM {names[0]} {verb} FROM {names[1]}").fetchall()
            # zero of either sign is one value, nobody knows which of them stays
            shown = [tuple(0.0 if value == 0 else value for value in row.values()) for row in found.to_pylist()]
            assert sorted(map(repr, shown)) == sorted(
                repr(tuple(0.0 if value == 0 else value for value in row)) for row in wanted
            )


def test_mistakes_in_set_operations_are_said_in_their_words(environment):
    one = environment.from_arrow(pa.table({"a": [1], "l": [[1]]}))
    for use, said in (
        (lambda: one.intersect(one), "intersect: column 'l' is list"),
        (lambda: one.except_(one.drop("l")), "except_: data set 2 has no l"),
        (lambda: one.except_(5), "except_: expected a DataSet"),
    ):
        with pytest.raises(SchemaError, match=said):
            use()


def test_columns_are_described(data, rows):
    found = {row["column"]: row for row in data.describe().to_arrow().to_pylist()}
    assert list(found) == ["k", "f", "s", "id"]
    assert found["id"] == {
        "column": "id",
        "type": "int64",
        "count": ROWS,
        "nulls": 0,
        "mean": 1499.5,
        "stddev": pytest.approx(866.1697),
        "min": "0",
        "max": "2999",
    }
    assert found["s"]["nulls"] == rows["s"].null_count
    assert (found["s"]["mean"], found["s"]["min"], found["s"]["max"]) == (None, "", "ä" * 20)
    nested = data.select(col("id").alias("n"), col("s").str.encode("utf-8").alias("b")).describe().to_arrow()
    assert nested["min"].to_pylist() == ["0", None]


def test_functions_of_data_sets_stand_in_the_chain(data):
    def of(source, name, least):
        return source.filter(col(name) >= least)

    assert data.pipe(of, "id", least=2990).count() == 10
    assert data.transform(lambda one: one.limit(5), lambda one: one.drop("f")).columns == ["k", "s", "id"]
    assert data.pipe(lambda one: one.columns) == ["k", "f", "s", "id"]
    with pytest.raises(SchemaError, match="returned a int, no DataSet"):
        data.transform(lambda _one: 5)


def test_values_that_are_null_in_a_group_stay_with_their_row(data):
    one = data.drop_duplicates("k", keep="first").group_by("k").agg(n=count(), s=sum_("id"))
    assert all(row.n == 1 for row in one.collect())


def test_columns_are_cast_by_name_by_selector_and_all(environment):
    data = environment.from_arrow(pa.table({"a": ["1", None, "x"], "b": [1, 2, None], "c": [True, False, None]}))
    found = data.cast({"b": "float64", cs.boolean(): int}).to_arrow()
    assert found.schema.types == [pa.string(), pa.float64(), pa.int64()]
    assert found.column("c").to_pylist() == [1, 0, None]
    assert data.cast(str).to_arrow().column("b").to_pylist() == ["1", "2", None]
    assert data.cast({"a": pa.int64()}, strict=False).to_arrow().column("a").to_pylist() == [1, None, None]
    assert data.cast({}) is data
    with pytest.raises(DataError, match="'x'"):
        data.cast({"a": int}).to_arrow()
    with pytest.raises(SchemaError, match="cast: column 'b' has two types"):
        data.cast({"b": int, cs.numeric(): float})
    with pytest.raises(SchemaError, match="no column 'd'"):
        data.cast({"d": int})
