"""``flink-run sql``: statements from a command line, a file and a pipe; rows in every format."""

import io
import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from engine.cli.main import main
from engine.config.command_line import CommandLine, install_command_line

QUERY = "SELECT shop, sum(price) AS total FROM sales GROUP BY shop ORDER BY shop"


@pytest.fixture
def sales(tmp_path):
    pq.write_table(pa.table({"shop": ["a", "b", "a"], "price": [1.5, 2.0, 3.0]}), tmp_path / "sales.parquet")
    return tmp_path / "sales.parquet"


def run_process(*words, text=None):
    done = subprocess.run(
        [sys.executable, "-m", "engine.cli.main", "sql", *map(str, words)],
        check=False,
        capture_output=True,
        input=text,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def run(capfdbinary, monkeypatch):
    """Run the command here, as its process does: exit code, output and error output."""

    def ran(*words, cwd=None, binary=False):
        with monkeypatch.context() as patch:
            if cwd is not None:
                patch.chdir(cwd)
            code = main(["sql", *map(str, words)])
        out, err = capfdbinary.readouterr()
        return code, out if binary else out.decode(), err.decode()

    yield ran
    install_command_line(CommandLine())


def test_a_table_for_people(sales):
    code, out, err = run_process("--table", f"sales={sales}", "-e", QUERY)
    assert (code, err) == (0, "")
    assert out.splitlines()[0].split() == ["shop", "|", "total"]
    assert [line.split(" | ") for line in out.splitlines()[3:5]] == [["a     ", "   4.5"], ["b     ", "   2.0"]]


def test_rows_for_programs(run, sales):
    table = f"sales={sales}"
    wanted = [{"shop": "a", "total": 4.5}, {"shop": "b", "total": 2.0}]
    code, out, _ = run("--table", table, "-e", QUERY, "--format", "json")
    assert (code, [json.loads(line) for line in out.splitlines()]) == (0, wanted)
    code, out, _ = run("--table", table, "-e", QUERY, "--format", "csv", binary=True)
    assert (code, pa_csv.read_csv(io.BytesIO(out)).to_pylist()) == (0, wanted)
    code, out, _ = run("--table", table, "-e", QUERY, "--format", "arrow", binary=True)
    assert (code, pa.ipc.open_stream(out).read_all().to_pylist()) == (0, wanted)


def test_queries_may_be_in_another_dialect(run, sales):
    query = "SELECT `shop`, count(*) DIV 2 AS half, 7 / 2 AS exact FROM sales GROUP BY shop ORDER BY shop"
    code, out, err = run("--table", f"sales={sales}", "--dialect", "spark", "--format", "json", "-e", query)
    wanted = [{"shop": "a", "half": 1, "exact": 3.5}, {"shop": "b", "half": 0, "exact": 3.5}]
    assert (code, err, [json.loads(line) for line in out.splitlines()]) == (0, "", wanted)
    code, _, err = run("--dialect", "oracle", "-e", "SELECT 1")
    assert code == 1
    assert "no dialect 'oracle'; there are drey, duckdb, postgres" in err


def test_rows_as_json_are_json(run):
    query = "SELECT 'nan'::DOUBLE AS x, [1.5, 'inf'::DOUBLE] AS l, TIMESTAMP '2024-02-29 01:02:03' AS t"
    _, out, _ = run("--format", "json", "-e", query)
    assert out == '{"x":null,"l":[1.5,null],"t":"2024-02-29T01:02:03.000000"}\n'


def test_statements_of_a_file_and_of_a_pipe_follow_each_other(sales, tmp_path):
    statements = f"""
        -- a report
        CREATE VIEW totals AS {QUERY.replace("sales", f"'{sales}'").split(" ORDER")[0]};
        SHOW TABLES;
        DESCRIBE totals;
        DESCRIBE SELECT shop FROM totals;
        DESCRIBE '{sales}';
        COPY (SELECT * FROM totals WHERE total > 3) TO '{tmp_path / "out.csv"}';
        SELECT count(*) AS n FROM '{tmp_path / "sales.parquet"}' AS s;
    """
    (tmp_path / "report.sql").write_text(statements)
    code, out, err = run_process("-f", tmp_path / "report.sql")
    assert (code, err) == (0, "")
    columns = ["shop  string", "total  double", "shop  string", "shop  string", "price  double"]
    assert out.splitlines()[:6] == ["totals", *columns]
    assert out.splitlines()[-2].strip() == "3"
    (tmp_path / "out.csv").rename(tmp_path / "first")
    assert run_process("-f", "-", text=statements)[:2] == (0, out)
    (tmp_path / "out.csv").rename(tmp_path / "second")
    assert run_process(text=statements)[:2] == (0, out)


def test_a_plan_is_explained_and_nothing_runs(run, sales):
    code, out, _ = run("--table", f"sales={sales}", "-e", f"EXPLAIN {QUERY}")
    assert code == 0
    assert "aggregate by shop" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-e", "SELEC 1"), "PlanError: sql: line 1, column 1: expected: an SQL statement"),
        (("-e", "SELECT 1 AS a; SELECT b FROM nowhere"), "PlanError: sql: line 1, column 30: no table nowhere"),
        (("--format", "csv", "-e", "SELECT [1] AS l"), "column 'l' is list<item: int64>, which has no text form"),
        (("-e", "DESCRIBE nowhere"), "PlanError: DESCRIBE nowhere: there is no such table; there are: none"),
        (("-f", "no.sql"), "ConfigurationError: sql -f no.sql: No such file or directory"),
        (("--table", "a=nowhere.parquet", "-e", "SELECT 1 AS a"), "nowhere.parquet"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_and_ends_with_one(run, words, said, tmp_path):
    code, _, err = run(*words, cwd=tmp_path)
    assert code == 1
    first, *excerpt = err.splitlines()
    assert said in first
    assert len(excerpt) == (2 if "sql: line" in said else 0)


def test_nothing_to_run_is_an_error():
    code, _, err = run_process(text=" -- nothing\n")
    assert (code, err.startswith("ConfigurationError: sql: nothing to run; give -e QUERY or -f FILE")) == (1, True)


def test_rows_are_kept_under_a_name_and_written_with_options(run, sales, tmp_path):
    statements = f"""
        CREATE TABLE dear AS SELECT * FROM '{sales}' WHERE price > 1.5;
        CREATE TABLE IF NOT EXISTS dear AS SELECT 1;
        CREATE OR REPLACE TABLE dear AS SELECT shop, price * 2 AS price FROM dear;
        COPY dear TO '{tmp_path / "out.csv"}' (DELIMITER ';', HEADER false);
        SELECT sum(price) AS total FROM dear;
    """
    code, out, err = run("-e", statements, "--format", "csv")
    assert (code, err, out.split()) == (0, "", ['"total"', "10"])
    written = "".join(path.read_text() for path in sorted((tmp_path / "out.csv").glob("part-*")))
    assert sorted(written.split()) == ["a;6", "b;4"]


def test_a_copy_makes_folders_of_partitions_and_adds_to_them(run, sales, tmp_path):
    copy = f"COPY (SELECT shop, price FROM '{sales}') TO '{tmp_path / 'out'}' (FORMAT parquet, PARTITION_BY (shop)"
    code, _, err = run("-e", f"{copy}); {copy}, MODE append); SELECT count(*) AS n FROM '{tmp_path / 'out'}'")
    assert (code, err) == (0, "")
    folders = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert folders[0] == "shop=a"
    assert all(len(list((tmp_path / "out" / name).iterdir())) == 2 for name in folders)


@pytest.mark.parametrize("ending", [".csv", ".json", ".orc", ".arrow", ""])
def test_rows_are_inserted_by_their_places_and_types(run, tmp_path, ending):
    path, file_format = tmp_path / f"out{ending}", {"": "parquet", ".arrow": "ipc"}.get(ending, ending[1:])
    begin = f"COPY (SELECT 'a' AS name, 1 AS n) TO '{path}' (FORMAT {file_format}); INSERT INTO '{path}' SELECT 'b', 2"
    code, out, err = run("-e", f"{begin}; SELECT name, n FROM '{path}' ORDER BY n", "--format", "csv")
    assert (code, err, out.split()) == (0, "", ['"name","n"', '"a",1', '"b",2'])
    code, _, err = run("-e", f"INSERT INTO '{path}' SELECT 'c'")
    assert (code, "the query has 1 columns, there are 2: name, n" in err) == (1, True)


def test_inserted_values_are_cast_as_casts_of_sql_do(run, tmp_path):
    path = tmp_path / "out"
    made = f"COPY (SELECT 1::int AS n, 1.5::decimal(5, 1) AS d) TO '{path}' (FORMAT parquet)"
    inserts = f"INSERT INTO '{path}' SELECT 2.7, 2.75; INSERT INTO '{path}' SELECT 2.5::double, 7"
    code, out, err = run("-e", f"{made}; {inserts}; FROM '{path}' ORDER BY d", "--format", "csv")
    assert (code, err, out.split()) == (0, "", ['"n","d"', "1,1.5", "3,2.8", "2,7.0"])


def test_an_error_has_its_place_in_the_file(tmp_path):
    (tmp_path / "f.sql").write_text("SELECT 1;\n\n-- a comment\nSELECT 2;\nSELECT n\nFROM naton;\n")
    code, _, err = run_process("-f", str(tmp_path / "f.sql"))
    assert (code, "line 6, column 6: no table naton" in err) == (1, True)


def test_a_path_that_is_nearly_one_is_named(run, tmp_path, sales):
    code, _, err = run("-e", f"FROM '{str(sales)[:-1]}'")
    assert (code, f"did you mean '{sales}'?" in err) == (1, True)


def test_rows_are_inserted_into_folders_of_partitions(run, tmp_path):
    path = tmp_path / "out"
    made = f"COPY (SELECT 1 AS n, 'x' AS k) TO '{path}' (FORMAT parquet, PARTITION_BY (k))"
    code, out, err = run(
        "-e", f"{made}; INSERT INTO '{path}' SELECT 2, 'y'; SELECT sum(n) AS n FROM '{path}'", "--format", "csv"
    )
    assert (code, err, out.split()) == (0, "", ['"n"', "3"])
    assert sorted(folder.name for folder in path.iterdir() if "=" in folder.name) == ["k=x", "k=y"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CREATE VIEW t AS SELECT 1 AS x; CREATE TABLE t AS SELECT 2 AS x", "it is there already"),
        ("CREATE VIEW t AS SELECT 1 AS x; CREATE VIEW t AS SELECT 2 AS x", "write CREATE OR REPLACE VIEW"),
        ("DROP VIEW t", "DROP VIEW t: there is no such table; write DROP VIEW IF EXISTS"),
        ("CREATE VIEW t AS SELECT 1 AS x; DROP VIEW t; DROP TABLE IF EXISTS t; SELECT x FROM t", "no table t"),
        ("COPY (SELECT 1 AS x) TO '.' (FORMAT csv)", "it exists already; write (OVERWRITE true) to replace it, (MODE"),
        ("INSERT INTO 'out' SELECT 1 AS x", "INSERT INTO 'out': no such folder; COPY (query) TO 'path' makes one"),
        ("COPY (SELECT 1 AS x) TO 'out.csv' (PARTITION_BY (x))", "partition_by has all columns"),
        ("COPY (SELECT 1 AS x) TO 'out.parquet' (HEADER)", "parquet has no option HEADER"),
        ("COPY (SELECT 1 AS x) TO 'out.parquet' (a = b)", "not of the form"),
        ("COPY (SELECT 1 AS x) TO 'out.csv' (HEADER maybe)", "HEADER maybe: it takes true or false"),
        ("COPY (SELECT 1 AS x) TO 'out.csv' (OVERWRITE maybe)", "OVERWRITE maybe: it takes true or false"),
        ("COPY (SELECT 1 AS x) TO 'out.csv' (PARTITION_BY)", "PARTITION_BY true: it takes a value"),
        ("COPY SELECT 1 AS x TO 'out.csv'", "COPY is not complete, or another; write COPY (query) TO 'path'"),
        (" CREATE VIEW t AS", "line 1, column 2: CREATE is not complete, or another; write CREATE VIEW name AS query"),
        ("CREATE TABLE t (x INT)", "write CREATE VIEW name AS query, CREATE TABLE name AS query, or CREATE MACRO"),
        ("DROP SCHEMA t", "DROP is not complete, or another; write DROP VIEW name, DROP TABLE name"),
    ],
)
def test_what_a_statement_may_not_say(run, text, said, tmp_path):
    code, out, err = run("-e", text, cwd=tmp_path)
    assert (code, out) == (1, "")
    assert said in err
    assert not list(tmp_path.iterdir())
