"""The words that types allow are those that calls take."""

from typing import get_args

import pyarrow as pa
import pytest

from engine import Environment, choices
from engine.api.executor import TARGETS
from engine.api.join_arguments import join_type
from engine.api.join_checks import _FORMS, _SPELLINGS
from engine.api.row_calls import _KEEP
from engine.api.shapes import aggregate_function
from engine.api.time_groups import _CLOSED
from engine.column_expressions.expressions import col
from engine.column_expressions.udfs import KINDS
from engine.column_expressions.windows import _EXCLUDED, rank
from engine.connectors.orc_writer import _CODECS as ORC_CODECS
from engine.csv.options import ON_BAD_ROW, RAGGED_ROWS
from engine.csv.style import _MARKS, QUOTING
from engine.databases.written_table import MODES as DATABASE_MODES
from engine.dialects.translation import DIALECTS
from engine.errors import EngineError
from engine.expressions.calendar_days import ROLLS
from engine.expressions.calendar_units import DIFF_UNITS, PER_SECOND
from engine.expressions.digest_functions import _ENCODINGS
from engine.files.compression import CODECS, PLAIN
from engine.functions.batch_formats import FORMATS
from engine.graph.said_operators import AsofDirection, JoinHint
from engine.outputs.sink_options import MODES
from engine.parquet.writer import _CODECS as PARQUET_CODECS


def test_each_join_type_of_the_types_is_one_of_the_calls():
    kinds = {join_type(how) for how in get_args(choices.JoinHow)}
    assert {kind.value for kind in kinds} == {"inner", "left", "right", "full", "semi", "anti", "cross"}


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        (choices.AsofDirection, [each.value for each in AsofDirection]),
        (choices.BatchFormat, FORMATS),
        (choices.BusinessDayRoll, ROLLS),
        (choices.CsvQuoting, QUOTING),
        (choices.DatabaseMode, DATABASE_MODES),
        (choices.DecimalMark, _MARKS),
        (choices.DiffUnit, [*DIFF_UNITS, *(unit.removesuffix("s") for unit in DIFF_UNITS)]),
        (choices.FrameExclude, _EXCLUDED),
        (choices.GroupFormat, ["rows", *FORMATS]),
        (choices.JoinHintName, list(JoinHint)),
        (choices.JoinValidate, [*_FORMS, *_SPELLINGS]),
        (choices.KeepRow, _KEEP),
        (choices.OnBadRow, ON_BAD_ROW),
        (choices.OrcCompression, ORC_CODECS),
        (choices.ParquetCompression, PARQUET_CODECS),
        (choices.RaggedRows, RAGGED_ROWS),
        (choices.SqlDialect, DIALECTS),
        (choices.Target, TARGETS),
        (choices.TextCompression, [*CODECS, PLAIN]),
        (choices.TextEncoding, _ENCODINGS),
        (choices.TimeUnit, PER_SECOND),
        (choices.UdfKind, KINDS),
        (choices.WindowEnds, _CLOSED),
        (choices.WriteMode, MODES),
    ],
)
def test_words_are_those_that_are_checked(words, taken):
    assert set(get_args(words)) == set(taken)


def test_words_that_are_checked_where_they_are_used_are_taken_and_others_are_not(env):
    data = env.from_arrow(pa.table({"x": ["a"], "t": pa.array([0], pa.timestamp("s")), "n": [1]}))
    calls = {
        choices.IpcCompression: lambda word: data.write_ipc(f"never-{word}", compression=word),
        choices.NormalForm: lambda word: data.select(col("x").str.normalize(word)).schema,
        choices.PivotAggregate: aggregate_function,
        choices.RankMethod: rank,
        choices.SequenceEnds: lambda word: env.sequence(1, 3, closed=word),
        choices.WindowLabel: lambda word: data.group_by_dynamic("t", every="1 hour", label=word),
    }
    for words, call in calls.items():
        for word in get_args(words):
            call(word)
        with pytest.raises(EngineError, match="none-of-them"):
            call("none-of-them")


@pytest.mark.parametrize("name", ["replaced", "aggregated", "Final", "corr", "__name__", "sum__"])
def test_a_pivot_takes_aggregates_of_one_column_alone(name):
    with pytest.raises(EngineError, match="choose one of sum, count"):
        aggregate_function(name)


@pytest.mark.integration
def test_a_pivot_takes_each_aggregate_by_its_name():
    rows = pa.table({"shop": [1, 1], "day": ["mon", "mon"], "sold": [5, 6], "name": ["a", "b"]})
    columns = {"any": "truth", "all": "truth", "count_if": "truth", "string_agg": "name"}
    with Environment({"parallelism.default": 1}) as env:
        data = env.from_arrow(rows).with_columns(truth=col("sold") > 5)
        found = {}
        for name in get_args(choices.PivotAggregate):
            pivot = data.pivot("day", columns.get(name, "sold"), index="shop", agg=name, columns=["mon"])
            found[name] = pivot.collect()[0].mon
    assert (found["sum"], found["median"], found["any"], found["all"], found["count_if"]) == (11, 5.5, True, False, 1)
    assert (found["string_agg"], found["approx_count_distinct"]) == ("a,b", 2)
