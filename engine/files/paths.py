"""From what a user wrote to the files that are read: a file, a folder, a glob, or a list of those.

A path may be a URL of a file as well (``file:///data/a.csv``, as Python, Spark and browsers write it); other schemes
are refused by name.

In a folder, names that begin with ``.`` or ``_`` (``_SUCCESS``, ``_manifest.json``, checksum files) are no data and
are skipped; ``_day=2024`` is the folder of a value, as it is for Spark. Folders inside it are not entered; where files
lie in them, that is an error, so that no rows are missing.
Folders of tables that have a log are refused (``table_formats``).

Files come in the order of their names, paths are absolute. A file that several paths of a list lead to is read once,
where the first of them is. ``**`` in a glob does not follow links.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

from engine.errors import PlanError
from engine.files.table_formats import check_no_table

PathLike = str | os.PathLike[str]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/)")


def local_path(path: PathLike, what: str) -> str:
    """Return the absolute path that a user wrote: a path, ``~`` included, or a ``file://`` URL. Links are kept.

    Raises: PlanError for an empty path, and for a URL of another scheme or of another host.
    """
    text = os.fspath(path)
    if not text:
        raise PlanError(f"{what}(''): the path is empty; the current folder is '.'")
    _check_name(text, what)
    scheme = _SCHEME.match(text) if isinstance(text, str) else None
    if scheme is None or os.path.lexists(text):
        try:
            return os.path.abspath(os.path.expanduser(text))  # noqa: PTH100, PTH111 - resolve() would follow links
        except FileNotFoundError:
            raise PlanError(
                f"{what}({text!r}): the current folder was removed; change to one that exists, or give a whole path"
            ) from None
    if scheme[1].lower() != "file":
        raise PlanError(
            f"{what}({text!r}): {scheme[1]}:// is no place that can be reached; copy the data, and give its path or a"
            " file:// URL"
        )
    rest = text[scheme.end() :]
    host, slash, inside = rest[2:].partition("/") if rest.startswith("//") else ("", "/", rest[1:])
    if host not in ("", "localhost"):
        raise PlanError(
            f"{what}({text!r}): {host!r} is another host; a path on this machine is file:///... with 3 slashes"
        )
    return os.path.abspath(slash + unquote(inside))  # noqa: PTH100


def _check_name(path: str, what: str) -> None:
    """Raise PlanError for a path with bytes that are no UTF-8: a plan, and a column of names, are texts."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise PlanError(f"{what}: the name {os.fsencode(path)!r} is not UTF-8; rename the file or folder") from None


def check_names(paths: Iterable[str], reader: str) -> None:
    """Raise PlanError for a file whose path is not UTF-8."""
    for path in paths:
        if not path.isascii():
            _check_name(path, reader)


def is_hidden(name: str) -> bool:
    """Return whether a file or folder of this name is no data."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _is_data(path: Path) -> bool:
    return path.is_file() and not is_hidden(path.name)


def _expand_one(pattern: str, reader: str) -> list[Path]:
    path = Path(pattern)
    if path.is_dir():
        check_no_table([pattern], reader)
        files = sorted(child for child in path.iterdir() if _is_data(child))
        if not files:
            raise PlanError(f"{reader}({pattern!r}): the folder holds no files{_what_else_is_there(path)}")
        _check_no_files_below(path, files[0], reader)
        return files
    if path.is_file():
        return [path]
    found = sorted(map(Path, _matches(pattern)))
    files = [match for match in found if _is_data(match)]
    folders = [match for match in found if match.is_dir()]
    check_no_table(map(os.fspath, [*(file.parent for file in files), *folders]), reader)
    for folder in folders:
        files += sorted(child for child in folder.iterdir() if _is_data(child))
    if not files:
        raise PlanError(f"{reader}({pattern!r}): no such file or folder, and no file matches it{_near(path)}")
    # "**" matches a folder and what is in it
    return list(dict.fromkeys(files))


def _near(path: Path) -> str:
    """Return a question for what lies beside a path under nearly the same name; "" for nothing."""
    try:
        beside = [child.name for child in path.parent.iterdir() if not is_hidden(child.name)]
    except OSError:
        return ""
    from difflib import get_close_matches  # noqa: PLC0415 - start-up time

    close = get_close_matches(path.name, beside, n=1)
    return f"; did you mean {str(path.with_name(close[0]))!r}?" if close else ""


def _matches(pattern: str) -> Iterator[str]:
    """Yield what matches an absolute glob; ``**`` goes into folders, but follows no links: they may lead upwards."""
    head, mark, rest = f"{pattern}/".partition("/**/")
    if not mark:
        yield from glob.glob(pattern)  # noqa: PTH207 - absolute patterns
        return
    for base in glob.glob(head or "/"):  # noqa: PTH207
        for place, folders, files in os.walk(base):
            folders[:] = [name for name in folders if not is_hidden(name)]
            if rest:
                yield from _matches(os.path.join(glob.escape(place), rest.rstrip("/")))  # noqa: PTH118 - of os.walk
            else:
                yield from (os.path.join(place, name) for name in files)  # noqa: PTH118


def _folders_inside(path: Path) -> list[Path]:
    return sorted(child for child in path.iterdir() if child.is_dir() and not is_hidden(child.name))


def _what_else_is_there(path: Path) -> str:
    """Say what to do about a folder without files: it holds folders, or is the output of a job without rows."""
    folders = _folders_inside(path)
    if folders:
        return (
            f", only folders such as {folders[0].name}: they are not entered, {os.fspath(path / '**')!r} reads the"
            " files in all of them; folders that are all named key=value are columns"
        )
    return "; an output with partition_by= and without rows is such a folder, and has no schema to read"


def _check_no_files_below(path: Path, file: Path, reader: str) -> None:
    """Raise PlanError where files lie in folders beside a file: their rows would be left out, and columns of names."""
    for folder in _folders_inside(path):
        below = _first_file_below(folder)
        if below is not None:
            alone = f"*{file.suffix}" if file.suffix else file.name
            raise PlanError(
                f"{reader}({os.fspath(path)!r}): the folder holds the file {file.name} beside the folder {folder.name}/"
                f" with files in it ({below}); {os.fspath(path / alone)!r} reads the files alone,"
                f" {os.fspath(path / '**')!r} those of all folders; folders named key=value are columns where no file"
                " is beside them"
            )


def _first_file_below(folder: Path) -> str | None:
    """Return the path of a data file below a folder, relative to what the folder is in."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        data = sorted(name for name in files if not is_hidden(name))
        if data:
            return os.path.relpath(os.path.join(place, data[0]), folder.parent)  # noqa: PTH118 - of os.walk
    return None


def expand_paths(path: PathLike | Iterable[PathLike], reader: str) -> tuple[str, ...]:
    """Return the absolute paths of the files; PlanError when there are none."""
    patterns = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not patterns:
        raise PlanError(f"{reader}: no path")
    files = (
        os.path.abspath(file)  # noqa: PTH100 - resolve() would follow links
        for pattern in patterns
        for file in _expand_one(local_path(pattern, reader), reader)
    )
    found = tuple(dict.fromkeys(files))
    check_names(found, reader)
    return found
