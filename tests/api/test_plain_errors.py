"""What is wrong with a program is said in one sentence of ours, not below the traceback of another library."""

import re
import sys
import traceback
from functools import partial

import pyarrow as pa
import pytest

import engine
from engine import EngineError, Environment, col, count, element, greatest, hash64, least, lit, udf, when

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
        lambda env, folder: env.from_dict({"a": [1, 2], "b": [1]}),
        lambda env, folder: env.from_dict({"a": [1, "x"]}),
        lambda env, folder: env.from_rows([(1,)], NUMBERS).describe(["a"]),
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


class Rich:
    def open(self, context):
        self.known = context

    def __call__(self, row):
        return row


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda one: hash64("a"), r"hash64\('a'\): a text is a constant here.*col\('a'\) for the column"),
        (lambda one: least("a", "b"), "a text is a constant here"),
        (lambda one: greatest("a", "b"), "a text is a constant here"),
        (lambda one: udf(int)(len)("a"), "a text is a constant here"),
        (lambda one: one.map(Rich, NUMBERS), r"Rich is a class; pass an instance, Rich\(\)"),
        (lambda one: col(["a", "b"]), r"write col\('a', 'b'\)"),
        (
            lambda one: one.select(col("a").replace({1: "one"})),
            "the new values are string, .* is int64; make them alike",
        ),
        (lambda one: one.describe([25]), "describe: q=25 is no share"),
        (lambda one: one.merge_sorted(one.rename(a="b"), "a"), "merge_sorted: data set 2 has no a"),
        (lambda one: one.select(col("a").cast(pa.timestamp("us", "Foo/Bar"))), "there is no time zone 'Foo/Bar'"),
        (lambda one: one.select(when(col("a") > 1)), r"write when\(condition\).then\(value\)"),
        (lambda one: one.select(element() + 1), "stands in functions of lists"),
        (lambda one: one.select(count().over(order_by="a", range=("", 0))), "'' is no"),
    ],
)
def test_a_mistake_is_said_in_the_words_of_the_call(env, mistake, said):
    with pytest.raises(EngineError, match=said):
        mistake(env.from_rows([(1,)], NUMBERS))


def test_a_constant_text_is_a_constant(env):
    shown = env.from_rows([(1,)], NUMBERS).select(h=hash64(lit("a")), g=greatest(lit("a"), "b"))
    assert shown.schema.types == [pa.int64(), pa.string()]


def test_names_of_other_libraries_are_known():
    with pytest.raises(AttributeError, match="module 'drey' has no attribute 'mean': write avg"):
        engine.mean  # noqa: B018 - the name is what is asked for
    with pytest.raises(AttributeError, match="'sum': write sum_"):
        engine.sum  # noqa: B018 - the name is what is asked for
    for name, advice in {
        "read_csv": "write Environment().read_csv",
        "concat": "write ds.union(ds)",
        "to_datetime": "write x.str.to_timestamp",
        "Window": "write sum_('x').over('k'",
        "coalese": "did you mean coalesce?",
    }.items():
        with pytest.raises(AttributeError, match=re.escape(advice)):
            getattr(engine, name)
    assert "Any" not in dir(engine) and "selectors" in dir(engine)


def test_groups_without_aggregates_say_what_to_write(env):
    data = env.from_rows([(1,)], NUMBERS)
    with pytest.raises(AttributeError, match=r"write agg\(n=count\(\)\).filter"):
        data.group_by("a").filter(count() > 1)
    for groups in (data.group_by_dynamic("a", 10), data.rolling("a", 10)):
        with pytest.raises(AttributeError, match=r"write agg\(name=...\) first"):
            groups.to_arrow()


def test_a_field_of_a_struct_is_no_column_with_a_point(env):
    data = env.from_arrow(pa.table({"s": [{"a": 1}], "t.u": [2]}))
    said = "no column 's.a'; a field of 's', if it is a struct, is col('s').field('a')"
    with pytest.raises(engine.SchemaError, match=re.escape(said)):
        data.select("s.a")
    assert data.select("t.u", a=col("s").field("a")).columns == ["t.u", "a"]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda data, pl: data.filter(pl.col("a") > 2), "filter: an expression of polars"),
        (lambda data, pl: data.filter(col("a") > pl.col("a")), "^an expression of polars"),
        (lambda data, pl: data.select(pl.col("a")), "^an expression of polars"),
        (lambda data, pl: data.with_columns(x=pl.when(True).then(1)), "^an expression of polars"),
        (lambda data, pl: data.sort(pl.col("a")), "sort: an expression of polars"),
        (lambda data, pl: data.group_by(pl.col("a")).agg(n=count()), "^an expression of polars"),
        (lambda data, pl: data.agg(n=pl.col("a").sum()), "agg: an expression of polars"),
        (lambda data, pl: data.join(data, on=pl.col("a")), "join keys: an expression of polars"),
    ],
)
def test_expressions_of_another_library_are_told(call, text):
    polars = pytest.importorskip("polars")
    with Environment() as env, pytest.raises(engine.SchemaError, match=f"{text}.*write it with col of drey"):
        call(env.from_rows([(1,)], NUMBERS), polars)


def test_expressions_of_duckdb_are_told():
    duckdb = pytest.importorskip("duckdb")
    with Environment() as env, pytest.raises(engine.SchemaError, match="an expression of duckdb"):
        env.from_rows([(1,)], NUMBERS).select(x=duckdb.ColumnExpression("a"))


@pytest.mark.parametrize("library", ["pandas", "polars", "numpy"])
def test_a_library_of_frames_that_is_missing_is_named(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    advice = f"needs the package {library}; install it: pip install {library}"
    with Environment(config={"python.execution-mode": "thread"}) as env:
        data = env.from_rows([(1,)], NUMBERS)
        if library != "numpy":
            with pytest.raises(engine.ConfigurationError, match=rf"to_{library}\(\) {advice}"):
                getattr(data, f"to_{library}")()
        for result in (
            data.map_batches(lambda batch: batch, NUMBERS, format=library),
            data.select(udf("int64", batch=library)(lambda column: column)(col("a"))),
        ):
            with pytest.raises(EngineError, match=f"a function over batches of {library} {advice}"):
                result.collect()
