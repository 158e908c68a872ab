"""HTML from plain values: whatever is text is escaped, so that no name of a job becomes a part of a page.

    tag("p", "a < b", tag("b", 3), class_="note")   ─►   <p class="note">a &lt; b<b>3</b></p>

Only ``Html`` passes unescaped, and only ``tag``, ``join`` and ``page`` make it.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --mark: #2563eb; }
* { box-sizing: border-box; }
body { font: 14px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 1200px; padding: 24px; }
h1 { font-size: 22px; margin: 0 0 4px; } h2 { font-size: 16px; margin: 28px 0 8px; }
a { color: var(--mark); text-decoration: none; } a:hover { text-decoration: underline; }
table { border-collapse: collapse; width: 100%; } td, th { padding: 5px 10px; text-align: left; }
th { border-bottom: 2px solid var(--line); font-weight: 600; white-space: nowrap; }
td { border-bottom: 1px solid var(--line); vertical-align: top; } .number { text-align: right; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; } .quiet { opacity: .65; }
.cards { display: flex; flex-wrap: wrap; gap: 12px; margin: 16px 0; }
.card { background: var(--soft); border: 1px solid var(--line); border-radius: 8px; padding: 10px 16px; }
.card b { display: block; font-size: 22px; line-height: 1.2; }
.state { border-radius: 4px; color: #fff; font-size: 12px; padding: 1px 7px; background: #6b7280; }
.RUNNING { background: #2563eb; } .FINISHED { background: #15803d; } .FAILED, .FAILING { background: #b91c1c; }
.CANCELED, .CANCELLING, .CANCELING { background: #a16207; } .RESTARTING { background: #c2410c; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 8px; overflow: auto; padding: 12px; }
details { margin: 6px 0; } summary { cursor: pointer; } code { font-size: 13px; }
svg { display: block; max-width: 100%; } svg text { fill: currentColor; font: 12px system-ui, sans-serif; }
svg rect { fill: var(--soft); stroke: var(--line); stroke-width: 1.5; }
rect.RUNNING { stroke: #2563eb; } rect.FINISHED { stroke: #15803d; } rect.FAILED { stroke: #b91c1c; }
svg path { fill: none; stroke: currentColor; opacity: .45; }
""".strip()


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, *children: object, **attributes: object) -> Html:
    """Return an element; a trailing underscore of an attribute is dropped, others become hyphens."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"' for key, value in attributes.items()
    )
    return Html(f"<{name}{written}>{join(children)}</{name}>")


def join(children: Iterable[object]) -> Html:
    """Return all children one after the other, those that are no HTML escaped."""
    return Html("".join(child if isinstance(child, Html) else html.escape(str(child)) for child in children))


def table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> Html:
    """Return a table; a head that ends with ``#`` is of a column of numbers."""
    names = list(heads)
    classes = [{"class_": "number"} if name.endswith("#") else {} for name in names]
    head = [tag("th", name.removesuffix("#"), **kind) for name, kind in zip(names, classes, strict=True)]
    body = [tag("tr", *(tag("td", cell, **kind) for cell, kind in zip(row, classes, strict=True))) for row in rows]
    return tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body))


def page(title: str, *content: object, refresh_s: int | None = None) -> Html:
    """Return a whole page. ``refresh_s``: the browser loads it again after that time."""
    head = [
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", title),
        Html(f"<style>{_STYLE}</style>"),
    ]
    if refresh_s is not None:
        head.append(Html(f'<meta http-equiv="refresh" content="{int(refresh_s)}">'))
    return Html(f"<!doctype html>\n{tag('html', tag('head', *head), tag('body', *content), lang='en')}\n")
