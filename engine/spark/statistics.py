"""Column statistics of an export: minimum, maximum, nulls, distinct values and heavy keys.

Minimum, maximum, nulls and the distinct estimate ride along with the write (``DataFrame.observe``): no extra pass.
Heavy keys need a group of their own, over a sample of the written Parquet, for columns that could be keys: whole
numbers, strings, dates. A value counts as heavy from 2 % of the rows on.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses
from pyspark.sql import types as T  # noqa: N812

from engine.connectors.records_manifest import HEAVY_KEYS_MAX, HEAVY_SHARE_MIN, RecordsColumn, plain_value

_SAMPLE_ROWS = 200_000

_ORDERED = (T.NumericType, T.StringType, T.DateType, T.TimestampType, T.TimestampNTZType, T.BooleanType)
_KEYS = (T.IntegralType, T.StringType, T.DateType, T.BooleanType)


def observed_metrics(schema: T.StructType) -> list[Column]:
    """Return the aggregates that are observed while the data is written."""
    metrics = [F.count(F.lit(1)).alias("rows")]
    for position, field in enumerate(schema.fields):
        column = F.col(f"`{field.name}`")
        metrics.append(F.count(F.when(column.isNull(), 1)).alias(f"nulls_{position}"))
        if isinstance(field.dataType, _ORDERED):
            metrics.append(F.min(column).alias(f"min_{position}"))
            metrics.append(F.max(column).alias(f"max_{position}"))
        if isinstance(field.dataType, (*_ORDERED, T.BinaryType)):
            metrics.append(F.approx_count_distinct(column).alias(f"distinct_{position}"))
    return metrics


def heavy_keys(data: DataFrame, schema: T.StructType) -> dict[str, tuple[tuple[str, float], ...]]:
    """Return the heavy values of each key column, from one pass over a sample of rows."""
    names = [field.name for field in schema.fields if isinstance(field.dataType, _KEYS)]
    if not names:
        return {}
    row_count = data.count()
    fraction = min(1.0, _SAMPLE_ROWS / max(row_count, 1))
    sample = data.sample(fraction=fraction, seed=1) if fraction < 1.0 else data
    pairs = F.explode(F.array(*[F.struct(F.lit(name).alias("name"), _text(name)) for name in names])).alias("pair")
    counted = sample.select(pairs).groupBy("pair.name", "pair.value").count()
    sample_count = sample.count()
    rows = counted.where(F.col("count") >= max(2.0, HEAVY_SHARE_MIN * sample_count)).collect()
    found: dict[str, list[tuple[str, float]]] = {}
    for row in rows:
        if row["value"] is not None:
            found.setdefault(row["name"], []).append((row["value"], round(row["count"] / sample_count, 4)))
    return {name: tuple(sorted(keys, key=lambda key: -key[1])[:HEAVY_KEYS_MAX]) for name, keys in found.items()}


def _text(name: str) -> Column:
    return F.col(f"`{name}`").cast("string").alias("value")


def manifest_columns(
    schema: T.StructType, observed: dict[str, Any], heavy: dict[str, tuple[tuple[str, float], ...]]
) -> dict[str, RecordsColumn]:
    """Return the manifest's statistics from what was observed."""
    return {
        field.name: RecordsColumn(
            plain_value(observed.get(f"min_{position}")),
            plain_value(observed.get(f"max_{position}")),
            observed.get(f"nulls_{position}"),
            observed.get(f"distinct_{position}"),
            heavy.get(field.name, ()),
        )
        for position, field in enumerate(schema.fields)
    }
