"""A chosen part of Ibis' tests of backends: what does not pass is refused by name, and no value is another one."""

import pytest

pytest.importorskip("ibis")
pytest.importorskip("pytest_snapshot")
pytest.importorskip("filelock")
from tests.ibis_suite.run import by_file, kind_of, outcomes, table

FILES = ["test_asof_join.py", "test_conditionals.py", "test_join.py", "test_set_ops.py", "test_window.py"]
#: tests of other data than ours, and of what pandas makes of columns that have no values
DIFFERENT = ("test_filtering_join", "test_join_then_filter_no_column_overlap", "test_mutate_then_join_no_column")


def test_the_kinds_of_outcomes():
    refused = "E   ibis.common.exceptions.OperationNotDefinedError: Compilation rule for 'Hash' is not defined"
    found = {
        "a/test_x.py::one": ("passed", ""),
        "a/test_x.py::two": ("failed", f"place\n{refused}"),
        "a/test_x.py::three": ("failed", "E   KeyError: 'drey'"),
        "a/test_x.py::four": ("failed", "E   assert 1 == 2"),
        "a/test_x.py::five": ("expected", ""),
    }
    assert [kind_of(*one) for one in found.values()] == ["passed", "refused", "not asked", "different", None]
    assert table(by_file(found)).splitlines()[2] == "| all | 1 | 1 | 1 | 1 | 33 % |"


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_what_does_not_pass_is_refused():
    found = outcomes(FILES)
    kinds = {name: kind_of(*one) for name, one in found.items()}
    different = [name for name, kind in kinds.items() if kind == "different" and not any(x in name for x in DIFFERENT)]
    assert different == []
    assert sum(kind == "passed" for kind in kinds.values()) >= 160
