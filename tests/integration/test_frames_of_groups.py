"""Functions over groups that are frames, functions with something made once, and failed rows as a data set."""

import asyncio
import json
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine import JobExecutionError, SchemaError, col, udf

pytestmark = pytest.mark.usefixtures("one_zygote")

ROWS = 5000
TABLE = pa.table(
    {
        "k": pa.array([None if n % 11 == 0 else n % 7 for n in range(ROWS)], pa.int64()),
        "x": pa.array([None if n % 5 == 0 else float(n) for n in range(ROWS)]),
    }
)
MEANS = pa.schema([("k", pa.int64()), ("n", pa.int64()), ("mean", pa.float64())])


@pytest.fixture(params=["process", "thread"])
def data(open_environment, request):
    environment = open_environment(**{"python.execution-mode": request.param})
    return environment.from_arrow(TABLE)


def of_polars(frame):
    return frame.group_by("k").agg(n=pl.len().cast(pl.Int64), mean=pl.col("x").mean())


def of_pandas(frame):
    key = frame["k"].iloc[0]
    return pd.DataFrame({"k": [None if pd.isna(key) else key], "n": [len(frame)], "mean": [frame["x"].mean()]})


def of_arrow(batch):
    return pa.table({"k": batch["k"][:1], "n": [batch.num_rows], "mean": [pc.mean(batch["x"]).as_py()]})


def of_numpy(arrays):
    return iter([{"k": arrays["k"][:1], "n": [len(arrays["k"])], "mean": [float(pd.Series(arrays["x"]).mean())]}])


@pytest.mark.parametrize(
    ("function", "form"), [(of_polars, "polars"), (of_pandas, "pandas"), (of_arrow, "arrow"), (of_numpy, "numpy")]
)
def test_a_function_gets_each_group_as_a_frame(data, function, form):
    source = data if form != "numpy" else data.filter(col("k").is_not_null())
    found = source.group_by("k").reduce(function, MEANS, format=form).sort("k").to_arrow()
    expected = pl.from_arrow(TABLE).group_by("k").agg(n=pl.len().cast(pl.Int64), mean=pl.col("x").mean()).sort("k")
    expected = expected if form != "numpy" else expected.drop_nulls("k")
    assert found.select(["k", "n"]).to_pydict() == expected.select("k", "n").to_arrow().to_pydict()
    assert found["mean"].to_pylist() == pytest.approx(expected["mean"].to_list())


def test_without_keys_all_rows_are_one_frame_also_none(data):
    schema = pa.schema([("n", pa.int64())])
    count = lambda frame: pl.DataFrame({"n": [len(frame)]})  # noqa: E731
    assert data.group_by().reduce(count, schema, format="polars").collect() == [(ROWS,)]
    assert data.filter(col("x") < -1).group_by().reduce(count, schema, format="polars").collect() == [(0,)]


def test_what_is_no_frame_names_the_group(data):
    for function, said in (
        (len, "int, which is no batch of format"),
        (lambda frame: 1 / 0, "by zero"),
    ):
        with pytest.raises(JobExecutionError, match=f"(?s){said}.*the group of "):
            data.group_by("k").reduce(function, MEANS, format="pandas").collect()
    with pytest.raises(SchemaError, match="format='polars' needs schema="):
        data.group_by("k").reduce(len, format="polars")
    with pytest.raises(SchemaError, match="format 'frames' is none of rows, arrow, pandas, numpy, polars"):
        data.group_by("k").reduce(len, MEANS, format="frames")


def test_batches_and_columns_may_be_polars_too(data):
    schema = pa.schema([("y", pa.float64())])
    doubled = data.map_batches(lambda frame: frame.select(y=pl.col("x") * 2), schema, format="polars").to_arrow()["y"]
    twice = udf(pa.float64(), batch="polars")(lambda series: series * 2)
    assert doubled.to_pylist() == data.select(y=twice(col("x"))).to_arrow()["y"].to_pylist()
    assert sum(doubled.drop_null().to_pylist()) == 2 * sum(TABLE["x"].drop_null().to_pylist())


class Model:
    """Writes down that it was made and closed."""

    def __init__(self, path):
        self.path = path
        self._note("made")

    def _note(self, what):
        with Path(self.path).open("a") as file:
            file.write(what + "\n")

    def close(self):
        self._note("closed")


@pytest.mark.parametrize("is_async", [False, True])
def test_a_model_is_made_once_in_each_subtask_and_closed(data, tmp_path, is_async):
    path = str(tmp_path / "notes")

    async def later():
        await asyncio.sleep(0)
        return Model(path)

    @udf(pa.float64(), batch="arrow", setup=later if is_async else lambda: Model(path))
    def score(model, values):
        assert model.path == path
        return pc.add(values, 1)

    found = data.set_parallelism(1).select(y=score(col("x"))).to_arrow()["y"]
    assert found.to_pylist() == [None if x is None else x + 1 for x in TABLE["x"].to_pylist()]
    assert (tmp_path / "notes").read_text() == "made\nclosed\n"
    assert score.function(Model(path), 1).as_py() == 2


def test_what_sets_up_may_take_the_context_and_may_fail(data):
    @udf(setup=lambda context: context.counter("calls"))
    def plus(counter, value: float) -> float:
        counter.add()
        return value or 0.0

    assert data.select(y=plus(col("x"))).count() == ROWS
    failing = udf(pa.int64(), setup=lambda: 1 / 0)(lambda made, value: value)
    with pytest.raises(JobExecutionError, match=r"(?s)ZeroDivisionError.*open"):
        data.select(y=failing(col("k"))).collect()
    for options, said in (({"setup": 3}, "setup=3: expected a function"), ({"batch": "x"}, "batch='x': choose one of")):
        with pytest.raises(SchemaError, match=said):
            udf(pa.int64(), **options)(lambda value: value)


def test_failed_rows_are_a_data_set_of_their_own_and_calls_are_made_once(open_environment, tmp_path):
    environment = open_environment(**{"parallelism.default": 1})
    path = tmp_path / "calls"

    def parse(text):
        with path.open("a") as file:
            file.write("x")
        return int(text)

    rows = environment.from_arrow(pa.table({"t": ["1", "a", "3"], "u": [1, 2, 3]}))
    good, failed = rows.map(parse, pa.schema([("n", pa.int64())]), "t", on_error="collect").split_errors()
    good.write_json(tmp_path / "good.json", single_file=True)
    failed.write_json(tmp_path / "failed.json", single_file=True)
    environment.execute()
    assert (tmp_path / "good.json").read_text() == '{"n":1}\n{"n":3}\n'
    (line,) = (tmp_path / "failed.json").read_text().splitlines()
    found = json.loads(line)
    assert found["error_input"] == {"t": "a", "u": 2}
    assert found["error"].startswith("ValueError") and "test_frames_of_groups.py, line" in found["error_place"]
    assert path.read_text() == "xxx"
    with pytest.raises(SchemaError, match="call it right behind map or flat_map with on_error='collect'"):
        rows.split_errors()
