"""Schemas of plans: columns selected, renamed, and missed by name."""

from __future__ import annotations

import pytest

from engine.errors import SchemaError
from tests.optimizer.plan_building import schema


def test_select_takes_columns_in_the_order_asked_for():
    whole = schema(a="int64", b="string", c="double")
    assert whole.select(["c", "a"]).names == ("c", "a")
    assert whole.select(["c"]).column("c") == whole.column("c")


def test_rename_keeps_types_and_order():
    renamed = schema(a="int64", b="string").rename({"b": "z"})
    assert renamed.names == ("a", "z")
    assert renamed.column("z").ipc == schema(b="string").column("b").ipc


def test_an_unknown_column_is_an_error_that_names_those_there_are():
    with pytest.raises(SchemaError, match="no column 'x'; there are: a, b"):
        schema(a="int64", b="string").select(["x"])


def test_index_and_width():
    whole = schema(a="int64", b="string", c="int32")
    assert whole.index("c") == 2
    assert whole.row_width_bytes == 28
