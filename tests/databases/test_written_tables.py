"""Names of tables, outputs and attempts; statements in which nothing of a user gets out of its quotes."""

import pytest

from engine.databases.written_queries import create_text, insert_text, union_text
from engine.databases.written_table import (
    STAGING_LENGTH,
    WrittenColumn,
    WrittenTable,
    check_arguments,
    named_table,
    output_name,
    place_of,
    staging_prefix,
    staging_table,
)
from engine.errors import ConfigurationError, SchemaError
from engine.ids import JobId


@pytest.mark.parametrize(("schema", "table"), [("public", "t"), ("", "t"), ("a.b", "c/d#e.f"), ("", 'x "y"')])
def test_an_output_tells_its_place(schema, table):
    uri = "postgresql://me@host/db?host=%2Ftmp"
    assert place_of(output_name(uri, schema, table)) == (uri, schema, table)


def test_tables_of_attempts_have_names_of_their_own():
    prefix = staging_prefix("u#t", JobId("0" * 32))
    assert len(prefix) == STAGING_LENGTH
    assert prefix != staging_prefix("u#s", JobId("0" * 32))
    assert len({staging_table(prefix, name) for name in ("0-00000-a-00000", "0-00001-a-00000")}) == 2
    assert len(staging_table(prefix, "x" * 100)) < 63


def test_tables_are_named_with_or_without_a_schema():
    assert named_table("t") == ("", "t")
    assert named_table("s.t") == ("s", "t")
    assert named_table('"a.b"') == ("", "a.b")
    assert named_table('s."say ""t"""') == ("s", 'say "t"')
    assert named_table('a "b" c') == ("", 'a "b" c')
    for wrong in ("", "a.b.c", ".t", "s.", '"a', '"a"b', '"".t'):
        with pytest.raises(ConfigurationError, match=r"name a table, or schema\.table"):
            named_table(wrong)


@pytest.mark.parametrize(
    ("table", "mode", "on", "columns", "error", "words"),
    [
        ("t", "replace", (), ["a"], ConfigurationError, "choose one of error, append, overwrite, upsert"),
        ("t", "upsert", (), ["a"], ConfigurationError, "takes on="),
        ("t", "append", ("a",), ["a"], ConfigurationError, "is of mode='upsert'"),
        ("t", "upsert", ("b",), ["a"], SchemaError, "name columns once each, of a"),
        ("t", "upsert", ("a", "a"), ["a"], SchemaError, "once each"),
        ("t", "error", (), [], SchemaError, "no columns"),
        ("t", "error", (), [""], SchemaError, "has no name"),
        ("t", "error", (), ["ä" * 32], SchemaError, "more than 63 bytes"),
        ("t\0", "error", (), ["a"], SchemaError, "or a NUL"),
    ],
)
def test_arguments_that_do_not_fit_are_errors(table, mode, on, columns, error, words):
    with pytest.raises(error, match=words):
        check_arguments(table, mode, on, columns)


def test_statements_quote_names():
    columns = (WrittenColumn('a"', "text", "CAST({} AS uuid)"), WrittenColumn("b", "bigint"))
    written = WrittenTable("u", False, "postgresql", "s", "t", "upsert", columns, ("b",))
    assert create_text(written, '"s"."t"') == 'CREATE TABLE "s"."t" ("a""" text, "b" bigint, PRIMARY KEY ("b"))'
    assert insert_text(written, '"t"', union_text(written, ["x", "y"])) == (
        'INSERT INTO "t" ("a""", "b") SELECT CAST(s."a""" AS uuid), s."b" FROM'
        ' (SELECT "a""", "b" FROM x UNION ALL SELECT "a""", "b" FROM y) AS s'
        ' WHERE true ON CONFLICT ("b") DO UPDATE SET "a""" = excluded."a"""'
    )
