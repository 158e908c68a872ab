"""Types and settings with which Spark writes files that the engine reads back with equal values.

    BOOLEAN  BYTE SHORT INT LONG  FLOAT DOUBLE  DECIMAL   as they are, decimals of all widths
    STRING CHAR VARCHAR  BINARY                           strings of any collation are compared by their bytes
    DATE  TIME                                            days; microseconds
    TIMESTAMP                                             timestamp[us, tz=UTC]
    TIMESTAMP_NTZ                                         timestamp[us]
    ARRAY  MAP  STRUCT                                    of these, nested as deep as they are

Everything else is refused before anything is written, with advice what to convert it to: Parquet has no type for it
(intervals, VOID), or it would come back as its inner representation (VARIANT, user defined types, geometries).

Held by: tests/spark/test_exported_types.py
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - the usual name

from engine.errors import SchemaError
from engine.spark.column_names import column_of
from engine.spark.session_settings import with_settings

_PLAIN: Final = (
    *(T.BooleanType, T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType, T.DecimalType),
    *(T.StringType, T.CharType, T.VarcharType, T.BinaryType, T.DateType, T.TimestampType, T.TimestampNTZType),
    *([T.TimeType] if hasattr(T, "TimeType") else []),
)
#: advice for columns of refused types, by the type's name in Spark
_ADVICE: Final = {
    "NullType": "give it a type, such as CAST({0} AS STRING), or drop it",
    "VariantType": "export its text, to_json({0}), or a part of it, variant_get({0}, '$.a', 'INT')",
    "YearMonthIntervalType": "export its months, CAST(CAST({0} AS INTERVAL MONTH) AS INT)",
    "DayTimeIntervalType": "export its seconds, CAST(CAST({0} AS INTERVAL SECOND) AS DECIMAL(18, 6))",
    "CalendarIntervalType": "export its text, CAST({0} AS STRING)",
    "GeometryType": "export its bytes, ST_AsBinary({0})",
    "GeographyType": "export its bytes, ST_AsBinary({0})",
}

#: settings that decide the encoding of values in a file; a session's own ones are for other readers
_FILE_SETTINGS: Final = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
}
#: rule of Spark's that drops casts which only make a part nullable
_NULLABLE_BY_CAST: Final = "org.apache.spark.sql.catalyst.optimizer.SimplifyCasts"
_EXCLUDED_RULES: Final = "spark.sql.optimizer.excludedRules"
#: setting with which columns whose names differ by case are two
BY_CASE: Final = {"spark.sql.caseSensitive": "true"}
#: setting with which Parquet holds TIME; it is off by default from Spark 4.3
_WITH_TIMES: Final = {"spark.sql.timeType.enabled": "true"}
#: lock: within a process, one export at a time changes a session's settings
_settings_lock = threading.RLock()


def check_types(schema: T.StructType) -> None:
    """Raise SchemaError that names the first column that cannot be exported, and what to do about it."""
    if not schema.fields:
        raise SchemaError(
            "export: the rows have no columns, and nothing would be left of them; add one, such as lit(1)"
        )
    double = _double(schema)
    if double is not None:
        raise SchemaError(f"export: there are two columns {double!r}; rename one of them")
    for field in schema.fields:
        structs = [each for each in _parts(field.dataType) if isinstance(each, T.StructType)]
        double = next(filter(None, map(_double, structs)), None)
        if double is not None:
            raise SchemaError(
                f"export: column {field.name!r} has two fields {double!r} in a struct; rename one of them"
            )
        found = _refused(field.dataType)
        if found is None:
            continue
        kind = type(found).__name__
        advice = _ADVICE.get(kind, "export the columns that it is made of, or drop it")
        inside = "" if found is field.dataType else f" in {field.dataType.simpleString()}"
        name = f"`{field.name}`" if found is field.dataType else "x"
        raise SchemaError(
            f"export: column {field.name!r} has the type {found.simpleString()}{inside}, which a record data set "
            f"cannot hold; {advice.format(name)}"
        )


def _double(struct: T.StructType) -> str | None:
    """Return a name that two fields have."""
    return next((name for place, name in enumerate(struct.names) if name in struct.names[:place]), None)


def _parts(data_type: T.DataType) -> Iterator[T.DataType]:
    """Yield a type and those that it is made of."""
    yield data_type
    if isinstance(data_type, T.StructType):
        for field in data_type.fields:
            yield from _parts(field.dataType)
    elif isinstance(data_type, T.ArrayType):
        yield from _parts(data_type.elementType)
    elif isinstance(data_type, T.MapType):
        yield from _parts(data_type.keyType)
        yield from _parts(data_type.valueType)


def _refused(data_type: T.DataType) -> T.DataType | None:
    """Return the type, or the one inside it, that cannot be exported."""
    if isinstance(data_type, T.UserDefinedType):
        return data_type
    if isinstance(data_type, T.ArrayType):
        return _refused(data_type.elementType)
    if isinstance(data_type, T.MapType):
        return _refused(data_type.keyType) or _refused(data_type.valueType)
    if isinstance(data_type, T.StructType):
        if not data_type.fields:
            return data_type
        return next(filter(None, (_refused(field.dataType) for field in data_type.fields)), None)
    return None if isinstance(data_type, _PLAIN) else data_type


@contextmanager
def nullable_parts(data: DataFrame) -> Iterator[DataFrame]:
    """Give the data with types whose parts may be null, as long as it is computed: so rows of others can be added."""
    kinds = {field.name: _nullable(field.dataType) for field in data.schema.fields}
    if all(kinds[field.name] == field.dataType for field in data.schema.fields):
        yield data
        return
    others = data.sparkSession.conf.get(_EXCLUDED_RULES, None)
    rules = f"{others},{_NULLABLE_BY_CAST}" if others else _NULLABLE_BY_CAST
    with _settings(data.sparkSession, {_EXCLUDED_RULES: rules}):
        yield data.select(*(column_of(name).cast(kind).alias(name) for name, kind in kinds.items()))


def _nullable(data_type: T.DataType) -> T.DataType:
    if isinstance(data_type, T.ArrayType):
        return T.ArrayType(_nullable(data_type.elementType))
    if isinstance(data_type, T.MapType):
        return T.MapType(_nullable(data_type.keyType), _nullable(data_type.valueType))
    if isinstance(data_type, T.StructType):
        return T.StructType([T.StructField(each.name, _nullable(each.dataType)) for each in data_type.fields])
    return data_type


@contextmanager
def file_settings(spark: SparkSession) -> Iterator[None]:
    """Set a session to write Parquet as the engine reads it, and restore its settings.

    Whatever other threads write as Parquet in the session at the same time is written with these settings, too.
    """
    with _settings(spark, _FILE_SETTINGS):
        yield


@contextmanager
def column_settings(spark: SparkSession, schema: T.StructType) -> Iterator[None]:
    """Set a session for columns that need it: names that differ by case, times of day."""
    needed: dict[str, str] = {}
    if len({name.lower() for name in schema.names}) < len(schema.names):
        needed |= BY_CASE
    if any(part.typeName() == "time" for part in _parts(schema)):
        needed |= _WITH_TIMES
    with _settings(spark, needed) if needed else nullcontext():
        yield


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    with _settings_lock, with_settings(spark, settings):
        yield
