"""Heavy keys that are computed are known from a sample of their source, and their joins are split."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from engine import DataSet, Environment, JoinHint, col, when

ROWS = 60_000
#: 13 of 14 rows have a code whose upper case is EUR; no code itself is that frequent
CODES = ["eur", "Eur", "eUr", "EUR", "euR", "EUr", "eUR", "EuR", "eur", "Eur", "EUR", "euR", "EUr"]
FACTS = pa.table(
    {
        "code": [CODES[row % 14] if row % 14 < 13 else f"c{row % 977}" for row in range(ROWS)],
        "spare": [None if row % 3 else "" for row in range(ROWS)],
        "v": range(ROWS),
    }
)
NAMES = pa.table({"name": ["EUR", *(f"C{number}" for number in range(977))]})

KEYS: dict[str, Callable[[DataSet], DataSet]] = {
    "a function": lambda facts: facts.with_columns(key=col("code").str.upper()),
    "a case over two columns": lambda facts: facts.with_columns(
        key=when(col("spare").is_null() | (col("spare") == "")).then(col("code").str.upper()).otherwise(col("spare"))
    ),
    "in two steps": lambda facts: (
        facts.select("v", col("code").str.lower().alias("half"))
        .filter(col("v") >= 0)
        .select("v", col("half").str.upper().alias("key"))
    ),
    "through a sort and a join": lambda facts: (
        facts.sort("v")
        .join(facts.select(col("v").alias("w")), left_on="v", right_on="w")
        .with_columns(key=col("code").str.upper())
    ),
}


def source(env: Environment, folder: Path, kind: str) -> DataSet:
    match kind:
        case "parquet":
            pq.write_table(FACTS, folder / "facts.parquet")
            return env.read_parquet(folder / "facts.parquet")
        case "csv":
            pacsv.write_csv(FACTS, folder / "facts.csv")
            return env.read_csv(folder / "facts.csv", header=True, schema=FACTS.schema)
        case _:
            return env.from_arrow(FACTS)


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
@pytest.mark.parametrize("key", KEYS)
def test_a_heavy_key_that_is_computed_is_split(tmp_path: Path, kind: str, key: str) -> None:
    with Environment(config={"parallelism.default": 4}) as env:
        facts = KEYS[key](source(env, tmp_path, kind))
        joined = facts.join(
            env.from_arrow(NAMES), left_on="key", right_on="name", hint=JoinHint.REPARTITION_HASH_SECOND
        )
        assert "heavy keys split: key=EUR (9" in joined.explain()


def test_subtasks_share_the_rows_of_a_heavy_key_that_is_computed(tmp_path: Path) -> None:
    config = {"parallelism.default": 4, "execution.batch.adaptive.auto-parallelism.enabled": False}
    with Environment(config=config) as env:
        facts = source(env, tmp_path, "parquet").with_columns(key=col("code").str.upper())
        joined = facts.join(
            env.from_arrow(NAMES), left_on="key", right_on="name", hint=JoinHint.REPARTITION_HASH_SECOND, how="left"
        )
        joined.select("v").write_parquet(tmp_path / "out")
        result = env.execute("computed key")
    (join,) = [vertex for vertex in result.vertices if "left join" in vertex.name]
    rows = sorted(subtask.rows_in for subtask in join.subtasks)
    assert rows[-1] <= 1.3 * rows[1]
    assert sorted(pq.read_table(tmp_path / "out").column("v").to_pylist()) == list(range(ROWS))


def test_what_cannot_be_sampled_leaves_the_plan_as_it_is(tmp_path: Path) -> None:
    with Environment(config={"parallelism.default": 4}) as env:
        facts = source(env, tmp_path, "parquet").with_columns(key=col("code").cast(pa.int64()) + 1)
        ids = env.from_arrow(pa.table({"id": pa.array(range(10), pa.int64())}))
        plan = facts.join(ids, left_on="key", right_on="id", hint=JoinHint.REPARTITION_HASH_SECOND).explain()
        assert "heavy keys" not in plan
        column = source(env, tmp_path, "arrow")
        for _ in range(40):
            column = column.with_columns(code=col("code") + col("code"))
        assert column.join(env.from_arrow(NAMES), left_on="code", right_on="name").explain()
