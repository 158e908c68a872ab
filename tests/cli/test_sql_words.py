"""What the shell completes: tables behind FROM, columns of the tables of a statement, functions and words."""

import pytest

from engine.cli.sql_words import completions

TABLES = {"sales": ["shop", "price"], "shops": ["id", "City"]}


def words(before, after=""):
    return [word for _, word, _ in completions(before, before + after, TABLES)]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("SELECT * FROM sh", "", ["shops"]),
        ("select * from sales join s", "", ["sales", "shops"]),
        ("SELECT * FROM sales, sho", "", ["shops"]),
        ("\\d sa", "", ["sales"]),
        ("DESCRIBE ", "", ["sales", "shops"]),
        ("SELECT pric", " FROM sales", ["price"]),
        ("SELECT ci", " FROM shops", ['"City"']),
        ("SELECT ci", " FROM sales", []),
        ("SELECT ci", "", ['"City"']),
        ("SELECT s.", " FROM sales AS s", ["shop", "price"]),
        ("SELECT x.i", " FROM sales s JOIN shops x ON s.shop = x.id", ["id"]),
        ("SELECT count_", "", ["count_if", "count_star"]),
        ("SELECT 1 WHE", "", ["WHERE", "WHEN"]),
        ("", "", []),
        ("SELECT ", "", []),
        ("\\ti", "", []),
    ],
)
def test_what_may_stand_at_a_place(before, after, found):
    assert words(before, after) == found


def test_what_was_typed_is_what_is_replaced():
    assert list(completions("SELECT s.pr", "SELECT s.pr FROM sales s", TABLES)) == [("pr", "price", "column")]
