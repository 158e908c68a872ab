"""What is wrong with a program is said in one sentence of ours, not below the traceback of another library."""

import sys
import traceback
from functools import partial

import pyarrow as pa
import pytest

from engine import EngineError, Environment, col, lit

NUMBERS = pa.schema([("a", pa.int64())])


@pytest.mark.parametrize(
    "mistake",
    [
        lambda env, folder: env.from_rows([("x",)], NUMBERS),
        lambda env, folder: env.from_rows([("x",), (1,)]),
        lambda env, folder: env.from_rows([(2**70,)], NUMBERS),
        lambda env, folder: lit(object()),
        lambda env, folder: env.from_rows([(1,)], NUMBERS).select(col("a").alias("\udcff")),
        lambda env, folder: lit("x", pa.int64()),
        lambda env, folder: col("a").cast("integer"),
        lambda env, folder: env.from_rows([(1,)], NUMBERS).select(col("a").cast(pa.list_(pa.int8()))),
        lambda env, folder: env.from_rows([(1,)], NUMBERS).select(col("a") + "x"),
        lambda env, folder: env.from_rows([(1,)], NUMBERS).select(col("a").str.upper()),
        lambda env, folder: env.read_csv(folder / "x.csv", pa.schema([("a", pa.list_(pa.int8()))])),
        lambda env, folder: env.read_csv(folder / "ragged.csv"),
        lambda env, folder: env.read_csv(3),
        lambda env, folder: env.read_parquet(None),
        lambda env, folder: env.read_json([folder / "x.csv", 3]),
        lambda env, folder: env.read_csv(folder / "x.csv", {"a": "int"}),
        lambda env, folder: env.from_rows([(1,)], NUMBERS).write_csv(3),
        lambda env, folder: env.read_csv(folder / "x.csv", encoding="none"),
        lambda env, folder: env.read_parquet(folder / "x.csv"),
        lambda env, folder: env.read_parquet(folder / "missing"),
        lambda env, folder: Environment(config={"parallelism.default": "many"}),
        lambda env, folder: env.from_rows([(1,)], NUMBERS).map(partial(print, file=sys.stdout.buffer), NUMBERS),
    ],
)
def test_the_first_and_only_error_that_is_shown_is_ours(env, tmp_path, mistake):
    (tmp_path / "x.csv").write_text("1\n2\n")
    (tmp_path / "ragged.csv").write_text("1,2\n3\n")
    with pytest.raises(EngineError) as error:
        mistake(env, tmp_path)
    shown = "".join(traceback.format_exception(error.value))
    assert shown.startswith("Traceback (most recent call last):")
    assert shown.count("Traceback (most recent call last):") == 1
    assert str(error.value).partition("\n")[0]
