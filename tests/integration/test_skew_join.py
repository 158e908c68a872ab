"""The main job: instruments and currencies in every format, with every hint, parallelism and memory, against DuckDB."""

import json
import statistics

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from engine.connectors.records_manifest import RecordsColumn, RecordsFile, RecordsManifest, write_manifest
from engine.examples.generate_instruments import CURRENCIES, INSTRUMENTS, generate
from engine.examples.skew_join import HINTS, OUTPUT_COLUMNS, main, skew_join, skew_join_in_sql

ROWS = 24_000

ORACLE = """
    SELECT i.RIC, i.Asset, i.AssetClass, i.Exchange, i.Periodicity, i.ContractType, i.CallPutOption, i.ExpiryDate,
           i.StrikePrice, i.StrikePriceMultiplier, i.LotSize,
           CASE WHEN c.ISOCode IS NULL OR c.ISOCode = '' THEN c.ISOExtended ELSE c.ISOCode END AS CurrencyCode,
           i.AssetState
    FROM instruments i JOIN currencies c ON i.CurrencyID = c.CurrencyID
"""
_READ = pa_csv.ReadOptions
_CONVERT = {"strings_can_be_null": True, "quoted_strings_can_be_null": False, "null_values": [""]}


def read_csv(paths, schema):
    """Read CSV with pyarrow, by the contract's rule for nulls and empty strings."""
    tables = [
        pa_csv.read_csv(
            path,
            pa_csv.ReadOptions(column_names=schema.names),
            pa_csv.ParseOptions(newlines_in_values=True),
            pa_csv.ConvertOptions(column_types=schema, **_CONVERT),
        )
        for path in sorted(paths)
        if path.stat().st_size
    ]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def read_parts(folder, file_format, schema):
    """Return the rows of an output folder, having checked that it holds part files and nothing else."""
    names = sorted(path.name for path in folder.iterdir())
    assert names == [f"part-{index:05d}.{file_format}" for index in range(len(names))]
    paths = [folder / name for name in names]
    return read_csv(paths, schema) if file_format == "csv" else pa.concat_tables(map(pq.read_table, paths))


OUTPUT_SCHEMA = pa.schema(
    [pa.field(name, pa.string()) if name == "CurrencyCode" else INSTRUMENTS.field(name) for name in OUTPUT_COLUMNS]
)


def write_export(folder, table, part_count):
    """Write a record data set as Spark's export does: Parquet parts and a manifest, last."""
    folder.mkdir(parents=True)
    files = []
    for index in range(part_count):
        start, end = len(table) * index // part_count, len(table) * (index + 1) // part_count
        path = folder / f"part-{index:05d}.parquet"
        pq.write_table(table.slice(start, end - start), path)
        files.append(RecordsFile(path.name, end - start, path.stat().st_size))
    ids = table["CurrencyID"]
    heavy = sorted(
        ((entry["counts"].as_py(), entry["values"].as_py()) for entry in pc.value_counts(ids)),
        reverse=True,
        key=lambda pair: pair[0],
    )
    column = RecordsColumn(
        min=pc.min(ids).as_py(),
        max=pc.max(ids).as_py(),
        null_count=ids.null_count,
        distinct_estimate=float(pc.count_distinct(ids).as_py()),
        heavy_keys=tuple((str(value), count / len(table)) for count, value in heavy[:3] if count > len(table) / 10),
    )
    size = sum(file.bytes for file in files)
    schema = table.schema.serialize().to_pybytes()
    write_manifest(folder, RecordsManifest(schema, tuple(files), len(table), size, {"CurrencyID": column}))


class Data:
    """Inputs in all formats, and the rows that the job must give."""

    def __init__(self, folder, instruments, currencies):
        self.folder = folder
        self.instruments, self.currencies = instruments, currencies
        with duckdb.connect() as connection:
            connection.register("instruments", instruments)
            connection.register("currencies", currencies)
            self.expected = connection.sql(ORACLE).to_arrow_table()
        write_export(folder / "records" / "instruments", instruments, 4)
        write_export(folder / "records" / "currencies", currencies, 1)

    def read(self, env, file_format):
        if file_format == "records":
            folder = self.folder / "records"
            return env.read_records(folder / "instruments"), env.read_records(folder / "currencies")
        folder = self.folder / file_format
        if file_format == "parquet":
            return env.read_parquet(folder / "instruments"), env.read_parquet(folder / "currencies.parquet")
        return (
            env.read_csv(folder / "instruments", schema=INSTRUMENTS),
            env.read_csv(folder / "currencies.csv", schema=CURRENCIES),
        )

    def check(self, actual):
        """Compare as multisets of rows, in DuckDB."""
        assert actual.column_names == OUTPUT_COLUMNS
        assert len(actual) == len(self.expected)
        with duckdb.connect() as connection:
            connection.register("actual", actual)
            connection.register("expected", self.expected)
            for left, right in (("actual", "expected"), ("expected", "actual")):
                rows = connection.execute(f"SELECT * FROM {left} EXCEPT ALL SELECT * FROM {right} LIMIT 3").fetchall()
                assert rows == [], f"only in {left}"


def generated(folder, seed, rows=ROWS):
    for file_format in ("csv", "parquet"):
        generate(rows, folder / file_format, seed, file_format)
    instruments = pa.concat_tables(map(pq.read_table, sorted((folder / "parquet" / "instruments").iterdir())))
    return Data(folder, instruments, pq.read_table(folder / "parquet" / "currencies.parquet"))


def another_skew(folder):
    """Nulls, unknown currencies and doubled currencies; the heavy currency is another one."""
    generate(12_000, folder / "plain", 9, "parquet")
    table = pa.concat_tables(map(pq.read_table, sorted((folder / "plain" / "instruments").iterdir())))
    numbers = range(len(table))
    ids = [None if n % 11 == 0 else 10_000 + n if n % 13 == 0 else 21 if n % 3 else 1 + n % 492 for n in numbers]
    table = table.set_column(table.schema.get_field_index("CurrencyID"), "CurrencyID", pa.array(ids, pa.int64()))
    currencies = pq.read_table(folder / "plain" / "currencies.parquet")
    extra = pa.table(
        {
            "CurrencyID": pa.array([5, 5, None, 77], pa.int64()),
            "ISOCode": ["", None, "NUL", 'Q"U,O\nTE'],
            "ISOExtended": ["five", None, "null id", ""],
            "Name": [None, "", "x", "y"],
        },
        schema=CURRENCIES,
    )
    currencies = pa.concat_tables([currencies, extra])
    options = pa_csv.WriteOptions(include_header=False)
    (folder / "csv" / "instruments").mkdir(parents=True)
    (folder / "parquet" / "instruments").mkdir(parents=True)
    for index, start in enumerate((0, 5000)):
        part = table.slice(start, 5000 if not index else None)
        pa_csv.write_csv(part, folder / "csv" / "instruments" / f"part-{index:05d}.csv", options)
        pq.write_table(part, folder / "parquet" / "instruments" / f"part-{index:05d}.parquet", row_group_size=1000)
    pa_csv.write_csv(currencies, folder / "csv" / "currencies.csv", options)
    pq.write_table(currencies, folder / "parquet" / "currencies.parquet")
    return Data(folder, table, currencies)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return generated(tmp_path_factory.mktemp("skew"), seed=1)


@pytest.fixture(scope="module", params=["seed 7", "another skew"])
def other_data(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("other")
    return another_skew(folder) if request.param == "another skew" else generated(folder, 7, 5000)


def run(env, data, file_format, join_type, target):
    instruments, currencies = data.read(env, file_format)
    joined = skew_join(instruments, currencies, HINTS[join_type])
    output_format = "csv" if file_format == "csv" else "parquet"
    if output_format == "csv":
        joined.write_csv(str(target))
    else:
        joined.write_parquet(str(target))
    result = env.execute("skew join")
    assert result.state == "FINISHED"
    return result, read_parts(target, output_format, OUTPUT_SCHEMA)


def join_of(result):
    report = json.loads(json.dumps(result.to_json_dict()))
    (join,) = [vertex for vertex in report["vertices"] if "join" in vertex["name"].lower()]
    return join["subtasks"], report


@pytest.mark.quick
@pytest.mark.parametrize("join_type", HINTS)
@pytest.mark.parametrize("file_format", ["csv", "parquet", "records"])
def test_the_job_gives_the_rows_of_duckdb_from_every_format_with_every_hint(
    open_environment, data, tmp_path, file_format, join_type
):
    _, actual = run(open_environment(), data, file_format, join_type, tmp_path / "out")
    data.check(actual)


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("join_type", HINTS)
@pytest.mark.parametrize("file_format", ["csv", "parquet", "records"])
def test_nulls_unknown_and_doubled_currencies_and_other_seeds(
    open_environment, other_data, tmp_path, file_format, join_type
):
    _, actual = run(open_environment(), other_data, file_format, join_type, tmp_path / "out")
    other_data.check(actual)


@pytest.mark.parametrize("parallelism", [1, 3, 8])
@pytest.mark.parametrize("join_type", HINTS)
def test_any_parallelism(open_environment, data, tmp_path, join_type, parallelism):
    env = open_environment(**{"parallelism.default": parallelism})
    result, actual = run(env, data, "csv", join_type, tmp_path / "out")
    data.check(actual)
    subtasks, _ = join_of(result)
    # four small files are four splits: what nothing is shipped to has no more subtasks than those
    wanted = parallelism if join_type == "normal" else min(4, parallelism)
    assert [subtask["index"] for subtask in subtasks] == list(range(wanted))


@pytest.mark.parametrize("size", ["16mb", "768kb"])
@pytest.mark.parametrize("join_type", HINTS)
def test_little_memory(open_environment, data, tmp_path, join_type, size):
    env = open_environment(**{"taskmanager.memory.managed.size": size})
    _, actual = run(env, data, "parquet", join_type, tmp_path / "out")
    data.check(actual)


@pytest.mark.parametrize("mode", ["PIPELINED", "BATCH", "PIPELINED_FORCED", "BATCH_FORCED"])
@pytest.mark.parametrize("join_type", ["auto", "normal"])
def test_every_execution_mode(open_environment, data, tmp_path, join_type, mode):
    _, actual = run(open_environment(**{"execution.mode": mode}), data, "parquet", join_type, tmp_path / "out")
    data.check(actual)


@pytest.mark.parametrize("file_format", ["csv", "parquet", "records"])
def test_without_a_hint_the_subtasks_of_the_join_have_equal_shares(open_environment, data, tmp_path, file_format):
    result, _ = run(open_environment(), data, file_format, "auto", tmp_path / "out")
    subtasks, report = join_of(result)
    rows = [subtask["rows_out"] for subtask in subtasks]
    assert sum(rows) == len(data.expected)
    assert max(rows) / statistics.median(rows) <= 1.1, report


@pytest.mark.quick
@pytest.mark.parametrize("file_format", ["csv", "parquet", "records"])
def test_the_query_gives_the_same_rows_and_the_same_join(data, tmp_path, file_format):
    inputs = ("--input", str(data.folder / file_format), "--format", file_format)
    main([*inputs, "--out", str(tmp_path / "out"), "--planner", "sql"])
    data.check(read_parts(tmp_path / "out", "csv" if file_format == "csv" else "parquet", OUTPUT_SCHEMA))


@pytest.mark.quick
def test_the_plan_of_the_query_is_that_of_the_methods(open_environment, data, capsys):
    env = open_environment()
    by_query = skew_join_in_sql(env, *data.read(env, "csv")).explain()
    assert "BROADCAST" in by_query
    assert "not REPARTITION" in by_query
    with pytest.raises(SystemExit):
        main(["--input", "data", "--out", "out", "--planner", "sql", "--join-type", "normal"])
    assert "the query has no hint" in capsys.readouterr().err


@pytest.mark.quick
@pytest.mark.parametrize("file_format", ["csv", "records"])
def test_without_a_hint_the_small_side_is_broadcast_and_the_plan_says_why(open_environment, data, file_format):
    joined = skew_join(*data.read(open_environment(), file_format), HINTS["auto"])
    text = joined.explain()
    assert "BROADCAST" in text
    assert "not REPARTITION" in text, "why the alternative lost"
    assert ("manifest" if file_format == "records" else "sample") in text, "where the sizes come from"


def test_a_repartitioned_join_that_is_forced_to_spill_is_right_and_says_so(open_environment, data, tmp_path):
    env = open_environment(**{"taskmanager.memory.managed.size": "16mb", "debug.force-spill": True})
    result, actual = run(env, data, "csv", "normal", tmp_path / "out")
    data.check(actual)
    subtasks, report = join_of(result)
    assert sum(subtask["spilled_bytes"] for subtask in subtasks) > 0, report


def test_a_large_build_side_spills_by_itself_when_memory_is_small(open_environment, data, tmp_path):
    env = open_environment(**{"taskmanager.memory.managed.size": "1mb"})
    numbers = pa.table({"RIC": data.instruments["RIC"], "extra": [f"extra {n}" for n in range(ROWS)]})
    instruments, _ = data.read(env, "parquet")
    joined = instruments.join(env.from_arrow(numbers), on="RIC", hint=HINTS["normal"]).select("RIC", "Asset", "extra")
    joined.write_parquet(str(tmp_path / "out"))
    result = env.execute()
    actual = read_parts(tmp_path / "out", "parquet", None)
    subtasks, _ = join_of(result)
    assert sum(subtask["spilled_bytes"] for subtask in subtasks) > 0
    expected = pa.table({"RIC": data.instruments["RIC"], "Asset": data.instruments["Asset"], "extra": numbers["extra"]})
    assert actual.sort_by("RIC").equals(expected.sort_by("RIC"))


def test_a_heavy_build_side_is_right_although_one_key_is_larger_than_memory(open_environment, data):
    env = open_environment(**{"taskmanager.memory.managed.size": "768kb"})
    few = data.instruments.slice(0, 6000).select(["RIC", "CurrencyID", "Asset", "Exchange", "AssetState"])
    ids = pa.table({"CurrencyID": pa.array([1, 2, 3, 1], pa.int64()), "tag": ["a", "b", "c", "d"]})
    joined = env.from_arrow(ids).join(env.from_arrow(few), on="CurrencyID", hint=HINTS["normal"])
    with duckdb.connect() as connection:
        connection.register("few", few)
        connection.register("ids", ids)
        expected = connection.execute("SELECT count(*) FROM ids JOIN few USING (CurrencyID)").fetchone()[0]
    assert joined.count() == expected


@pytest.mark.quick
def test_the_legacy_estimates_show_the_plan_of_the_article_beside_the_right_one(open_environment, data):
    right = skew_join(*data.read(open_environment(), "csv"), HINTS["auto"]).explain()
    legacy_env = open_environment(**{"optimizer.legacy-estimates": True})
    wrong = skew_join(*data.read(legacy_env, "csv"), HINTS["auto"]).explain()
    assert "PARTITION_HASH(CurrencyID)" in wrong
    assert "PARTITION_HASH(CurrencyID)" not in right
    assert "BROADCAST" in right


def test_the_generator_makes_the_same_data_for_the_same_seed_and_nothing_else(tmp_path):
    for target in ("a", "b"):
        generate(1000, tmp_path / target, 3, "csv")
    generate(1000, tmp_path / "c", 4, "csv")
    contents = {}
    for target in ("a", "b", "c"):
        files = sorted(path for path in (tmp_path / target).rglob("*") if path.is_file())
        contents[target] = {str(path.relative_to(tmp_path / target)): path.read_bytes() for path in files}
    assert sorted(contents["a"]) == ["currencies.csv", *(f"instruments/part-0000{index}.csv" for index in range(4))]
    assert contents["a"] == contents["b"] != contents["c"]
