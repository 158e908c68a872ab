"""Texts of several statements, and what each of them is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import PlanError
from engine.statements.statements import (
    Attach,
    CopyTo,
    CreateTable,
    CreateView,
    Describe,
    Drop,
    Explain,
    InsertInto,
    Query,
    ShowTables,
    Summarize,
    split,
    statement,
)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';', \";\" -- a ; b\n; SELECT 2;;", ["SELECT ';', \";\" -- a ; b", "SELECT 2"]),
        ("/* ; */ SELECT 'it''s;' ;  -- end;", ["/* ; */ SELECT 'it''s;'"]),
        ("  ;\n-- nothing\n", []),
        ("SELECT 4 / 2 - 1", ["SELECT 4 / 2 - 1"]),
    ],
)
def test_statements_end_with_semicolons_that_stand_alone(text: str, parts: list[str]) -> None:
    assert [one.strip() for one in split(text)] == parts


def test_queries_of_statements_stand_at_their_places() -> None:
    assert statement("-- why\nCREATE VIEW v AS\n  SELECT 1") == CreateView("v", "\n\n  SELECT 1")


@given(st.lists(st.text(alphabet=";'\"-/* \nab", max_size=12), max_size=4))
def test_no_character_is_lost(parts: list[str]) -> None:
    text = ";".join(parts)
    kept = "".join(split(text))
    assert sum(kept.count(letter) for letter in "ab") <= sum(text.count(letter) for letter in "ab")
    assert all(one == one.rstrip() and one for one in split(text))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT 1", Query("SELECT 1")),
        ("-- why\nEXPLAIN SELECT 1", Explain("SELECT 1", False)),
        ("explain analyse SELECT 1", Explain("SELECT 1", True)),
        ("explain analyze\nSELECT 1", Explain("SELECT 1", True)),
        ('CREATE OR REPLACE VIEW "Big" AS SELECT 1', CreateView("Big", "SELECT 1", True)),
        ("create view Big as SELECT 1", CreateView("big", "SELECT 1")),
        ("COPY (SELECT (1)) TO 'out.csv'", CopyTo("SELECT (1)", "out.csv", "csv")),
        ("COPY (SELECT 1) TO 'it''s' (FORMAT parquet)", CopyTo("SELECT 1", "it's", "parquet")),
        (
            "COPY t TO 'a' (FORMAT csv, HEADER false, DELIMITER ';')",
            CopyTo("SELECT * FROM t", "a", "csv", {"header": False, "delimiter": ";"}),
        ),
        (
            "COPY (SELECT 1) TO 'a.parquet' (OVERWRITE, PARTITION_BY (a, b))",
            CopyTo("SELECT 1", "a.parquet", "parquet", {"overwrite": True, "partition_by": "a, b"}),
        ),
        ("create temp view Big as SELECT 1", CreateView("big", "SELECT 1")),
        ("create view if not exists Big as SELECT 1", CreateView("big", "SELECT 1", False, True)),
        ("CREATE TEMPORARY TABLE IF NOT EXISTS t AS SELECT 1", CreateTable("t", "SELECT 1", False, True)),
        ("CREATE TABLE T AS SELECT 1", CreateTable("t", "SELECT 1", False)),
        ("CREATE OR REPLACE TABLE t AS SELECT 1", CreateTable("t", "SELECT 1", True)),
        ("INSERT INTO 'a' SELECT 1", InsertInto("a", "SELECT 1")),
        ("DROP VIEW Big", Drop("big", "VIEW", False)),
        ('drop table if exists "Big"', Drop("Big", "TABLE", True)),
        ("SHOW TABLES", ShowTables()),
        ("DESCRIBE Orders", Describe("orders")),
        ("DESCRIBE 'a''b.csv';", Describe("", "SELECT * FROM 'a''b.csv'")),
        ("DESCRIBE (SELECT 1)", Describe("", "         (SELECT 1)")),
        ("summarize Orders", Summarize("SELECT * FROM Orders")),
        ("SUMMARIZE 'a b.parquet'", Summarize("SELECT * FROM 'a b.parquet'")),
        ("SUMMARIZE SELECT k\nFROM t", Summarize("SELECT k\nFROM t")),
        ("/*+ BROADCAST */ SELECT 1", Query("/*+ BROADCAST */ SELECT 1")),
        ("EXPLAIN /*+ BROADCAST(t) */ SELECT 1", Explain("/*+ BROADCAST(t) */ SELECT 1", False)),
        ("COPY(SELECT f(')'))TO 'a.csv'", CopyTo("SELECT f(')')", "a.csv", "csv")),
        ('DESCRIBE lake . "S".t', Describe('lake . "S".t')),
        ("ATTACH 'it''s' AS Lake", Attach("lake", "it's")),
        ("CREATE VIEW v", Query("CREATE VIEW v")),
        ("COPY t FROM 'a.csv'", Query("COPY t FROM 'a.csv'")),
    ],
)
def test_a_statement_is_what_its_words_say(text: str, wanted: object) -> None:
    found = statement(text)
    assert (found._replace(text=found.text.strip()) if hasattr(found, "text") else found) == wanted


def test_a_copy_says_its_format() -> None:
    with pytest.raises(
        PlanError, match=r"COPY TO 'out': write \(FORMAT parquet\|csv\|records\|json\|orc\|ipc\|excel\) behind it"
    ):
        statement("COPY (SELECT 1) TO 'out'")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("INSERT INTO nation SELECT 1", r"INSERT INTO nation: .*write INSERT INTO 'path', and behind it a query"),
        ("INSERT INTO 'path'", r"INSERT INTO 'path': .*behind it a query"),
        ("DESCRIBE 1 + 1", r"DESCRIBE: this is no name of a table, no 'file' and no query"),
        ("COPY t TO 'a' (FORMAT csv HEADER)", r"\(FORMAT csv HEADER\) are not of the form"),
        ("EXPLAIN (FORMAT json, FORMAT html) SELECT 1", "line 1, column 23: EXPLAIN: the option FORMAT is there twice"),
        ("EXPLAIN (FORMAT json) SELECT 1", r"line 1, column 9: .*write EXPLAIN \(FORMAT json, ANALYZE\) query"),
        ("EXPLAIN (FORMAT) SELECT 1", "line 1, column 9: EXPLAIN: FORMAT is not one of text, html, json"),
        ("EXPLAIN (FORMAT xml) SELECT 1", "EXPLAIN: FORMAT xml is not one of"),
        ("EXPLAIN (ANALYZE maybe) SELECT 1", "EXPLAIN: ANALYZE maybe; write ANALYZE, or ANALYZE false"),
        ("EXPLAIN (ANALYZE, ANALYSE false) SELECT 1", "EXPLAIN: no option ANALYSE"),
        ("EXPLAIN (COSTS off) SELECT 1", "EXPLAIN: no option COSTS; there are ANALYZE and FORMAT"),
        ("EXPLAIN VERBOSE SELECT 1", "line 1, column 9: EXPLAIN: behind it stands ANALYZE, or a query"),
        ("EXPLAIN", "EXPLAIN: a query stands behind it"),
        ("EXPLAIN CREATE MACRO f(a) AS a", "line 1, column 9: a query is expected here; CREATE stands alone"),
        ("CREATE VIEW v AS\n DROP MACRO f", "line 2, column 2: a query is expected here; DROP stands alone"),
        ("COPY (EXPLAIN SELECT 1) TO 'a.csv'", "line 1, column 7: a query is expected here; EXPLAIN stands alone"),
        ("COPY t TO 'a' (FORMAT csv, HEADER, HEADER false)", "COPY TO: the option HEADER is there twice"),
        ("CREATE OR REPLACE VIEW IF NOT EXISTS v AS SELECT 1", "OR REPLACE and IF NOT EXISTS say two things"),
        ("EXPLAIN SELECT 'a", "line 1, column 16: unterminated string literal"),
    ],
)
def test_what_has_another_form_is_told_it(text: str, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        statement(text)
