"""What bounds say of a predicate is found once for a file, and anew for one that has changed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.expressions.literals import make_literal
from engine.graph.expression import Call, ColumnRef, Expression
from engine.parquet import page_bounds, row_group_bounds
from engine.parquet.footers import kept_number
from engine.parquet.kept_answers import kept_answer
from engine.parquet.open_file import OpenFile

SCHEMA = pa.schema([("a", pa.int64())])


def less(limit: int) -> Expression:
    return Call("less", (ColumnRef("a"), make_literal(limit)))


def write(path: Path, first: int) -> None:
    table = pa.table({"a": list(range(first, first + 4000))}, SCHEMA)
    pq.write_table(table, path, row_group_size=2000, write_page_index=True, data_page_size=512, write_batch_size=100)


def answers(path: Path, limit: int) -> tuple[list[int], list[tuple[int, int]] | None]:
    file = OpenFile(str(path), ["a"])
    try:
        groups = row_group_bounds.possible_groups(file.footer, [0, 1], less(limit), SCHEMA)
        return groups, file.indexes.possible_rows(0, less(limit), SCHEMA)
    finally:
        file.close()


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record each examination of bounds."""
    found: list[str] = []
    for module, name in ((row_group_bounds, "possible_rows"), (page_bounds, "of_pages")):
        whole = getattr(module, name)

        def recorded(*arguments: object, name: str = name, whole: object = whole) -> object:
            found.append(name)
            return whole(*arguments)  # type: ignore[operator]

        monkeypatch.setattr(module, name, recorded)
    return found


def test_the_same_question_is_examined_once(tmp_path: Path, examined: list[str]) -> None:
    path = tmp_path / "a.parquet"
    write(path, 0)
    first = answers(path, 150)
    assert first[0] == [0]
    assert first[1] is not None
    assert first[1][0][0] == 0
    assert 150 <= first[1][-1][1] < 2000
    assert examined == ["possible_rows", "of_pages"]
    first[0].append(7)  # the caller's own
    assert answers(path, 150) == ([0], first[1])
    assert len(examined) == 2
    assert answers(path, 3000)[0] == [0, 1]
    assert len(examined) == 4


def test_a_file_that_has_changed_is_examined_anew(tmp_path: Path, examined: list[str]) -> None:
    path = tmp_path / "a.parquet"
    write(path, 0)
    assert answers(path, 100)[0] == [0]
    write(path, -4000)
    assert answers(path, 100) == ([0, 1], None)
    write(path, 5000)
    assert answers(path, 100)[0] == []
    assert examined == ["possible_rows", "of_pages"] * 3


def test_nothing_is_kept_of_a_footer_that_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(path, 0)
    footer, found = pq.read_metadata(path), []
    assert kept_number(footer) is None
    for _ in range(2):
        kept_answer(footer, 0, less(1), SCHEMA, lambda: found.append(1))
    assert found == [1, 1]
