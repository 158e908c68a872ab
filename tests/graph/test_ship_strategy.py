"""What result types say of themselves, written down a second time."""

import pytest

from engine.errors import PlanError
from engine.graph.ship_strategy import ResultPartitionType

#: (is_persistent, is_pipelined, has_back_pressure, is supported)
RESULTS = {
    "BLOCKING": (True, False, False, True),
    "PIPELINED": (False, True, True, True),
    "PIPELINED_PERSISTENT": (True, True, True, False),
}


def test_result_types_say_how_they_are_read():
    found = {
        item.value: (item.is_persistent, item.is_pipelined, item.has_back_pressure) for item in ResultPartitionType
    }
    assert found == {name: row[:3] for name, row in RESULTS.items()}


def test_the_result_type_that_is_a_name_only_is_refused():
    for name, (*_, is_supported) in RESULTS.items():
        if is_supported:
            ResultPartitionType(name).check_supported()
        else:
            with pytest.raises(PlanError, match=r"Unsupported result partition type\."):
                ResultPartitionType(name).check_supported()
