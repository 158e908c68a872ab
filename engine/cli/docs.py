"""``flink-run docs [PAGE]``: the documentation in a browser, from the files of a wheel or of ``make docs``.

Held by: tests/cli/test_docs.py
"""

from __future__ import annotations

import argparse
import sys
import webbrowser
from pathlib import Path

from engine.config.home import documentation
from engine.near_names import near_names


def open_docs(options: argparse.Namespace) -> int:
    """Open a page, or print its path; return 1 where there is none."""
    first = documentation()
    if not first.is_file():
        print(f"no documentation at {first.parent}: make docs builds it, make docs wheel packs it", file=sys.stderr)
        return 1
    page = _page(first.parent, options.page)
    if page is None:
        pages = [str(path.relative_to(first.parent).with_suffix("")) for path in sorted(first.parent.rglob("*.html"))]
        near = near_names(options.page, pages, 3) or [name for name in pages if options.page in name][:3]
        said = f"; did you mean {', '.join(near)}?" if near else ""
        print(f"no page {options.page!r}{said}", file=sys.stderr)
        return 1
    print(page)
    if not options.path:
        webbrowser.open(page.as_uri())
    return 0


def _page(folder: Path, name: str) -> Path | None:
    """Return the file of a page, which stays within the documentation: ``guide/sql``, or a folder with an index."""
    for found in (folder / f"{name.removesuffix('.html')}.html", folder / name / "index.html"):
        if found.is_file() and found.resolve().is_relative_to(folder.resolve()):
            return found
    return None
