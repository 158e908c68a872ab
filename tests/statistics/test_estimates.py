"""What is known of an operator's output."""

from engine.graph.source_spec import ColumnStatistics
from engine.statistics.estimates import Estimates


def test_a_combination_of_keys_is_no_heavier_than_its_lightest():
    data = Estimates(1, 1, "", {"a": ColumnStatistics(heavy_keys=(("x", 0.5),)), "b": ColumnStatistics()})
    assert data.heaviest_share(("a",)) == 0.5
    assert data.heaviest_share(("a", "b")) == 0
    assert data.heaviest_share(("a", "unknown")) == 0
    assert data.heaviest_share(()) == 0
