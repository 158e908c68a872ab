"""python_command: how each process of the engine that runs Python is started.

    python_command("engine.entrypoint.supervisor", "jobmanager")  ─►  [<this interpreter>, -P, -m, ..., jobmanager]

``-m`` alone puts the current folder in front of the module search path: a ``yaml.py`` of the owner of the folder that a
command is called in would run as the user that calls it. With ``-P`` neither it nor "" is there. Unlike the variable
PYTHONSAFEPATH it is not inherited: a program that a user's function starts finds its own folder as it always does.
PYTHONPATH stays a person's own choice, but for entries that mean the current folder: ``""``, as a colon too many leaves
it, and ``.``. No child is given them.

    drop_current_folder()    PYTHONPATH without them
    own_search_path()        sys.path for another process: "" becomes the folder that it means here

Held by: tests/cli/test_hostile_folder.py
"""

from __future__ import annotations

import os
import re
import sys

_PATH_VARIABLE = "PYTHONPATH"
#: entries of the module search path that mean the current folder
_HERE = re.compile(r"(\./+)*\.?")


def drop_current_folder() -> None:
    """Take entries that mean the current folder out of PYTHONPATH, for whatever this process starts. Idempotent."""
    text = os.environ.get(_PATH_VARIABLE)
    if text is None:
        return
    kept = [entry for entry in text.split(os.pathsep) if not _HERE.fullmatch(entry)]
    if kept:
        os.environ[_PATH_VARIABLE] = os.pathsep.join(kept)
    else:
        del os.environ[_PATH_VARIABLE]


def python_command(module: str, *words: str) -> list[str]:
    """Return the command that runs a module with these arguments."""
    return [sys.executable, "-P", "-m", module, *words]


def own_search_path() -> tuple[str, ...]:
    """Return the module search path of this process, to be set in another one."""
    try:
        here = os.getcwd()  # noqa: PTH109 - what "" means is this text
    except OSError:
        here = ""  # the folder is gone, and nothing is found in it
    return tuple(path for path in ((entry or here) for entry in sys.path) if path)
