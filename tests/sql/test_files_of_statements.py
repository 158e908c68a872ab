"""``sql.files.enabled: false``: statements have the registered tables alone, in whatever place they name a file."""

import pyarrow as pa
import pytest

from engine import Environment
from engine.errors import PlanError
from engine.statements.session import StatementSession
from engine.statements.statements import statement

NEW = "USING (SELECT 5 AS n) AS s ON t.n = s.n WHEN NOT MATCHED THEN INSERT *"


@pytest.fixture
def session():
    with Environment(config={"sql.files.enabled": False, "parallelism.default": 1}) as env:
        env.register("t", env.from_arrow(pa.table({"n": [1]})))
        yield StatementSession(env)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM '{}'",
        "SELECT * FROM t, '{}'",
        "WITH a AS (FROM '{}') SELECT * FROM a",
        "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM '{}')",
        'SELECT * FROM delta."{}"',
        f'MERGE INTO delta."{{}}" AS t {NEW}',
        'DELETE FROM delta."{}"',
        "COPY t TO '{}' (FORMAT csv)",
        "INSERT INTO '{}' SELECT 1",
        "ATTACH '{}' AS lake",
        "CREATE TABLE k AS SELECT * FROM '{}'",
    ],
)
def test_a_file_is_refused_in_each_place(session, tmp_path, text):
    path = tmp_path / "x.csv"
    path.write_text("n\n1\n")
    with pytest.raises(PlanError, match=r"statements may not name files here \(sql.files.enabled\)"):
        said = statement(text.format(path))
        if session.rows(said) is None:
            session.change(said)
    assert path.read_text() == "n\n1\n"


def test_tables_stay(session):
    session.change(statement("CREATE TABLE k AS SELECT n + 1 AS n FROM t"))
    assert session.query("SELECT n FROM k").collect()[0].n == 2
