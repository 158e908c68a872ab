"""What the documentation links to is there; its pages are built without a warning and load nothing from elsewhere."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest
import yaml

from engine import DataSet, Environment
from engine.column_expressions.string_expressions import StringExpressions
from engine.column_expressions.time_expressions import TimeExpressions
from tests.docs.pages import FOLDER, GENERATED, PAGES, anchors_of, blocks_of, relative, without_code
from tests.tidy.imports import ROOT

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
#: what a page loads by itself; a link that a reader may follow is none
_LOADED = re.compile(r"<(?:script|img|link|iframe|source)\b[^>]*\b(?:src|href)=\"?(?:https?:)?//[^\s>]*")


def test_links_lead_to_files_and_headings():
    broken = []
    for page in PAGES:
        for target in _LINK.findall(without_code(page.read_text(encoding="utf-8"))):
            if target.startswith(("http://", "https://", "mailto:")):
                continue
            name, _, anchor = target.partition("#")
            path = (page.parent / name).resolve() if name else page
            if path in GENERATED:
                continue
            if not path.exists() or (anchor and anchor not in anchors_of(path)):
                broken.append(f"{relative(page)}: {target}")
    assert broken == []


#: secrets, which first starts make
MADE = ("conf/cluster.secret", "conf/read.token", "conf/users.tokens", "conf/flight-sql.token")


def test_files_that_are_named_exist():
    missing = []
    for page in PAGES:
        for name in re.findall(r"`((?:engine|ha|tests|bin|conf|docs)/[\w./-]+)`", page.read_text(encoding="utf-8")):
            # files of the walks through the house, which whoever follows them writes, and what a cluster makes
            is_made = "numbers_" in name or name == "bin/NAME" or name in MADE
            if not is_made and not (ROOT / name).exists():
                missing.append(f"{relative(page)}: {name}")
    assert missing == []


def test_every_page_is_in_the_navigation():
    text = (ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8")
    nav = yaml.safe_load(text)["nav"]
    named = set()

    def walk(entry):
        if isinstance(entry, str):
            named.add(FOLDER / entry)
        else:
            for value in entry.values() if isinstance(entry, dict) else entry:
                walk(value)

    walk(nav)
    pages = {page for page in PAGES if page.is_relative_to(FOLDER)}
    assert named == pages | {path for path in GENERATED if path.suffix == ".md"}


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_blocks_are_found_with_their_marks_and_outputs():
    text = "a\n\n```python\nx = 1\nprint(x)\n```\n\n```text\n1\n```\n\n<!-- not run: why -->\n```python\ny\n```\n"
    first, second = blocks_of(text, "python")
    assert (first.code, first.line, first.reason, first.output) == ("x = 1\nprint(x)\n", 4, "", "1\n")
    assert (second.code, second.reason, second.output) == ("y\n", "why", None)


@pytest.mark.thorough
@pytest.mark.skipif(find_spec("mkdocs_gen_files") is None, reason="the extra docs is not installed")
def test_the_pages_are_built_without_a_warning_and_load_nothing_from_elsewhere(tmp_path):
    site = tmp_path / "site"
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "-q",
        "--config-file",
        "docs/mkdocs.yml",
        "--site-dir",
        str(site),
    ]
    quiet = {"NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=os.environ | quiet, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        assert not _LOADED.findall(page.read_text(encoding="utf-8")), page.name
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert not re.search(r"url\(\s*[\"']?(?:https?:)?//", styles)
    api = (site / "reference" / "api.html").read_text(encoding="utf-8")
    assert 'id="engine.api.data_set.DataSet.join"' in api or "DataSet.join" in api


_OWNERS = (
    (r"\b(?:ds|a|source)\.(\w+)\(", DataSet),
    (r"\benv\.(\w+)\(", Environment),
    (r"\.str\.(\w+)\(", StringExpressions),
    (r"\.dt\.(\w+)\(", TimeExpressions),
)


def unknown_names(text):
    """Yield what Drey's column of tables of equivalents names, and Drey does not have."""
    for line in text.splitlines():
        cells = line.split(" | ")
        if line.startswith("| `") and len(cells) == 2:
            for pattern, owner in _OWNERS:
                yield from (name for name in re.findall(pattern, cells[1]) if not hasattr(owner, name))


def test_tables_of_equivalents_name_what_there_is():
    pages = sorted((FOLDER / "coming-from").glob("*.md"))
    assert len(pages) == 4
    unknown = {page.stem: names for page in pages if (names := list(unknown_names(page.read_text(encoding="utf-8"))))}
    assert unknown == {}
    assert list(unknown_names("| `x` | `ds.nothing(1)`, `c.str.never()`, `ds.sort()` |")) == ["nothing", "never"]
