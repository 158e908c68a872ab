"""Malformed rows that are left out are counted where people look, and kept where they are asked for."""

import csv
import json
import textwrap

import pyarrow as pa
import pytest

from engine import ConfigurationError, DreyWarning, Environment, PlanError

SCHEMA = pa.schema([("n", pa.int64()), ("t", pa.string())])
BAD = {3: ("x,3", "column 1 (n): 'x' is not int64"), 5: ("1", "1 fields, expected 2: 1")}
JOB = """
    import sys, pyarrow as pa
    from engine import Environment
    env = Environment()
    schema = pa.schema([("n", pa.int64()), ("t", pa.string())])
    data = env.read_csv("in.csv", schema=schema, on_bad_row="skip")
    data.write_csv("out")
    print(repr(env.execute("import")))
"""


def write(path, rows=2000, bad=BAD, begin=""):
    lines = [f"{n},t{n}" for n in range(1, rows + 1)]
    for line, (text, _) in bad.items():
        lines[line - 1] = text
    path.write_text(begin + "\n".join(lines) + "\n")
    return path


def kept(folder):
    rows = []
    for part in sorted(folder.iterdir()):
        with part.open(newline="") as file:
            rows += list(csv.DictReader(file))
    return rows


@pytest.fixture
def env():
    with Environment(config={"parallelism.default": 2}) as environment:
        yield environment


def test_the_result_says_how_many_rows_were_left_out(env, tmp_path):
    data = env.read_csv(write(tmp_path / "in.csv"), schema=SCHEMA, on_bad_row="skip")
    data.write_csv(tmp_path / "out")
    result = env.execute("import")
    assert result.bad_rows == 2
    assert str(result).partition("\n")[0].endswith(" s, 2 bad rows left out")
    assert "2 bad rows left out" in repr(result) and len(repr(result)) < 200
    assert result.to_json_dict()["bad_rows"] == 2


def test_the_command_says_it_and_so_does_its_json(run, tmp_path):
    write(tmp_path / "in.csv")
    (tmp_path / "job.py").write_text(textwrap.dedent(JOB))
    done = run("-m", "engine.cli.main", "job.py")
    assert "Bad Rows: 2 left out (on_bad_row='skip')" in done.stdout.splitlines()
    (tmp_path / "job.py").write_text(textwrap.dedent(JOB).replace('"out"', '"out2"'))
    done = run("-m", "engine.cli.main", "--json", "job.py")
    assert json.loads(done.stdout)["bad_rows"] == 2


def test_who_collects_is_warned(env, tmp_path):
    data = env.read_csv(write(tmp_path / "in.csv"), schema=SCHEMA, on_bad_row="skip")
    with pytest.warns(DreyWarning, match=r"^2 malformed rows were left out .*bad_rows_path=") as told:
        assert data.count() == 1998
    assert [each.filename for each in told] == [__file__]


@pytest.mark.quick
@pytest.mark.parametrize("begin", ["", "n,t\n"])
def test_rows_that_are_left_out_are_kept_with_place_and_reason(env, tmp_path, begin):
    files = [write(tmp_path / f"{name}.csv", 60_000, begin=begin) for name in "ab"]
    data = env.read_csv(files, SCHEMA, header=bool(begin), on_bad_row="skip", bad_rows_path=(tmp_path / "bad").as_uri())
    data.write_csv(tmp_path / "out")
    result = env.execute()
    assert result.bad_rows == 4
    found = [(row["file"], int(row["line"]), row["record"], row["reason"]) for row in kept(tmp_path / "bad")]
    assert found == [
        (str(file), line + bool(begin), text, reason) for file in files for line, (text, reason) in BAD.items()
    ]


def test_every_job_of_the_environment_writes_them_and_nothing_else_is_replaced(env, tmp_path):
    data = env.read_csv(write(tmp_path / "in.csv"), SCHEMA, on_bad_row="skip", bad_rows_path=tmp_path / "bad")
    for _ in range(2):
        with pytest.warns(DreyWarning):
            assert data.count() == 1998
    assert len(kept(tmp_path / "bad")) == 2
    with Environment() as other, pytest.raises(PlanError, match="bad"):
        other.read_csv(tmp_path / "in.csv", SCHEMA, on_bad_row="skip", bad_rows_path=tmp_path / "bad").count()


def test_a_source_that_is_all_malformed_is_kept_whole(env, tmp_path):
    (tmp_path / "in.csv").write_text("x\n" * 2_000)
    data = env.read_csv(tmp_path / "in.csv", SCHEMA, on_bad_row="skip", bad_rows_path=tmp_path / "bad")
    with pytest.warns(DreyWarning, match="2,000 malformed"):
        assert data.count() == 0
    assert [int(row["line"]) for row in kept(tmp_path / "bad")] == list(range(1, 2_001))


def test_a_quote_that_none_closes_is_kept_with_its_line(env, tmp_path):
    (tmp_path / "in.csv").write_text('1,a\n2,"b\n' + "3,c\n" * 10)
    data = env.read_csv(tmp_path / "in.csv", SCHEMA, on_bad_row="skip", bad_rows_path=tmp_path / "bad")
    with pytest.warns(DreyWarning):
        assert data.count() == 1
    (row,) = kept(tmp_path / "bad")
    assert (row["line"], row["reason"][:34]) == ("2", "a quote that opens here is never c")


def test_a_path_for_rows_that_are_not_left_out_is_refused(env, tmp_path):
    write(tmp_path / "in.csv")
    with pytest.raises(ConfigurationError, match=r"^bad_rows_path='.*': needs on_bad_row='skip'"):
        env.read_csv(tmp_path / "in.csv", SCHEMA, bad_rows_path=str(tmp_path / "bad"))
