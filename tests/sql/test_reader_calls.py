"""Files in FROM with options, held against the call of Python of the same name and against DuckDB."""

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment
from engine.errors import PlanError, SchemaError

TEXT = "junk\nid;price;day\n1;1,5;31.12.2023\n2;-;01.01.2024\n"


@pytest.fixture
def csv_path(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize("mark", ["=", ":=", "=>"])
def test_options_are_those_of_the_call_in_python(environment, csv_path, mark):
    options = {"skip_rows": 1, "delimiter": ";", "decimal": ",", "null_values": {"price": "-"}}
    expected = environment.read_csv(csv_path, header=True, date_format={"day": "%d.%m.%Y"}, **options).to_arrow()
    found = environment.sql(
        f"SELECT * FROM read_csv('{csv_path}', skip_rows {mark} 1, delimiter {mark} ';', decimal {mark} ',',"
        f" null_values {mark} {{'price': '-'}}, date_format {mark} {{'day': '%d.%m.%Y'}})"
    ).to_arrow()
    assert found.equals(expected)


def test_rows_are_those_of_duckdb_under_aliases_and_in_joins(environment, csv_path):
    query = "SELECT k, x FROM read_csv(['{}'], {} = 1, delim{} = ';') t(k) JOIN range(3) r(x) ON t.k = r.x ORDER BY 1"
    found = environment.sql(query.format(csv_path, "skip_rows", "iter")).to_arrow()
    expected = duckdb.sql(query.format(csv_path, "skip", "")).to_arrow_table()
    assert found.to_pydict() == expected.to_pydict() == {"k": [1, 2], "x": [1, 2]}


def test_a_schema_and_parameters_are_values(environment, csv_path):
    schema = "{'price': 'VARCHAR', 'id': 'TINYINT'}"
    query = f"SELECT * FROM read_csv($1, skip_rows = $2, delimiter = ';', schema = {schema})"
    found = environment.sql(query, [str(csv_path), 1]).to_arrow()
    assert found.schema == pa.schema([("price", pa.string()), ("id", pa.int8())])


def test_every_format_of_files_is_read(environment, tmp_path):
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "a.parquet")
    (tmp_path / "a.json").write_text('{"x": 1}\nno\n')
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    assert environment.sql(f"SELECT sum(x) s FROM read_parquet('{tmp_path}/*.parquet')").collect()[0].s == 3
    json = f"read_json('{tmp_path}/a.json', schema = {{'x': 'BIGINT'}}, on_bad_row = 'skip')"
    assert environment.sql(f"SELECT x FROM {json}").to_arrow().to_pydict() == {"x": [1]}
    assert environment.sql(f"SELECT count(*) n FROM read_text('{tmp_path}/a.txt')").collect()[0].n == 2
    with pytest.raises(PlanError, match=r"the ending does not say the format; write read_csv\('.*a\.txt', delimiter"):
        environment.sql(f"FROM '{tmp_path}/a.txt'")
    environment.from_arrow(pa.table({"x": [1, 2]})).write_excel(tmp_path / "a.xlsx")
    environment.execute()
    assert environment.sql(f"SELECT sum(x) s FROM '{tmp_path}/a.xlsx'").collect()[0].s == 3


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("read_csv('A', sep = ';')", r"line 1, column 15: read_csv\(\) has no option sep=: write delimiter="),
        ("read_cvs('A')", r"no table read_cvs\(\); a file stands in single quotes: FROM 'path'; did you mean read_csv"),
        ("read_csv()", "takes a path, or a list of paths, and options behind it"),
        ("read_csv('A', 'B')", "takes a path, or a list of paths, and options behind it"),
        ("read_csv('A', skip_rows = 1 + 1)", r"1 \+ 1 is no value of an option"),
        ("read_csv('A', schema = {'id': 'FOO'})", "column 'id': 'FOO' is no type of SQL"),
        ("read_csv('A', schema = 'id')", "schema is not of the form"),
        ("read_csv('no such file')", "no such file or folder"),
        ("read_database('A')", r"no table read_database\(\)"),
    ],
)
def test_mistakes_have_a_place_and_say_what_is_meant(environment, csv_path, call, said):
    query = call.replace("'A'", repr(str(csv_path)))
    with pytest.raises((PlanError, SchemaError), match=said):
        environment.sql(f"SELECT * FROM {query}")


def test_where_statements_may_not_name_files_these_may_not_either(csv_path):
    with Environment(config={"sql.files.enabled": False}) as env, pytest.raises(PlanError, match="may not name files"):
        env.sql(f"SELECT * FROM read_csv('{csv_path}')")
