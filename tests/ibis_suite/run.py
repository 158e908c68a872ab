"""Run Ibis' tests of backends against ours, and say what became of them: file by file, and as a table for the docs.

    python -m tests.ibis_suite.run [-k words] [--write page.md] [test_string.py ...]

    passed       as Ibis expects
    refused      an error names what there is not
    not asked    the test looks our name up in a table of its own, or compares the text of SQL that it knows
    different    all else: each is looked at

The tests are those of the installed package. They run in a copy of it, because they write beside themselves.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import ibis

ROOT = Path(__file__).parents[2]
KINDS = ("passed", "refused", "different", "not asked")
_REFUSED = re.compile(
    r"(OperationNotDefinedError|UnsupportedOperationError|NotYetSupportedError|PlanError|SchemaError"
    r"|NotImplementedError|UnsupportedBackendType)\b"
)
_NOT_ASKED = re.compile(r"KeyError: 'drey'|AssertionError: snapshot |_load_extensions|has no (attribute )?'fetchall'")
_SETTINGS = """[pytest]
xfail_strict = true
addopts = --strict-markers -p no:cacheprovider -p tests.ibis_suite.plugin
markers =
    {markers}
"""
_MARKERS = ["backend", "core", "notimpl", "notyet", "never", "xfail_version", "examples", "network", "benchmark"]
_BEGIN, _END = "<!-- Ibis' tests: begin -->", "<!-- Ibis' tests: end -->"


def outcomes(files: list[str], words: str = "") -> dict[str, tuple[str, str]]:
    """Return what became of each test of some files, of all for none, with the text of its error."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        shutil.copytree(Path(ibis.__file__).parent, place / "ibis", ignore=shutil.ignore_patterns("__pycache__"))
        (place / "ci" / "schema").mkdir(parents=True)
        backends = [one.name for one in (place / "ibis" / "backends").iterdir() if one.is_dir()]
        markers = "\n    ".join([*_MARKERS, "drey", *backends])
        (place / "pytest.ini").write_text(_SETTINGS.format(markers=markers))
        tests = place / "ibis" / "backends" / "tests"
        chosen = [str(tests / one) for one in files] or [str(one) for one in sorted(tests.glob("test_*.py"))]
        command = [sys.executable, "-m", "pytest", "-q", "-m", "drey", "--timeout", "120", "--tb=short", *chosen]
        command += ["-k", words] if words else []
        command += ["-n", "2"] if len(chosen) > 1 else []
        # A run of pytest within one that has several processes is none of them.
        own = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        environment = own | {"PYTHONPATH": f"{place}:{ROOT}", "IBIS_OUTCOMES": str(place / "outcomes.json")}
        done = subprocess.run(command, cwd=place, env=environment, check=False, capture_output=True, text=True)
        if not (place / "outcomes.json").exists():
            raise RuntimeError(done.stdout[-3000:] + done.stderr[-3000:])
        return json.loads((place / "outcomes.json").read_text())


def kind_of(said: str, text: str) -> str | None:
    """Return the kind of an outcome; None for a test that was left out."""
    if said in ("passed", "expected", "skipped"):
        return "passed" if said == "passed" else None
    if _NOT_ASKED.search(text):
        return "not asked"
    last = [line for line in text.splitlines() if line.startswith("E  ")][:1]
    return "refused" if last and _REFUSED.search(last[0]) else "different"


def by_file(found: dict[str, tuple[str, str]]) -> dict[str, Counter]:
    """Return numbers of kinds for each file."""
    files: dict[str, Counter] = {}
    for name, (said, text) in found.items():
        kind = kind_of(said, text)
        if kind is not None:
            files.setdefault(name.partition("::")[0].rpartition("/")[2], Counter())[kind] += 1
    return files


def table(files: dict[str, Counter]) -> str:
    """Return the numbers as a table of Markdown, the sum first."""
    total = sum(files.values(), Counter())
    rows = [("all", total), *((f"`{name}`", files[name]) for name in sorted(files))]
    lines = [f"| tests | {' | '.join(KINDS)} | share |", "|---|---:|---:|---:|---:|---:|"]
    for name, counts in rows:
        asked = sum(counts[one] for one in KINDS[:3])
        share = f"{100 * counts['passed'] / asked:.0f} %" if asked else ""
        lines.append(f"| {name} | {' | '.join(str(counts[one]) for one in KINDS)} | {share} |")
    return "\n".join(lines)


def main() -> None:
    """Run, print, and write the table into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("-k", dest="words", default="")
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    found = outcomes(arguments.files, arguments.words)
    for name, (said, text) in found.items():
        if kind_of(said, text) in ("refused", "different"):
            error = next((line for line in text.splitlines() if line.startswith("E  ")), "").removeprefix("E").strip()
            print(f"{kind_of(said, text)}: {name.rpartition('/')[2]}: {error[:160]}")
    said = table(by_file(found))
    print(said)
    if arguments.write:
        page = arguments.write.read_text()
        before, _, rest = page.partition(_BEGIN)
        arguments.write.write_text(f"{before}{_BEGIN}\n\n{said}\n\n{_END}{rest.partition(_END)[2]}")


if __name__ == "__main__":
    main()
