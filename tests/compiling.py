"""Each process of a run compiles its share of the tests first; then it finds what the others have compiled.

pytest rewrites the assertions of a module when it imports it, and keeps the code beside the module. The processes of a
run (pytest-xdist) import all modules in the same order: in a fresh checkout each would rewrite every one of them, which
takes as long as the rest of collection. So each begins with every third, say, of the files:

    process 0    0 3 6 9 ...  then all in order: 1 2 4 5 ... have been compiled meanwhile, by 1 and 2
    process 1    1 4 7 ...
    process 2    2 5 8 ...

Held by: tests/test_compiling.py
"""

import contextlib
import importlib
import itertools
from pathlib import Path

import pytest

#: folders whose files not every run collects
_SOMETIMES = ("chaos",)


def share_of(files, number, count):
    """Return the files that a process begins with; the first one is the first in all: what it loads, it loads first."""
    return list(dict.fromkeys([*files[:1], *files[number::count]]))


def compile_share(config, root=Path(__file__).parents[1]):
    """Import the share of this process, where the run has several and takes all folders."""
    worker = getattr(config, "workerinput", None)
    if worker is None:
        return
    folders = [root / name for name in config.getini("testpaths")]
    found = itertools.chain.from_iterable(sorted(folder.rglob("test_*.py")) for folder in folders)
    files = [path for path in found if not {*_SOMETIMES}.intersection(path.parts)]
    for path in share_of(files, int(worker["workerid"].removeprefix("gw")), worker["workercount"]):
        # whatever is wrong is said when the file is collected
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts))
