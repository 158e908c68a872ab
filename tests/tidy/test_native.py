"""What the Cython compiler says of a release build: no hint, no warning; and its annotation, read line by line.

Where the build has kept both (DREY_ANNOTATE, see setup.py), nothing is translated. Else what the compiler made lies in
build/annotated: only modules whose sources have changed since are translated again, and all of them when it has
complained, so that it says so again.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.tidy.annotation import scores, stands
from tests.tidy.imports import ROOT

_SCRIPT = """
import os, sys
os.chdir({root!r}); sys.path.insert(0, {root!r})
import setup
from pathlib import Path
from Cython.Build import cythonize
from setuptools import Extension
sources = sorted(Path("engine").rglob("*.pyx"))
modules = [Extension(".".join(source.with_suffix("").parts), [str(source)]) for source in sources]
directives = setup.DIRECTIVES | setup.RELEASE_DIRECTIVES
cythonize(modules, compiler_directives=directives, build_dir={build!r}, nthreads=2, annotate=True,
          shared_utility_qualified_name=setup.SHARED)
"""

#: where a kernel takes the GIL other than to raise, and how often
_TAKES_GIL = {
    "aggregate/group_table.pyx add": "decodes keys that came as codes: once a batch with a group that is not known",
    "transport/wire.pyx seal_and_send": "TLS is Python's: once for 16 KiB",
    "transport/wire.pyx receive_opened": "TLS is Python's: once for 16 KiB",
    "iomanager/lz4_codec.pyx lz4_compress": "without the C functions of the lz4 package: once a block",
    "iomanager/lz4_codec.pyx lz4_decompress": "without the C functions of the lz4 package: once a block",
    "iomanager/request_queue.pyx submit": "to give it back while it waits, if the caller has it",
    "iomanager/request_queue.pyx wait_pending": "to give it back while it waits, if the caller has it",
    "iomanager/spill_writer.pyx next_extent": "a disk is full: the file goes on in another folder",
    "iomanager/spill_writer.pyx fail_stream": "a failure",
    "iomanager/spill_writer.pyx _queue_block": "opens the file with the first block",
    "records/outside_keys.pyx _compare_or_note": "two values that lie in files, alike in what lies here",
}
_RAISES = re.compile(r"raise\b|self\._raise_|self\._refuse")

#: loops over the rows of a batch that keep the GIL
_KEEPS_GIL = {
    "aggregate/outside_states.pyx read_values": "reads files",
    "join/match_output.pyx piece": "only where build rows have wide values",
    "join/matched_rows.pyx read": "block-wise join, a nanosecond a row",
    "join/matched_rows.pyx write": "block-wise join, a nanosecond a row",
    "memory/manager.pyx allocate": "makes one Python object a page",
    "records/row_columns.pyx _without_missing": "outer joins, a nanosecond a row",
    "records/row_columns.pyx _read_resolved": "reads files",
    "records/nested_reader.pyx _offsets": "nested columns, a nanosecond a value",
    "records/outside_values.pyx move_outside": "writes files",
    "sort/external_sorter.pyx _keep_first": "at most 256 KiB of rows, once a full memory",
    "sort/sorted_run.pyx _samples_of_file": "at most 256 entries of an index",
    "sort/sorted_run.pyx samples": "some hundred rows of a run",
}
_ROW_LOOP = re.compile(r"\s+for \w+ in range\(.*?\b(row_)?count(\[0\])?\):")


@pytest.fixture(scope="module")
def compiled():
    """The folder with the annotation, and what the compiler said."""
    import Cython

    import setup

    if is_annotated(setup.SAID):
        return ROOT, setup.SAID.read_text(encoding="utf-8").splitlines()
    settings = f"{Cython.__version__} {sys.version} {(ROOT / 'setup.py').read_text(encoding='utf-8')}"
    folder = ROOT / "build" / "annotated" / hashlib.sha256(settings.encode()).hexdigest()[:16]
    script = _SCRIPT.format(root=str(ROOT), build=str(folder))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    lines = (done.stdout + done.stderr).splitlines()
    if done.returncode != 0 or complaints(lines):
        shutil.rmtree(folder, ignore_errors=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, lines


def is_annotated(said, folder=ROOT / "engine"):
    """Whether the build has annotated all sources as they are, and kept what was said."""
    sources = [path for pattern in ("*.pyx", "*.pxd") for path in folder.rglob(pattern)]
    pages = [path.with_suffix(".html") for path in sources if path.suffix == ".pyx"]
    if not said.exists() or not all(page.exists() for page in pages):
        return False
    return min(page.stat().st_mtime for page in pages) >= max(source.stat().st_mtime for source in sources)


def complaints(lines):
    """Return the hints and warnings among what the compiler said."""
    return [line for line in lines if "hint" in line or "warning" in line]


def _sources():
    for path in sorted((ROOT / "engine").rglob("*.pyx")):
        yield path.relative_to(ROOT / "engine"), path.read_text(encoding="utf-8")


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_the_release_build_gives_neither_hints_nor_warnings(compiled):
    assert complaints(compiled[1]) == []


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_what_runs_without_the_gil_calls_nothing_of_python(compiled):
    """The annotation has no coloured line there, but for those that take the GIL, of which we know why."""
    found = set()
    for path, source in _sources():
        lines, where = source.splitlines(), stands(source)
        annotation = scores((compiled[0] / "engine" / path.with_suffix(".html")).read_text(encoding="utf-8"))
        assert len(annotation) >= 0.95 * len(lines), f"the annotation of {path} is not understood"
        assert max(annotation.values()) > 0
        for number, score in annotation.items():
            stand, line = where[number], lines[number - 1].strip()
            if score > 0 and not stand.holds_gil:
                assert line.startswith("with gil"), f"{path}:{number}: {line}"
        for number, line in enumerate(lines, 1):
            if line.strip().startswith("with gil") and not _RAISES.match(lines[number].strip()):
                found.add(f"{path} {where[number].function}")
    assert found == set(_TAKES_GIL)


def test_loops_over_rows_do_without_the_gil():
    found = set()
    for path, source in _sources():
        where = stands(source)
        for number, line in enumerate(source.splitlines(), 1):
            if _ROW_LOOP.match(line) and where[number].holds_gil:
                found.add(f"{path} {where[number].function}")
    assert found == set(_KEEPS_GIL)


def test_what_the_build_has_annotated_counts_as_long_as_no_source_is_newer(tmp_path):
    said, source, page, other = (tmp_path / name for name in ("said", "a.pyx", "a.html", "b.pxd"))
    for second, path in enumerate((source, other, page)):
        path.touch()
        os.utime(path, (second, second))
    assert not is_annotated(said, tmp_path)
    said.touch()
    assert is_annotated(said, tmp_path)
    os.utime(other, (5, 5))
    assert not is_annotated(said, tmp_path)
    os.utime(other, (1, 1))
    page.unlink()
    assert not is_annotated(said, tmp_path)


def test_what_processes_say_during_a_build_is_kept_and_said(tmp_path, capfd):
    import setup  # and with it Cython, a second of processor time that no process of a run needs to collect

    said = tmp_path / "build" / "said"
    for word in ("performance hint", "warning"):
        with setup.noted(said):
            subprocess.run([sys.executable, "-c", f"import sys; sys.stderr.write('{word}\\n')"], check=True)
        assert capfd.readouterr().err == f"{word}\n"
    with pytest.raises(RuntimeError), setup.noted(said):
        raise RuntimeError
    print("afterwards")
    assert complaints(said.read_text().splitlines()) == ["performance hint", "warning"]
