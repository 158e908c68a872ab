"""The harness itself: small programs hold, and what is wrong is seen."""

import contextlib
from pathlib import Path

import duckdb
import pytest

from tests.acceptance import __main__ as command
from tests.acceptance.expectations import Expectations
from tests.acceptance.limits import MEGABYTE
from tests.acceptance.programs import MANY_GROUPS
from tests.acceptance.tables import Tables

SMALL = ["--managed", "160kb", "--scale", "10"]
#: results that are not what was asked for, made of the right one
WRONG = {
    "a row is missing": "SELECT * FROM rows OFFSET 1",
    "a row is twice": "SELECT * FROM rows UNION ALL (SELECT * FROM rows LIMIT 1)",
    "a value is another": "SELECT * REPLACE (CASE WHEN g = 7 THEN least || 'x' ELSE least END AS least) FROM rows",
    "a value is null": "SELECT * REPLACE (CASE WHEN g = 7 THEN NULL ELSE total END AS total) FROM rows",
    "a float is another": "SELECT * REPLACE (CASE WHEN g = 7 THEN mean + 0.01 ELSE mean END AS mean) FROM rows",
    "a float is none": "SELECT * REPLACE (CASE WHEN g = 7 THEN 'nan' ELSE mean END AS mean) FROM rows",
    "a column is missing": "SELECT * EXCLUDE (head) FROM rows",
    "two rows stand for one another": "SELECT * FROM rows ORDER BY g // 2 DESC, g",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("acceptance")


def run(folder, *words):
    return command.main([*SMALL, "--folder", str(folder), *words])


def test_small_programs_hold_one_after_another(folder, capsys):
    assert run(folder, "--programs", "many_groups,csv_to_csv", "--rounds", "1") == 0
    said = capsys.readouterr().out
    assert "all of it holds" in said
    assert said.count("| yes |") == 2
    assert [path.name for path in folder.iterdir()] == [f"{160 << 10}-10"]


def test_a_process_that_goes_beyond_its_bound_is_seen(folder, capsys, monkeypatch):
    monkeypatch.setattr(command, "bound_bytes", lambda *_: MEGABYTE)
    assert run(folder, "--programs", "many_groups") == 1
    assert "all of it holds" not in capsys.readouterr().out


@pytest.fixture(scope="module")
def right(folder):
    """Expectations, paths, and a function that writes SQL over the right rows as a result."""
    tables = Tables(folder / f"{160 << 10}-10", 160 << 10, 10)
    paths = {name: str(tables.path(name)) for name in MANY_GROUPS.tables}

    def written(query, place):
        place.mkdir()
        with duckdb.connect() as connection:
            connection.execute(f"CREATE TABLE facts AS FROM '{Path(paths['facts'])}'")
            connection.execute(f"CREATE TABLE rows AS {MANY_GROUPS.sql} ORDER BY g DESC")
            connection.execute(f"COPY ({query}) TO '{place}/part-00000.parquet' (FORMAT parquet)")
        return place

    with contextlib.closing(Expectations(tables.folder)) as expectations:
        yield lambda query, place: expectations.difference(MANY_GROUPS, paths, written(query, place))


def test_the_right_rows_are_right(right, tmp_path):
    assert right("SELECT * FROM rows", tmp_path / "out") == ""


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_result_is_seen(right, tmp_path, name):
    assert right(WRONG[name], tmp_path / "out")
