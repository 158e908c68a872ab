"""Lists, structs and maps as payload through every operator: what comes out is what plain Python says."""

import random

import pyarrow as pa
import pytest

from engine import Environment, JobExecutionError, NotYetSupportedError, SchemaError, col, count, max_, row_number, sum_

ROWS = 600
STRUCT = pa.struct([("p", pa.int32()), ("q", pa.list_(pa.string()))])
SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("id", pa.int64()),
        ("l", pa.list_(pa.int64())),
        ("s", STRUCT),
        ("m", pa.map_(pa.string(), pa.float64())),
        ("d", pa.list_(pa.list_(STRUCT))),
        ("f", pa.list_(pa.float32(), 2)),
        ("b", pa.large_list(pa.large_string())),
    ]
)
NESTED = ["l", "s", "m", "d", "f", "b"]


def some(rng, depth=0):
    """A struct, or null."""
    if rng.random() < 0.2:
        return None
    return {"p": rng.choice([None, depth, -5]), "q": rng.choice([None, [], [None, "", "ä" * rng.randrange(40)]])}


@pytest.fixture(scope="module")
def rows():
    rng = random.Random(4)
    listed = [
        {
            "k": rng.choice([None, *range(20)]),
            "id": number,
            "l": rng.choice([None, [], [None, number], list(range(rng.randrange(30)))]),
            "s": some(rng),
            "m": rng.choice([None, [], [("a", 1.5), ("b", None)], [(str(number), 0.0)]]),
            "d": rng.choice([None, [], [None, [], [some(rng, 1), some(rng, 2)]]]),
            "f": rng.choice([None, [0.5, None]]),
            "b": rng.choice([None, [None, "x" * rng.randrange(100)]]),
        }
        for number in range(ROWS)
    ]
    return pa.Table.from_pylist(listed, SCHEMA)


@pytest.fixture(
    scope="module",
    params=[
        {"parallelism.default": 1},
        {"parallelism.default": 3, "taskmanager.memory.managed.size": "6mb", "debug.force-spill": True},
    ],
)
def data(request, rows):
    with Environment(config={**request.param, "python.execution-mode": "thread"}) as environment:
        yield environment.from_arrow(rows)


def by_id(table, rows, names=NESTED):
    """The rows of a table by id, which must be those of the source, beside what the source has for them."""
    found = sorted(table.select(["id", *names]).to_pylist(), key=lambda row: row["id"])
    wanted = rows.select(["id", *names]).to_pylist()
    return found, [wanted[row["id"]] for row in found]


def test_exchanges_and_sorts_carry_it(data, rows):
    for made in (data.rebalance(), data.shuffle(), data.filter(col("k").is_not_null()).key_by("k")):
        found, wanted = by_id(made.to_arrow(), rows)
        assert found == wanted
    ordered = data.rebalance().sort("id", descending=True).to_arrow()
    assert ordered.schema == SCHEMA
    assert ordered["id"].to_pylist() == list(range(ROWS - 1, -1, -1))
    assert ordered["d"].to_pylist() == rows["d"].to_pylist()[::-1]
    assert data.top(5, "id").to_arrow()["m"].to_pylist() == rows["m"].to_pylist()[::-1][:5]


@pytest.mark.parametrize("hint", ["BROADCAST_HASH_SECOND", "REPARTITION_HASH_SECOND", "REPARTITION_SORT_MERGE"])
def test_joins_carry_it_on_both_sides(data, rows, hint):
    other = data.rename({name: f"{name}2" for name in SCHEMA.names})
    how = "inner" if hint.startswith("BROADCAST") else "full"
    joined = data.join(other.filter(col("id2") % 3 == 0), left_on="id", right_on="id2", how=how, hint=hint).to_arrow()
    assert joined.num_rows == (ROWS // 3 if how == "inner" else ROWS)
    found, wanted = by_id(joined, rows)
    assert found == wanted
    second = joined.filter(pa.compute.is_valid(joined["id2"]))
    for name in NESTED:
        assert second[f"{name}2"].to_pylist() == second[name].to_pylist()


def test_windows_limits_unions_and_rows_of_groups_carry_it(data, rows):
    found, wanted = by_id(data.with_columns(n=row_number().over("k", order_by="id")).to_arrow(), rows)
    assert found == wanted
    found, wanted = by_id(data.drop_duplicates("k", order_by="id").to_arrow(), rows)
    assert found == wanted
    assert len(found) == 21
    both = data.limit(10).union(data.limit(10)).to_arrow()
    assert both.num_rows == 20
    assert both["s"].type == STRUCT
    counted = (
        data.filter(col("l").list.length() > 3).group_by("k").agg(n=count(), s=sum_("id"), m=max_(col("s").field("p")))
    )
    assert sum(row.n for row in counted.collect()) == sum(len(one or []) > 3 for one in rows["l"].to_pylist())


def test_python_functions_take_and_give_it(data, rows):
    made = data.map(
        lambda row: (row.id, row.l, row.s, row.m, row.d, row.f, row.b),
        pa.schema([SCHEMA.field(n) for n in ["id", *NESTED]]),
    )
    found, wanted = by_id(made.to_arrow(), rows)
    assert found == wanted
    grouped = data.group_by("k").reduce(
        lambda each: ((row.id, row.d) for row in each), pa.schema([SCHEMA.field("id"), SCHEMA.field("d")])
    )
    found, wanted = by_id(grouped.to_arrow(), rows, ["d"])
    assert found == wanted


@pytest.mark.parametrize("kind", ["parquet", "records"])
def test_files_hold_it(data, rows, kind, tmp_path):
    environment = data._environment
    getattr(data, f"write_{kind}")(tmp_path / "out")
    environment.execute()
    read = (
        environment.read_parquet(tmp_path / "out") if kind == "parquet" else environment.read_records(tmp_path / "out")
    )
    found, wanted = by_id(read.to_arrow(), rows)
    assert found == wanted
    assert read.select("s", "id").filter(col("id") == 3).to_arrow()["s"].to_pylist() == [rows["s"][3].as_py()]


def test_exploded_twice_and_put_together_again(data, rows):
    flat = data.explode("d").explode("d", keep_empty=False).select("id", col("d").field("q").alias("inner"))
    wanted = [
        (row["id"], None if struct is None else struct["q"])
        for row in rows.to_pylist()
        for inner in row["d"] or []
        for struct in inner or []
    ]
    found = [(row["id"], row["inner"]) for row in flat.to_arrow().to_pylist()]
    assert sorted(found, key=repr) == sorted(wanted, key=repr)


@pytest.mark.parametrize("name", NESTED)
def test_as_a_key_it_is_refused_by_name(data, name):
    for use in (
        lambda: data.sort(name),
        lambda: data.group_by(name),
        lambda: data.select(name).distinct(),
        lambda: data.join(data.select(name), on=name),
        lambda: data.key_by(name),
        lambda: data.with_columns(n=row_number().over(name)),
        lambda: data.select(name).intersect(data.select(name)),
        lambda: data.group_by("k").agg(m=max_(name)),
    ):
        with pytest.raises((SchemaError, NotYetSupportedError), match=name):
            use()


def test_several_lists_are_opened_side_by_side():
    table = pa.table({"k": [1, 2, 3], "a": [[1, 2], [], None], "z": ["x", "y", "w"], "b": [["p", None], None, []]})
    with Environment(config={"parallelism.default": 2}) as environment:
        data = environment.from_arrow(table)
        opened = data.explode(["a", "b"], position="i")
        assert opened.columns == ["k", "a", "z", "b", "i"]
        found = sorted(opened.to_arrow().to_pylist(), key=lambda row: (row["k"], row["i"] or 0))
        assert [tuple(row.values()) for row in found] == [
            (1, 1, "x", "p", 0),
            (1, 2, "x", None, 1),
            (2, None, "y", None, None),
            (3, None, "w", None, None),
        ]
        assert data.explode(["b", "a"], keep_empty=False).count() == 2
        assert data.explode(["a"]).columns == data.columns
        with pytest.raises(JobExecutionError, match="the lists of a, z have other lengths in a row"):
            environment.from_arrow(pa.table({"a": [[1]], "z": [["x", "y"]]})).explode(["a", "z"]).to_arrow()
        with pytest.raises(SchemaError, match="name columns, each once"):
            data.explode(["a", "a"])
