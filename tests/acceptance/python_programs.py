"""Programs with Python functions, and over CSV and record data sets."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from engine import DataSet, JoinHint, Row, col, count, max_, sum_
from tests.acceptance.program import Inputs, Order, Program

MAPPED = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("upper", pa.string())])
MATCHED = pa.schema([("v", pa.int64()), ("left", pa.int64()), ("right", pa.int64()), ("text", pa.string())])
CSV = pa.schema(
    [
        ("id", pa.int64()),
        ("v", pa.int64()),
        ("k", pa.int64()),
        ("g", pa.int64()),
        ("price", pa.decimal128(18, 2)),
        ("at", pa.timestamp("us")),
        ("text", pa.string()),
    ]
)


def mapped(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return id, three times v, and the text in upper case."""
    threefold = pc.multiply(batch.column("v"), 3)
    return pa.record_batch([batch.column("id"), threefold, pc.utf8_upper(batch.column("text"))], schema=MAPPED)


def functions_over_batches(inputs: Inputs) -> DataSet:
    """A function over batches, a join on what it made, groups, a sort."""
    facts = inputs.facts.select("id", "v", "text").map_batches(mapped, MAPPED)
    joined = facts.join(inputs.others, on="v", how="left", hint=JoinHint.REPARTITION_HASH_SECOND)
    groups = joined.group_by("v").agg(
        n=count(), ids=sum_(col("id")), upper=max_(col("upper")), other=max_(col("other"))
    )
    return groups.sort("upper", descending=True)


FUNCTIONS_OVER_BATCHES = Program(
    functions_over_batches,
    """
    SELECT 3 * f.v AS v, count(*) n, sum(id)::BIGINT ids, max(upper("text")) "upper", max(other) other
    FROM facts f LEFT JOIN others o ON 3 * f.v = o.v GROUP BY 3 * f.v
    """,
    (Order("upper", True),),
    has_functions=True,
)


def matched(left: Iterable[Row], right: Iterable[Row]) -> Iterator[tuple[int, int, int, str]]:
    """Return one row for each group of two inputs."""
    key, counts, text = None, [0, 0], ""
    for side, rows in enumerate((left, right)):
        for row in rows:
            key = row.v
            counts[side] += 1
            text = max(text, row.text)
    yield key, *counts, text


def functions_over_groups(inputs: Inputs) -> DataSet:
    """Groups of two inputs in a Python function, sorted behind."""
    some = inputs.facts.filter(col("id") % 5 == 0).select("v", "text")
    others = inputs.others.filter(col("o") < 250).select("v", col("other").alias("text"))
    return some.co_group(others, "v", matched, MATCHED).sort("text")


FUNCTIONS_OVER_GROUPS = Program(
    functions_over_groups,
    """
    SELECT v, count(*) FILTER (side = 0) "left", count(*) FILTER (side = 1) "right", max(t) "text" FROM (
        SELECT v, "text" t, 0 side FROM facts WHERE id % 5 = 0
        UNION ALL SELECT v, other, 1 FROM others WHERE o < 250) GROUP BY v
    """,
    (Order("text"),),
    has_functions=True,
)


def csv_to_csv(inputs: Inputs) -> DataSet:
    """CSV read, joined, sorted and written."""
    facts = inputs.environment.read_csv(f"{inputs.paths['facts_csv']}/*.csv", schema=CSV, header=True)
    joined = facts.join(inputs.others, on="v", how="left", hint=JoinHint.REPARTITION_HASH_FIRST)
    return joined.sort(["text", "id"])


CSV_TO_CSV = Program(
    csv_to_csv,
    """
    SELECT f.id, f.v, k, g, price, "at", "text", w, o, other FROM facts f LEFT JOIN others ON f.v = others.v
    """,
    (Order("text"), Order("id")),
    writes="csv",
    reads=("facts_csv",),
)


def records_to_records(inputs: Inputs) -> DataSet:
    """A record data set written by one job, read, joined with itself and written by the next."""
    folder = inputs.scratch / "facts"
    inputs.facts.rebalance().write_records(folder)
    inputs.environment.execute("records")
    records = inputs.environment.read_records(folder)
    prices = records.group_by("g").agg(price=sum_(col("price")), text=max_(col("text")))
    return records.drop("price", "text", "ratio").join(prices, on="g", hint=JoinHint.REPARTITION_HASH_FIRST)


RECORDS_TO_RECORDS = Program(
    records_to_records,
    """
    WITH prices AS (SELECT g, sum(price) price, max("text") "text" FROM facts GROUP BY g)
    SELECT id, v, k, g, "at", level, prices.price, prices."text" FROM facts JOIN prices USING (g)
    """,
    writes="records",
)

PROGRAMS = (FUNCTIONS_OVER_BATCHES, FUNCTIONS_OVER_GROUPS, CSV_TO_CSV, RECORDS_TO_RECORDS)
