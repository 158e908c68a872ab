"""Lists of columns in options."""

import pytest

from engine import PlanError
from engine.spark.column_names import listed_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        (" , ", ()),
        ("a", ("a",)),
        (" user , the amount,c.d, ", ("user", "the amount", "c.d")),
        ("`a,b`,`c``d`, ` e `", ("a,b", "c`d", " e ")),
        ("größe,名", ("größe", "名")),
    ],
)
def test_names_are_apart_by_commas(text, names):
    assert listed_names("columns", text) == names


@pytest.mark.parametrize("text", ["a`b", "`a", "`a`b", "`a` `b`"])
def test_half_a_quote_is_no_name(text):
    with pytest.raises(PlanError, match="stands between backticks"):
        listed_names("columns", text)


def test_a_column_stands_there_once():
    with pytest.raises(PlanError, match="columns: column 'l' is listed twice"):
        listed_names("columns", "l, `l`")
