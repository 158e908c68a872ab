"""A job script as the program: it sees its own arguments and folder, and its exit code is passed through.

Held by: tests/integration/test_command_line.py
"""

from __future__ import annotations

import runpy
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from engine.client.termination import TerminatedError, after, leaving_on_termination
from engine.errors import EngineError, JobExecutionError
from engine.shown_text import shown


def run_script(script: Path, arguments: Sequence[str], module_path: Sequence[str]) -> int:
    """Run a script as ``__main__`` and return the exit code of the command.

    ``module_path``: files and folders of ``--py-files``, put in front of the module search path; the script's own
    folder comes last. A script that declares outputs and executes nothing has failed. What the script raises is
    reported on standard error: engine errors as their text, others with the script's own frames.
    """
    if not script.is_file():
        hint = "" if script.suffix else "; options come behind the words of a command: flink-run job list -D KEY=VALUE"
        print(f"error: no such script: {script}{hint}", file=sys.stderr)
        return 1
    for entry in reversed(module_path):
        path = Path(entry).resolve()
        if not path.exists():
            print(f"error: --py-files: no such file or folder: {entry}", file=sys.stderr)
            return 1
        _put_in_front(path)
    sys.argv = [str(script), *arguments]
    # After everything else: a queue.py beside the script hides neither Python's nor a package that the engine needs.
    folder = script.resolve().parent
    sys.path.append(str(folder))
    _tell_of_names_taken(folder)
    try:
        with leaving_on_termination():
            runpy.run_path(str(script), run_name="__main__")
    except SystemExit as leaving:
        if isinstance(leaving, TerminatedError):
            with after(leaving):
                print("cancelled", file=sys.stderr)
        return _exit_code(leaving) or _unwritten()
    except KeyboardInterrupt:
        print("cancelled", file=sys.stderr)
        return 128 + signal.SIGINT
    except EngineError as error:
        report_error(error, has_script=True)
        return 1
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if "runpy" not in frame.filename and frame.filename != __file__]
        lines = ["Traceback (most recent call last):\n", *traceback.format_list(own)]
        sys.stderr.write(shown("".join(lines) + "".join(traceback.format_exception_only(error))))
        return 1
    return _unwritten()


def _unwritten() -> int:
    """Return 1, and say why, where the script declared outputs that no job was to write."""
    unwritten = sys.modules.get("engine.api.unwritten_outputs")  # not loaded: there are none
    text = None if unwritten is None else unwritten.UNWRITTEN.forget()
    if text is None:
        return 0
    print(f"error: {text}", file=sys.stderr)
    return 1


class _OneModule(MetaPathFinder):
    """Finds one file, and nothing else in its folder."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the file's spec under its own name."""
        return spec_from_file_location(fullname, self._path) if fullname == self._path.stem else None


def _put_in_front(path: Path) -> None:
    """Put a file or a folder of ``--py-files`` in front of the module search path."""
    if path.suffix == ".py":
        sys.meta_path.insert(0, _OneModule(path))
        sys.path.append(str(path.parent))  # by which workers find it
    else:
        sys.path.insert(0, str(path))


def _tell_of_names_taken(folder: Path) -> None:
    for name in ("drey", "engine", "ha"):
        found = find_spec(name)
        for path in (folder / f"{name}.py", folder / name / "__init__.py"):
            if path.is_file() and found is not None and not path.samefile(str(found.origin)):
                print(
                    f"warning: {path} has the name of a package of Drey and would hide it: 'import {name}' finds "
                    "Drey's here; rename it",
                    file=sys.stderr,
                )


def _exit_code(leaving: SystemExit) -> int:
    if leaving.code is None:
        return 0
    if isinstance(leaving.code, int):
        return leaving.code
    print(leaving.code, file=sys.stderr)
    return 1


_verbose = False


def set_verbose(verbose: bool) -> None:
    """Report errors with everything that is known of them."""
    global _verbose  # noqa: PLW0603 - one command a process
    _verbose = verbose


def report_error(error: EngineError, *, has_script: bool = False) -> None:
    """Print an engine error for a person: its text, and the details where they were asked for.

    has_script: it went through a script, whose lines are shown.
    """
    text = "\n".join(error._render_traceback_()) if has_script else error.shown()
    print(shown(text), file=sys.stderr)
    if isinstance(error, JobExecutionError) and error.details:
        if _verbose:
            print(f"\n{shown(error.details)}", file=sys.stderr)
        else:
            print("(--verbose shows the whole traceback)", file=sys.stderr)
