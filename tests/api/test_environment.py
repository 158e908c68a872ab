"""Environments: settings, sources, sinks that wait, jobs, results."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment
from engine.api import executor as executors
from engine.api.results import format_table, read_parts, table_to_rows
from engine.column_expressions.expressions import col, count
from engine.config.command_line import CommandLine, install_command_line
from engine.connectors.arrow_files import MAPPED_BYTES_MIN
from engine.connectors.arrow_writer import ArrowWriter
from engine.errors import ConfigurationError, NotYetSupportedError, PlanError, ResourceError, SchemaError
from engine.graph.plan import Source

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
ROWS = [(1, "a"), (2, None)]


def kinds(plan):
    return [type(node.operator).__name__ for node in plan.nodes]


def test_each_execute_is_one_job_of_the_sinks_since_the_last(env, executor, tmp_path):
    data = env.from_rows(ROWS, SCHEMA)
    data.write_csv(tmp_path / "one", header=True)
    data.filter(col("id") > 1).write_parquet(tmp_path / "two", overwrite=True)
    result = env.execute("both")
    assert (result.state, executor.plans[0].name) == ("FINISHED", "both")
    assert kinds(executor.plans[0]) == ["Source", "Sink", "Filter", "Sink"]
    assert executor.plans[0].sinks == (1, 3)
    specs = [executor.plans[0].node(sink).operator.spec for sink in executor.plans[0].sinks]
    assert [(spec.format, spec.path, spec.header, spec.overwrite) for spec in specs] == [
        ("csv", str(tmp_path / "one"), True, False),
        ("parquet", str(tmp_path / "two"), False, True),
    ]
    with pytest.raises(PlanError, match="nothing to execute"):
        env.execute()


def test_an_output_that_exists_stops_the_job_before_it_starts(env, executor, tmp_path):
    (tmp_path / "out").mkdir()
    env.from_rows(ROWS, SCHEMA).write_csv(tmp_path / "out")
    with pytest.raises(PlanError, match="already exists; pass overwrite=True"):
        env.execute()
    assert executor.plans == []
    env.from_rows(ROWS, SCHEMA).write_csv(tmp_path / "out2")
    env.execute()
    assert len(executor.plans) == 1


def test_collect_runs_its_own_lineage_only(env, executor, tmp_path):
    data = env.from_rows(ROWS, SCHEMA)
    data.write_csv(tmp_path / "waits")
    assert data.select("id").collect() == []
    assert kinds(executor.plans[0]) == ["Source", "Project", "Sink"]
    assert executor.plans[0].node(2).operator.spec.format == "arrow"
    assert not (tmp_path / "waits").exists()
    assert data.select("name").to_arrow().schema == pa.schema([("name", pa.string())])
    assert [path.name for path in env.temporary_folder().iterdir()] == ["lock"]


@pytest.mark.parametrize("take", [lambda data: data.collect(), lambda data: data.cache().collect()])
def test_rows_in_a_folder_of_other_machines_are_an_error(env, executor, take):
    def execute(plan, configuration, kept=None):
        return SimpleNamespace(job_id="0" * 32, state="FINISHED", runtime_ms=1, vertices=(), bad_rows=0, notes=())

    executor.execute = execute
    with pytest.raises(ResourceError, match="let TMPDIR name a folder that both see"):
        take(env.from_rows(ROWS, SCHEMA))


def test_csv_splits_are_exact_when_a_job_runs(env, executor, tmp_path):
    (tmp_path / "x.csv").write_text('1,"a\nb"\n' * 200_000)
    data = env.read_csv(tmp_path / "x.csv", SCHEMA)
    provisional = data._node.operator.spec.splits
    data.write_csv(tmp_path / "out")
    env.execute()
    source = executor.plans[0].node(0).operator
    assert isinstance(source, Source)
    assert len(source.spec.splits) == len(provisional) == 2
    assert source.spec.splits[0].end % 8 == 0
    assert provisional != source.spec.splits


def test_every_source_knows_its_schema(env, tmp_path):
    pq.write_table(pa.table({"x": [1]}), tmp_path / "x.parquet")
    (tmp_path / "x.csv").write_text("x\n1\n")
    assert env.read_parquet(tmp_path / "x.parquet").schema == pa.schema([("x", pa.int64())])
    assert env.read_csv(tmp_path / "x.csv", header=True).schema == pa.schema([("x", pa.int64())])
    assert env.from_arrow(pa.table({"x": [1]})).schema == pa.schema([("x", pa.int64())])
    with pytest.raises(PlanError, match="not a record data set"):
        env.read_records(tmp_path)


def test_explain_tells_strategies_sizes_and_their_origin(env, tmp_path):
    (tmp_path / "x.csv").write_text("1,a\n2,b\n")
    data = env.read_csv(tmp_path / "x.csv", SCHEMA)
    text = data.group_by("name").agg(n=count()).explain()
    assert "csv source" in text
    assert "all 2 rows" in text
    assert "PARTITION_HASH(name)" in text
    data.write_csv(tmp_path / "out")
    assert "csv sink" in data.explain()
    assert not (tmp_path / "out").exists()


def test_temporary_data_goes_when_the_environment_closes(executor):
    environment = Environment(target="recording")
    rows = [(number, "x" * 20) for number in range(20_000)]
    data = environment.from_rows(rows, SCHEMA)
    folder = environment.temporary_folder()
    assert len(list(folder.glob("*.arrow"))) == 1
    environment.close()
    environment.close()
    assert not folder.exists()
    with pytest.raises(PlanError, match="closed"):
        data.collect()


def test_an_executor_is_released_by_environments_that_ran_jobs(executor):
    with Environment(target="recording") as first, Environment(target="recording"):
        first.from_rows(ROWS, SCHEMA).collect()
        first.from_rows(ROWS, SCHEMA).collect()
        assert executor.released == []
    assert executor.released == [first.configuration]


def test_temporary_data_goes_with_a_forgotten_environment(executor):
    environment = Environment(target="recording")
    folder = environment.temporary_folder()
    del environment
    assert not folder.exists()


def test_the_scripts_target_wins_over_the_command_line(monkeypatch):
    assert Environment().target == "local"
    install_command_line(CommandLine({"parallelism.default": "7"}, "cluster", "named"))
    try:
        assert Environment().target == "cluster"
        assert Environment(target="local").target == "local"
        assert Environment().parallelism == 7
        assert Environment(config={"parallelism.default": 3}).parallelism == 3
    finally:
        install_command_line(CommandLine())


def test_targets_are_known_or_refused(monkeypatch):
    with pytest.raises(ConfigurationError, match="choose one of local, cluster, spark"):
        Environment(target="moon")
    monkeypatch.setattr(executors, "_factories", {})
    monkeypatch.setattr(executors, "_executors", {})
    with Environment(target="spark") as environment, pytest.raises(NotYetSupportedError, match="target 'spark'"):
        environment.from_rows(ROWS, SCHEMA).collect()


def test_unknown_settings_are_refused():
    with pytest.raises(ConfigurationError, match="did you mean"):
        Environment(config={"paralelism.default": 2})


def test_jobs_are_named_after_their_script(env, executor, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["/some/where/nightly.py"])
    env.from_rows(ROWS, SCHEMA).write_csv(tmp_path / "out")
    env.execute()
    assert executor.plans[0].name == "nightly"


def test_parts_are_read_in_the_order_of_their_numbers(tmp_path):
    for number in (1, 0, 2):
        writer = ArrowWriter(SCHEMA, tmp_path / f"part-{number:05d}.arrow")
        writer.write(pa.RecordBatch.from_pylist([{"id": number, "name": "x"}], schema=SCHEMA))
        writer.finish()
    table = read_parts(tmp_path, SCHEMA)
    assert table.column("id").to_pylist() == [0, 1, 2]
    rows = table_to_rows(table)
    assert rows[1].id == rows[1]["id"] == rows[1][0] == 1
    number, name = rows[2]
    assert (number, name, rows[2].asdict()) == (2, "x", {"id": 2, "name": "x"})


def test_large_parts_are_mapped_and_outlive_their_files(tmp_path):
    rows = pa.RecordBatch.from_pydict({"id": range(300_000)}, schema=pa.schema([("id", pa.int64())]))
    writer = ArrowWriter(rows.schema, tmp_path / "part-00000.arrow")
    writer.write(rows)
    writer.finish()
    before = pa.total_allocated_bytes()
    table = read_parts(tmp_path, rows.schema)
    assert pa.total_allocated_bytes() - before < MAPPED_BYTES_MIN < rows.nbytes
    (tmp_path / "part-00000.arrow").unlink()
    assert table.to_batches()[0].equals(rows.slice(0, len(table.to_batches()[0])))
    assert table.num_rows == 300_000


def test_results_of_several_threads_have_folders_of_their_own(env):
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            folders = list(pool.map(env.new_folder, ["result", "cache"] * 4000))
    finally:
        sys.setswitchinterval(interval)
    assert len(set(folders)) == 8000
    assert {folder.parent for folder in folders} == {env.temporary_folder()}


def test_a_column_named_count_is_an_attribute_of_its_row():
    (row,) = table_to_rows(pa.table({"count": [3], "index": ["x"]}))
    assert (row.count, row.index) == (3, "x")


def test_tables_are_shown_with_types_and_nulls():
    table = pa.table({"n": [1, 20, 300], "name": ["a", None, "x" * 60]})
    lines = format_table(table, 2).splitlines()
    assert lines == [
        "    n | name",
        "int64 | string",
        "------+-------",
        "    1 | a",
        "   20 | null",
        "(only the first rows are shown)",
    ]
    assert "x" * 37 + "..." in format_table(table, 3)


@pytest.mark.parametrize("width", [5, 30, 80, 300, None])
def test_columns_that_have_no_room_in_a_line_are_left_out_and_counted(width):
    table = pa.table({f"column_{number}": [number, 10 * number] for number in range(20)} | {"日本": ["x", "y"]})
    *lines, last = format_table(table, 5, width).splitlines()
    names = [name.strip() for name in lines[0].split("|")]
    if width is None or width == 300:
        assert names == table.column_names
        assert last == "(2 rows)"
        return
    assert all(len(line) <= max(width, len("column_0 | ...")) for line in lines)
    assert names[0] == "column_0"
    at = names.index("...")
    assert [
        *table.column_names[:at],
        "...",
        *table.column_names[len(table.column_names) - len(names) + at + 1 :],
    ] == names
    assert last == f"(2 rows; {len(names) - 1} of 21 columns are shown)"


def test_show_takes_the_width_of_the_terminal_unless_it_is_given_one(env, capsys, monkeypatch):
    data = env.from_arrow(pa.table({f"column_{number}": [number] for number in range(30)}))
    monkeypatch.setenv("COLUMNS", "60")
    data.show()
    narrow = capsys.readouterr().out
    data.show(width=100)
    wide = capsys.readouterr().out
    assert 50 < len(narrow.splitlines()[0]) <= 60 < len(wide.splitlines()[0]) <= 100
    monkeypatch.delenv("COLUMNS")
    data.show()
    assert 100 < len(capsys.readouterr().out.splitlines()[0]) <= 120
    with pytest.raises(PlanError, match=r"show width\(-1\)"):
        data.show(width=-1)


def test_an_environment_shows_where_it_runs_and_what_waits(tmp_path):
    with Environment() as environment:
        assert repr(environment) == "<Environment local>"
        data = environment.from_arrow(pa.table({"a": [1]}))
        data.write_csv(tmp_path / "a")
        assert repr(environment) == "<Environment local, 1 output to be written by execute()>"
        data.write_csv(tmp_path / "b")
        assert repr(environment) == "<Environment local, 2 outputs to be written by execute()>"
        environment.execute()
        assert repr(environment) == "<Environment local>"


def test_columns_of_lists_are_taken_without_loading_pandas(tmp_path):
    program = (
        "import sys; from engine import Environment\n"
        "data = Environment().from_dict({'n': [1, None], 's': ('a', 'b'), 'x': [0.5, None]})\n"
        "print(data.schema.types, 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[DataType(int64), DataType(string), DataType(double)] False\n"


def test_columns_of_a_dict_have_the_types_of_a_schema(env):
    schema = pa.schema([("n", pa.int16()), ("t", pa.timestamp("us"))])
    assert env.from_dict({"n": [1, None], "t": [None, None]}, schema).schema == schema
    for columns in ({"n": ["a"], "t": [None]}, {"n": [1]}, {"n": [1, 2], "t": [None]}):
        with pytest.raises(SchemaError, match="from_dict: "):
            env.from_dict(columns, schema)
