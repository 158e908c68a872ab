"""What a notebook shows: a table, and text that unfolds.

    <table> head, rows </table>      table_html(("column", "type"), rows)
    ▸ plan                           folded_html("plan", text)

Values are escaped; there is neither script nor style that would reach beyond, so any notebook may show it.

Held by: tests/test_shown_html.py
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from engine.shown_text import shown

_LEFT = ' style="text-align:left"'
_RIGHT = ' style="text-align:right"'


def table_html(head: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Collection[int] = ()) -> str:
    """Return a table; values as text, those of the columns ``numbers`` at the right. Without a head there is none."""
    lines = [_row("td", row, numbers) for row in rows]
    if head:
        lines.insert(0, _row("th", head, numbers))
    return f"<table>{''.join(lines)}</table>"


def folded_html(title: str, text: str, *, is_open: bool = False) -> str:
    """Return text of fixed width beneath a title, shown when that is clicked."""
    opened = " open" if is_open else ""
    return f"<details{opened}><summary>{_escaped(title)}</summary><pre>{_escaped_text(text)}</pre></details>"


def headed_html(title: str, *parts: str) -> str:
    """Return parts in HTML beneath a title."""
    return f"<div><b>{_escaped(title)}</b>{''.join(parts)}</div>"


def _row(kind: str, values: Sequence[object], numbers: Collection[int]) -> str:
    cells = (
        f"<{kind}{_RIGHT if place in numbers else _LEFT}>{_escaped(str(value))}</{kind}>"
        for place, value in enumerate(values)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _escaped(text: str) -> str:
    import html  # noqa: PLC0415 - start-up time

    return html.escape(shown(text))


def _escaped_text(text: str) -> str:
    return "\n".join(map(_escaped, text.splitlines()))
