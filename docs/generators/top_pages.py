"""Writes changelog.md and contributing.md: copies of the files at the top, their links turned into those of pages.

The changelog begins with the version that the documentation is of.
"""

import re
from pathlib import Path

import mkdocs_gen_files

from engine import __version__

_TOP = Path(__file__).resolve().parents[2]

for _name in ("CHANGELOG.md", "CONTRIBUTING.md"):
    _text = (_TOP / _name).read_text(encoding="utf-8")
    if _name == "CHANGELOG.md":
        _text = _text.replace("\n\n", f"\n\nThis is the documentation of version {__version__}.\n\n", 1)
    with mkdocs_gen_files.open(_name.lower(), "w") as _page:
        _page.write(re.sub(r"\]\(docs/pages/", "](", _text))
