"""HTML that notebooks show: a table, and text that unfolds.

    <table> head, rows </table>      table_html(("column", "type"), rows)        None is a null in italics
    ▸ plan                           folded_html("plan", text)

Values are escaped; there is neither script nor style that would reach beyond, so any notebook may show it.

Held by: tests/test_shown_html.py
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from engine.shown_text import shown

_LEFT = ' style="text-align:left"'
_RIGHT = ' style="text-align:right"'


def table_html(
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    below: Sequence[str] = (),
    numbers: Collection[int] = (),
) -> str:
    """Return a table; values as text, those of the columns ``numbers`` at the right. Without a head there is none.

    below: a second line of the head, in small letters.
    """
    lines = [_row("td", row, numbers) for row in rows]
    if head:
        lines.insert(0, _row("th", head, numbers, below))
    return f"<table>{''.join(lines)}</table>"


def folded_html(title: str, text: str, *, is_open: bool = False) -> str:
    """Return text of fixed width beneath a title, shown when that is clicked."""
    opened = " open" if is_open else ""
    return f"<details{opened}><summary>{_escaped(title)}</summary><pre>{_escaped_text(text)}</pre></details>"


def headed_html(title: str, *parts: str) -> str:
    """Return parts in HTML beneath a title."""
    return f"<div><b>{_escaped(title)}</b>{''.join(parts)}</div>"


def note_html(text: str) -> str:
    """Return a line below a table."""
    return f"<small>{_escaped(text)}</small>"


def _row(kind: str, values: Sequence[object], numbers: Collection[int], below: Sequence[str] = ()) -> str:
    texts = ["<i>null</i>" if value is None else _escaped(str(value)) for value in values]
    if below:
        texts = [f"{text}<br><small>{_escaped(each)}</small>" for text, each in zip(texts, below, strict=True)]
    cells = (f"<{kind}{_RIGHT if place in numbers else _LEFT}>{text}</{kind}>" for place, text in enumerate(texts))
    return f"<tr>{''.join(cells)}</tr>"


def _escaped(text: str) -> str:
    import html

    return html.escape(shown(text))


def _escaped_text(text: str) -> str:
    return "\n".join(map(_escaped, text.splitlines()))
