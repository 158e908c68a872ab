"""The words that types allow are those that calls take."""

from typing import get_args

import pytest

from engine import choices
from engine.api.join_arguments import join_type
from engine.api.row_calls import _KEEP
from engine.csv.options import ON_BAD_ROW
from engine.graph.said_operators import AsofDirection
from engine.outputs.sink_options import MODES


def test_each_join_type_of_the_types_is_one_of_the_calls():
    kinds = {join_type(how) for how in get_args(choices.JoinHow)}
    assert {kind.value for kind in kinds} == {"inner", "left", "right", "full", "semi", "anti", "cross"}


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        (choices.AsofDirection, [each.value for each in AsofDirection]),
        (choices.KeepRow, _KEEP),
        (choices.OnBadRow, ON_BAD_ROW),
        (choices.WriteMode, MODES),
    ],
)
def test_words_are_those_that_are_checked(words, taken):
    assert set(get_args(words)) == set(taken)
