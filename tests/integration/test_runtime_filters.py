"""Sources that leave out what a join would drop: the same rows come out, and fewer are read."""

import functools
import itertools
import random
from datetime import date, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from engine import JoinHint, col
from engine.config.options import EXECUTION_MODE
from engine.fault_points import InjectedFaultError
from engine.operators import drivers, hash_join_driver
from engine.operators.batch_task import BatchTask
from engine.operators.hash_join_driver import HashJoinDriver
from engine.operators.stored_filters import KeyFilters
from engine.optimizer import runtime_filter_planning, stored_filter_planning
from tests.integration.row_oracle import assert_same_rows, rows_of

GROUP_ROWS = 500
TYPES = {
    "int64": (pa.int64(), lambda chance, top: chance.randrange(top)),
    "far": (pa.int64(), lambda chance, top: chance.randrange(top) * (1 << 45)),
    "int32": (pa.int32(), lambda chance, top: chance.randrange(top) - 100),
    "date": (pa.date32(), lambda chance, top: date(1970, 1, 1) + timedelta(days=chance.randrange(top))),
    "decimal": (pa.decimal128(12, 3), lambda chance, top: Decimal(chance.randrange(top)) / 4),
    "text": (pa.string(), lambda chance, top: f"key {chance.randrange(top)}"),
    "double": (pa.float64(), lambda chance, top: chance.choice([0.0, -0.0, float("nan"), chance.randrange(top) / 2])),
}
ENVIRONMENTS = {
    "one": {"parallelism.default": 1},
    "two": {},
    "two, batch": {"execution.mode": "BATCH"},
    "two, spilling": {"debug.force-spill": True},
}


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def env(request, open_environment):
    return open_environment(**ENVIRONMENTS[request.param])


@pytest.fixture(autouse=True)
def filters_always_pay(monkeypatch):
    monkeypatch.setattr(runtime_filter_planning, "SOURCE_ROWS_MIN", 0)
    monkeypatch.setattr(runtime_filter_planning, "KEPT_SHARE_MAX", 1.0)


@functools.cache
def tables(kind):
    """Rows to probe with, and few to build of."""
    data_type, draw = TYPES[kind]
    chance = random.Random(11)

    def keys(rows, top):
        return pa.array([None if chance.random() < 0.1 else draw(chance, top) for _ in range(rows)], data_type)

    facts = pa.table({"k": keys(4000, 1000), "n": range(4000), "t": ["x" * (row % 50) for row in range(4000)]})
    return facts, pa.table({"d": keys(120, 300), "m": range(120)})


def written(folder, kind):
    facts, small = tables(kind)
    pq.write_table(facts, folder / "facts.parquet", row_group_size=GROUP_ROWS)
    pq.write_table(small, folder / "small.parquet")


def key_of(value):
    """A key as it compares in a join."""
    return "NaN" if value != value else value


def expected_rows(kind, how, is_right):
    """The facts joined with the small table; ``is_right``: that one with the facts."""
    left, right = (list(zip(*(c.to_pylist() for c in table.columns), strict=True)) for table in tables(kind))
    if is_right:
        left, right = right, left
    same = {}
    for row in right:
        if row[0] is not None:
            same.setdefault(key_of(row[0]), []).append(row)
    found = []
    for row in left:
        matches = [] if row[0] is None else same.get(key_of(row[0]), [])
        if how in ("semi", "anti"):
            found += [row] * (bool(matches) == (how == "semi"))
        else:
            found += [(*row, *match) for match in matches]
            if how == "left" and not matches:
                found.append((*row, *[None] * len(right[0])))
    return found


def joined(env, folder, how, hint, is_right=False):
    facts = env.read_parquet(folder / "facts.parquet").filter(col("n") >= 0)
    small = env.read_parquet(folder / "small.parquet")
    if is_right:
        return small.join(facts, left_on="d", right_on="k", how=how, hint=hint)
    return facts.join(small, left_on="k", right_on="d", how=how, hint=hint)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    ("how", "hint"),
    [("inner", JoinHint.BROADCAST_HASH_SECOND), ("semi", JoinHint.REPARTITION_HASH_SECOND)],
)
def test_rows_are_those_of_the_join(env, tmp_path, kind, how, hint):
    written(tmp_path, kind)
    data = joined(env, tmp_path, how, hint)
    is_stored = env.configuration.get(EXECUTION_MODE) == "BATCH" and hint is JoinHint.REPARTITION_HASH_SECOND
    assert ("run-time filter on k, stored by [" if is_stored else "run-time filter on k from join [") in data.explain()
    assert_same_rows(rows_of(data.to_arrow()), expected_rows(kind, how, is_right=False))


@pytest.mark.parametrize("kind", ["int64", "double"])
@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
def test_rows_of_the_right_side_are_left_out_where_they_only_answer_for_the_left(env, tmp_path, kind, how):
    written(tmp_path, kind)
    data = joined(env, tmp_path, how, JoinHint.REPARTITION_HASH_FIRST, is_right=True)
    assert_same_rows(rows_of(data.to_arrow()), expected_rows(kind, how, is_right=True))


@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
@pytest.mark.parametrize("hint", [JoinHint.BROADCAST_HASH_SECOND, JoinHint.REPARTITION_HASH_SECOND])
def test_a_join_probes_with_the_rows_of_all_branches_of_a_union(env, tmp_path, how, hint):
    written(tmp_path, "int64")
    first, second, third = (env.read_parquet(tmp_path / "facts.parquet") for _ in range(3))
    changed = third.filter(col("n") >= 3000).select((col("k") + 0).alias("k"), "n", "t")
    parts = [first.filter(col("n") < 1000), second.filter((col("n") >= 1000) & (col("n") < 3000)), changed]
    small = env.read_parquet(tmp_path / "small.parquet")
    data = parts[0].union(*parts[1:]).join(small, left_on="k", right_on="d", how=how, hint=hint)
    is_batch = env.configuration.get(EXECUTION_MODE) == "BATCH"
    assert ("union" in data.explain()) is is_batch
    assert data.explain().count("run-time filter on k") == (2 if how in ("inner", "semi") and not is_batch else 0)
    assert_same_rows(rows_of(data.to_arrow()), expected_rows("int64", how, is_right=False))


@pytest.mark.parametrize("hint", [JoinHint.BROADCAST_HASH_SECOND, JoinHint.REPARTITION_HASH_SECOND])
def test_a_join_passes_filters_on_to_all_branches_of_a_union(env, tmp_path, hint):
    written(tmp_path, "int64")
    parts = [
        env.read_parquet(tmp_path / "facts.parquet").filter(wanted) for wanted in (col("n") < 1500, col("n") >= 1500)
    ]
    numbers = env.from_arrow(pa.table({"e": range(0, 4000, 3)}))
    first = parts[0].union(parts[1]).join(numbers, left_on="n", right_on="e", hint=JoinHint.BROADCAST_HASH_SECOND)
    data = first.join(env.read_parquet(tmp_path / "small.parquet"), left_on="k", right_on="d", hint=hint)
    is_batch = env.configuration.get(EXECUTION_MODE) == "BATCH"
    assert data.explain().count("run-time filter on k") == (0 if is_batch else 2)
    expected = [
        (*row[:3], row[1], *row[3:]) for row in expected_rows("int64", "inner", is_right=False) if row[1] % 3 == 0
    ]
    assert_same_rows(rows_of(data.to_arrow()), expected)


@pytest.mark.parametrize("source", ["from_arrow", "read_csv"])
@pytest.mark.parametrize("hint", [JoinHint.BROADCAST_HASH_SECOND, JoinHint.REPARTITION_HASH_SECOND])
def test_sources_of_other_formats_are_filtered_behind_the_reader(open_environment, tmp_path, source, hint):
    env = open_environment(**ENVIRONMENTS["two"])
    facts, small = tables("int64")
    pyarrow.csv.write_csv(facts, tmp_path / "facts.csv")
    read = (
        env.from_arrow(facts)
        if source == "from_arrow"
        else env.read_csv(tmp_path / "facts.csv", schema=facts.schema, header=True)
    )
    data = read.join(env.from_arrow(small), left_on="k", right_on="d", hint=hint)
    assert "rows at run time, for joins or a top-n" in data.explain(analyze=True)
    assert_same_rows(rows_of(data.to_arrow()), expected_rows("int64", "inner", is_right=False))


@pytest.mark.parametrize("how", ["left", "anti"])
@pytest.mark.parametrize("hint", [JoinHint.BROADCAST_HASH_SECOND, JoinHint.REPARTITION_HASH_SECOND])
def test_rows_that_come_out_without_a_match_are_not_left_out(env, tmp_path, how, hint):
    written(tmp_path, "int64")
    data = joined(env, tmp_path, how, hint)
    assert "run-time filter" not in data.explain()
    assert_same_rows(rows_of(data.to_arrow()), expected_rows("int64", how, is_right=False))


def test_a_filter_reaches_the_source_behind_another_joins_probe_side(env, tmp_path):
    written(tmp_path, "int64")
    facts, small = tables("int64")
    by_number = env.from_arrow(pa.table({"e": range(0, 4000, 3)}))
    first = env.read_parquet(tmp_path / "facts.parquet").join(
        by_number, left_on="n", right_on="e", hint=JoinHint.BROADCAST_HASH_SECOND
    )
    data = first.join(
        env.read_parquet(tmp_path / "small.parquet"), left_on="k", right_on="d", hint=JoinHint.REPARTITION_HASH_SECOND
    )
    text = data.explain()
    assert "run-time filter on n" in text
    assert "run-time filter on k" in text
    table = data.to_arrow()
    found = sorted(zip(*(table[name].to_pylist() for name in ("n", "m")), strict=True))
    keys = {}
    for key, number in zip(small["d"].to_pylist(), small["m"].to_pylist(), strict=True):
        keys.setdefault(key, []).append(number)
    assert found == sorted(
        (row, number)
        for row, key in enumerate(facts["k"].to_pylist())
        if row % 3 == 0 and key is not None
        for number in keys.get(key, [])
    )


@pytest.mark.parametrize("hint", [JoinHint.BROADCAST_HASH_SECOND, JoinHint.REPARTITION_HASH_SECOND])
def test_joins_pass_filters_of_others_on_to_the_source(env, tmp_path, hint):
    rows = range(6000)
    facts = pa.table({"a": [row % 10 for row in rows], "b": [row % 7 for row in rows], "c": rows, "n": rows})
    pq.write_table(facts, tmp_path / "facts.parquet", row_group_size=GROUP_ROWS)
    data = env.read_parquet(tmp_path / "facts.parquet")
    kept = {"a": range(0, 10, 2), "b": range(3), "c": range(1500, 2600)}
    for name, keys in kept.items():
        data = data.join(env.from_arrow(pa.table({f"of_{name}": keys})), left_on=name, right_on=f"of_{name}", hint=hint)
    text = data.explain()
    assert all(f"run-time filter on {name}" in text for name in kept)
    found = data.to_arrow()["n"].to_pylist()
    assert sorted(found) == [row for row in kept["c"] if row % 10 in kept["a"] and row % 7 in kept["b"]]


@pytest.mark.parametrize("how", ["inner", "semi"])
@pytest.mark.parametrize("place", ["make_filters", "_probe_with"])
def test_another_attempt_filters_by_its_own_build_side(open_environment, tmp_path, monkeypatch, how, place):
    env = open_environment(
        **{
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": 3,
            "restart-strategy.fixed-delay.delay": "10 ms",
        }
    )
    written(tmp_path, "int64")
    owner = hash_join_driver if place == "make_filters" else HashJoinDriver
    run, calls = getattr(owner, place), itertools.count()

    def fails_once(*arguments):
        if next(calls) == 1:
            raise InjectedFaultError("once")
        return run(*arguments)

    monkeypatch.setattr(owner, place, fails_once)
    data = joined(env, tmp_path, how, JoinHint.REPARTITION_HASH_SECOND)
    assert_same_rows(rows_of(data.to_arrow()), expected_rows("int64", how, is_right=False))
    assert next(calls) > 3


@pytest.mark.parametrize("place", [(KeyFilters, "finish"), (drivers, "read_stored_filters"), (BatchTask, "_close")])
def test_another_attempt_makes_and_reads_stored_filters_anew(open_environment, tmp_path, monkeypatch, place):
    restarts = {"type": "fixed-delay", "fixed-delay.attempts": 30, "fixed-delay.delay": "10 ms"}
    env = open_environment(
        **ENVIRONMENTS["two, batch"] | {f"restart-strategy.{key}": value for key, value in restarts.items()}
    )
    written(tmp_path, "int64")
    owner, name = place
    run, calls = getattr(owner, name), itertools.count()

    def fails_at_first(*arguments):
        result = run(*arguments)
        if next(calls) in (0, 2):
            raise InjectedFaultError("now and then")
        return result

    monkeypatch.setattr(owner, name, fails_at_first)
    data = joined(env, tmp_path, "inner", JoinHint.REPARTITION_HASH_SECOND)
    assert_same_rows(rows_of(data.to_arrow()), expected_rows("int64", "inner", is_right=False))
    assert next(calls) > 1


@pytest.mark.parametrize("hint", [JoinHint.BROADCAST_HASH_SECOND, JoinHint.REPARTITION_HASH_SECOND])
def test_each_of_several_keys_has_a_filter(env, tmp_path, hint):
    facts = pa.table({"a": [row % 100 for row in range(6000)], "b": [f"b {row % 70}" for row in range(6000)]})
    pq.write_table(
        facts.append_column("n", pa.array(range(6000))), tmp_path / "facts.parquet", row_group_size=GROUP_ROWS
    )
    small = pa.table({"c": pa.array([1, 2, None, 7]), "d": ["b 1", None, "b 3", "b 7"]})
    data = env.read_parquet(tmp_path / "facts.parquet").join(
        env.from_arrow(small), left_on=["a", "b"], right_on=["c", "d"], hint=hint
    )
    text = data.explain()
    assert "run-time filter on a" in text
    assert "run-time filter on b" in text
    found = data.to_arrow()["n"].to_pylist()
    assert sorted(found) == [row for row in range(6000) if (row % 100, row % 70) in {(1, 1), (7, 7)}]


def test_a_build_side_of_more_rows_than_are_worth_it_has_no_stored_filter(open_environment, tmp_path, monkeypatch):
    env = open_environment(**ENVIRONMENTS["two, batch"])
    written(tmp_path, "int64")
    monkeypatch.setattr(stored_filter_planning, "rows_max_of", lambda *_: 119)
    data = joined(env, tmp_path, "inner", JoinHint.REPARTITION_HASH_SECOND)
    assert "if none of its subtasks has more than 119 rows" in data.explain()
    assert "rows at run time" not in data.explain(analyze=True)
    assert_same_rows(rows_of(data.to_arrow()), expected_rows("int64", "inner", is_right=False))


@pytest.mark.parametrize("hint", [JoinHint.BROADCAST_HASH_SECOND, JoinHint.REPARTITION_HASH_SECOND])
def test_explain_says_how_many_rows_were_left_out(env, tmp_path, hint):
    written(tmp_path, "int64")
    facts, small = tables("int64")
    data = joined(env, tmp_path, "inner", hint)
    keys = set(small["d"].to_pylist()) - {None}
    left_out = sum(key not in keys for key in facts["k"].to_pylist())
    expected = f"left out {left_out:_} rows at run time, for joins or a top-n".replace("_", " ")
    assert expected in data.explain(analyze=True)


@pytest.mark.parametrize("kind", ["int64", "text", "decimal", "date"])
def test_row_groups_without_such_keys_are_not_read(open_environment, tmp_path, kind):
    env = open_environment(**ENVIRONMENTS["one"])
    _, draw = TYPES[kind]
    keys = sorted({draw(random.Random(seed), 1000) for seed in range(900)})
    pq.write_table(
        pa.table({"k": pa.array(keys, TYPES[kind][0]), "n": range(len(keys))}),
        tmp_path / "facts.parquet",
        row_group_size=50,
    )
    pq.write_table(pa.table({"d": pa.array(keys[60:63], TYPES[kind][0])}), tmp_path / "small.parquet")
    data = joined(env, tmp_path, "inner", JoinHint.BROADCAST_HASH_SECOND)
    assert data.to_arrow().num_rows == 3
    groups = -(-len(keys) // 50)
    assert f"left out {groups - 1} row groups" in data.explain(analyze=True)


def test_without_the_option_all_rows_are_read(open_environment, tmp_path):
    env = open_environment(**{"table.optimizer.runtime-filter.enabled": False})
    written(tmp_path, "int64")
    data = joined(env, tmp_path, "inner", JoinHint.BROADCAST_HASH_SECOND)
    assert "run-time filter" not in data.explain() + data.explain(analyze=True)
