"""HTML from plain values: text is escaped and its controls written out; no name of a job becomes a part of a page.

    tag("p", "a < b", tag("b", 3), class_="note")   ─►   <p class="note">a &lt; b<b>3</b></p>

Only ``Html`` passes unescaped, and only the functions here make it.

Held by: tests/rest/test_status_pages.py
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from engine.shown_text import shown

_STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #16181d; --quiet: #565c68; --line: #d3d7de; --soft: #f5f6f8;
  --mark: #1d4ed8; --good: #15803d; --bad: #b91c1c; --going: #2563eb; --warn: #a16207; }
@media (prefers-color-scheme: dark) { :root { --back: #14161a; --text: #e7e9ee; --quiet: #a4abb8; --line: #3a3f49;
  --soft: #1e2127; --mark: #8ab4f8; --good: #4ade80; --bad: #f87171; --going: #60a5fa; --warn: #fbbf24; } }
* { box-sizing: border-box; }
body { background: var(--back); color: var(--text); font: 14px/1.5 system-ui, sans-serif; margin: 0 auto;
  max-width: 1280px; padding: 24px; }
h1 { font-size: 22px; margin: 0 0 4px; overflow-wrap: anywhere; } h2 { font-size: 16px; margin: 28px 0 8px; }
a { color: var(--mark); text-decoration: none; } a:hover { text-decoration: underline; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
td, th { padding: 5px 10px; text-align: left; } td { border-bottom: 1px solid var(--line); vertical-align: top; }
th { border-bottom: 2px solid var(--line); font-weight: 600; vertical-align: bottom; }
caption { height: 1px; overflow: hidden; position: absolute; width: 1px; clip-path: inset(50%); }
td.name { min-width: 180px; overflow-wrap: anywhere; } .number { text-align: right; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; } td.fixed { white-space: nowrap; }
.quiet { color: var(--quiet); } .cards { display: flex; flex-wrap: wrap; gap: 12px; margin: 16px 0; }
.card { background: var(--soft); border: 1px solid var(--line); border-radius: 8px; padding: 8px 14px; }
.card b { display: block; font-size: 20px; line-height: 1.3; }
.state { border-radius: 4px; color: #fff; font-size: 12px; padding: 1px 7px; background: #5b6270; }
h1 .state { vertical-align: middle; }
.RUNNING { background: #2563eb; } .FINISHED { background: #15803d; } .FAILED, .FAILING { background: #b91c1c; }
.CANCELED, .CANCELLING, .CANCELING { background: #8f5600; } .RESTARTING { background: #b83a08; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 8px; overflow: auto; padding: 12px;
  margin: 6px 0; }
details { margin: 6px 0; } summary { cursor: pointer; overflow-wrap: anywhere; } code { font-size: 13px; }
svg { display: block; } svg text { fill: var(--text); font: 12px system-ui, sans-serif; }
svg .name { font-weight: 600; } svg .label { fill: var(--quiet); font-size: 11px; }
svg rect { fill: var(--soft); stroke: var(--line); stroke-width: 1.5; }
rect.RUNNING { stroke: var(--going); } rect.FINISHED { stroke: var(--good); } rect.FAILED { stroke: var(--bad); }
rect.CANCELED, rect.CANCELING { stroke: var(--warn); }
svg path { fill: none; stroke: var(--quiet); }
@media (max-width: 640px) { body { padding: 12px; } td, th { padding: 5px 6px; } }
""".strip()


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, *children: object, **attributes: object) -> Html:
    """Return an element; a trailing underscore of an attribute is dropped, others become hyphens."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(shown(str(value)))}"' for key, value in attributes.items()
    )
    return Html(f"<{name}{written}>{join(children)}</{name}>")


def join(children: Iterable[object]) -> Html:
    """Return all children one after the other, those that are no HTML escaped."""
    return Html("".join(child if isinstance(child, Html) else html.escape(shown(str(child))) for child in children))


def table(caption: str, heads: Iterable[str], rows: Iterable[Iterable[object]]) -> Html:
    """Return a table that scrolls sideways where it is too wide.

    ``caption`` is for people who do not see it. The last character of a head says what its column has: ``#`` numbers,
    ``*`` names, which may be long, ``!`` text that is not broken into lines.
    """
    kinds = {"#": "number", "*": "name", "!": "fixed"}
    names = list(heads)
    classes = [{"class_": kinds[name[-1]]} if name[-1:] in kinds else {} for name in names]
    head = [tag("th", name.rstrip("#*!"), scope="col", **kind) for name, kind in zip(names, classes, strict=True)]
    body = [tag("tr", *(tag("td", cell, **kind) for cell, kind in zip(row, classes, strict=True))) for row in rows]
    whole = tag("table", tag("caption", caption), tag("thead", tag("tr", *head)), tag("tbody", *body))
    return scrolled(caption, whole)


def scrolled(label: str, content: Html) -> Html:
    """Return an element that may be wider than the page, and that the keyboard can scroll, too."""
    return tag("div", content, class_="scroll", role="region", aria_label=label, tabindex=0)


def link(path: str, text: object) -> Html:
    """Return a link."""
    return tag("a", text, href=path)


def card(label: str, value: object) -> Html:
    """Return a number that is to be seen first."""
    return tag("div", tag("b", value), label, class_="card")


def cards(labelled: Iterable[tuple[str, object]]) -> Html:
    """Return several in a row."""
    return tag("div", *(card(label, value) for label, value in labelled), class_="cards")


def state_badge(state: str) -> Html:
    """Return a state, in its colour."""
    known = state if state.isalpha() else ""
    return tag("span", state, class_=f"state {known}")


def page(
    title: str,
    *content: object,
    refresh_s: int | None = None,
    style: str = "",
    policy: str = "",
    head: Iterable[Html] = (),
) -> Html:
    """Return a whole page.

    refresh_s: the browser loads it again after that time; style: rules beside those of all pages; policy: what the page
    may load, for one that is opened as a file; head: more of its head.
    """
    begin = [
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", title),
        Html(f"<style>{_STYLE}{style}</style>"),
        *head,
    ]
    if policy:
        begin.insert(1, Html(f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">'))
    if refresh_s is not None:
        begin.append(Html(f'<meta http-equiv="refresh" content="{int(refresh_s)}">'))
    return Html(f"<!doctype html>\n{tag('html', tag('head', *begin), tag('body', tag('main', *content)), lang='en')}\n")
