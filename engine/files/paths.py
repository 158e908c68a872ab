"""Paths of a user, resolved to the files that are read: a file, a folder, a glob, or a list of those.

A path may be a URL of a file as well (``file:///data/a.csv``, as Python, Spark and browsers write it), or of an object
in a store (``s3://bucket/key``), or of a member of an archive (``zip://a.zip!/b.csv``); other schemes are refused by
name.

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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath
from urllib.parse import unquote

from engine.errors import PlanError
from engine.files.table_formats import check_no_table
from engine.near_names import near_names
from engine.storage.file_system import FolderEntry
from engine.storage.file_systems import LOCAL, file_system_of, is_file, is_folder
from engine.storage.known_objects import current_known, in_parallel
from engine.storage.zip_files import SCHEME as ZIP
from engine.storage.zip_files import absolute_zip

PathLike = str | os.PathLike[str]

_SHOWN_MAX = 60
_GLOB = re.compile(r"[*?[]")
#: objects that a store is asked about at the same time
_LOOKS_AT_ONCE = 16
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/)")


def given_paths(paths: object, what: str) -> PathLike | list[PathLike]:
    """Return a path, or a list of several; PlanError for anything else."""
    if isinstance(paths, str | os.PathLike):
        return paths
    listed: list[PathLike] = []
    if isinstance(paths, bytes) or hasattr(paths, "read"):
        kind = type(paths).__name__
        raise PlanError(f"{what}: a {kind} is no path; give the name of a file, or write its content to one")
    for each in paths if isinstance(paths, Iterable) else [paths]:
        if not isinstance(each, str | os.PathLike):
            advice = "give a file, a folder, a glob such as 'folder/*.csv', or a list"
            raise PlanError(f"{what}: {_shortened(each)} is no path; {advice}")
        listed.append(each)
    return listed


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."


def local_path(path: PathLike, what: str) -> str:
    """Return the place that a user wrote: a path, ``~`` included, or a URL; one of this machine is an absolute path.

    Links are kept.

    Raises: PlanError for an empty path, and for a URL of another scheme or of another host.
    """
    if not isinstance(path, str | os.PathLike):
        raise PlanError(f"{what}: {_shortened(path)} is no path")
    text = os.fspath(path)
    if not text:
        raise PlanError(f"{what}(''): the path is empty; the current folder is '.'")
    _check_name(text, what)
    scheme = _SCHEME.match(text) if isinstance(text, str) else None
    if scheme is None or LOCAL.is_taken(text):
        try:
            return os.path.abspath(os.path.expanduser(text))  # noqa: PTH100, PTH111 - resolve() would follow links
        except FileNotFoundError:
            raise PlanError(
                f"{what}({text!r}): the current folder was removed; change to one that exists, or give a whole path"
            ) from None
    if scheme[1].lower() == ZIP:
        return absolute_zip(text, lambda archive: local_path(archive, what))
    if scheme[1].lower() != "file":
        if file_system_of(text) is not LOCAL:
            return text.rstrip("/")
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


def local_folder(path: PathLike, what: str) -> str:
    """Return the place of something that is a folder of this machine; PlanError for a store."""
    place = local_path(path, what)
    if file_system_of(place) is not LOCAL:
        raise PlanError(
            f"{what}({os.fspath(path)!r}): this is not read from object stores or written to them; give a path of this"
            " machine, and copy the data"
        )
    return place


@contextmanager
def placed_store_errors(reader: str) -> Iterator[None]:
    """Raise what a store says while a plan is built as PlanError, with the path."""
    try:
        yield
    except OSError as error:
        if not is_of_store(error):
            raise
        raise PlanError(f"{reader}({error.filename!r}): {error.strerror}") from None


def is_of_store(error: OSError) -> bool:
    """Return whether an error is what a store says of one of its paths."""
    place = error.filename
    return isinstance(place, str) and file_system_of(place) is not LOCAL


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


def _data_in(folder: str) -> list[str]:
    """Return the data files of a folder, in the order of their names."""
    return sorted(
        each.path for each in file_system_of(folder).entries(folder) if not is_hidden(each.name) and each.is_file
    )


def _expand_one(pattern: str, reader: str) -> list[str]:
    if is_folder(pattern):
        check_no_table([pattern], reader)
        files = _data_in(pattern)
        if not files:
            raise PlanError(f"{reader}({pattern!r}): the folder holds no files{_what_else_is_there(pattern)}")
        _check_no_files_below(pattern, files[0], reader)
        return files
    if is_file(pattern):
        return [pattern]
    # Folder by folder, in the order of their names.
    found = sorted(_matches(pattern), key=lambda path: path.split("/"))
    files = [match for match in found if not is_hidden(_name(match)) and is_file(match)]
    folders = [match for match in found if is_folder(match)]
    check_no_table([*map(_parent, files), *folders], reader)
    for folder in folders:
        files += _data_in(folder)
    if not files:
        raise PlanError(f"{reader}({pattern!r}): no such file or folder, and no file matches it{_near(pattern)}")
    # "**" matches a folder and what is in it
    return list(dict.fromkeys(files))


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _near(path: str) -> str:
    """Return a question for what lies beside a path under nearly the same name; "" for nothing."""
    folder = _parent(path)
    try:
        beside = [each.name for each in file_system_of(folder).entries(folder) if not is_hidden(each.name)]
    except OSError:
        return ""
    except PlanError:  # a web server does not say what files it has
        return "; names of its files are written as they are, without escapes such as %20" if "%" in path else ""
    close = near_names(_name(path), beside)
    return f"; did you mean {path.removesuffix(_name(path)) + close[0]!r}?" if close else ""


def _matches(pattern: str) -> Iterator[str]:
    """Yield the matches of an absolute glob; ``**`` follows no links, since they may lead upwards."""
    files = file_system_of(pattern)
    head, mark, rest = f"{pattern}/".partition("/**/")
    if not mark:
        yield from files.matching(pattern)
        return
    for base in files.matching(head or "/"):
        for place, folders, names in files.walk(base):
            folders[:] = [name for name in folders if not is_hidden(name)]
            inside = place.removesuffix("/")
            if rest:
                yield from _matches(f"{glob.escape(inside)}/{rest.rstrip('/')}")
            else:
                yield from (f"{inside}/{name}" for name in names)


def _folders_inside(path: str) -> list[FolderEntry]:
    entries = file_system_of(path).entries(path)
    return sorted((each for each in entries if not is_hidden(each.name) and each.is_folder), key=lambda each: each.name)


def _what_else_is_there(path: str) -> str:
    """Return the advice about a folder without files: it holds folders, or is the output of a job without rows."""
    folders = _folders_inside(path)
    if folders:
        return (
            f", only folders such as {folders[0].name}: they are not entered, {f'{path}/**'!r} reads the"
            " files in all of them; folders that are all named key=value are columns"
        )
    return "; an output with partition_by= and without rows is such a folder, and has no schema to read"


def _check_no_files_below(path: str, file: str, reader: str) -> None:
    """Raise PlanError where files lie in folders beside a file: their rows would be left out, and columns of names."""
    for folder in _folders_inside(path):
        below = _first_file_below(folder.path)
        if below is not None:
            suffix = PurePosixPath(file).suffix
            alone = f"*{suffix}" if suffix else _name(file)
            raise PlanError(
                f"{reader}({path!r}): the folder holds the file {_name(file)} beside the folder {folder.name}/"
                f" with files in it ({folder.name}{below.removeprefix(folder.path)}); {f'{path}/{alone}'!r} reads the"
                f" files alone, {f'{path}/**'!r} those of all folders; folders named key=value are columns where no"
                " file is beside them"
            )


def _first_file_below(folder: str) -> str | None:
    """Return the path of a data file below a folder."""
    for place, folders, files in file_system_of(folder).walk(folder):
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        data = sorted(name for name in files if not is_hidden(name))
        if data:
            return f"{place}/{data[0]}"
    return None


def _look_at_objects(places: Sequence[str]) -> None:
    """Ask stores for the statuses of objects that are named one by one, several at a time."""
    named = [place for place in places if file_system_of(place).objects is not None and not _GLOB.search(place)]
    if len(named) > 1 and current_known() is not None:
        for _ in in_parallel(lambda place: file_system_of(place).find(place), named, _LOOKS_AT_ONCE):
            pass


def expand_paths(path: PathLike | Iterable[PathLike], reader: str) -> tuple[str, ...]:
    """Return the absolute paths of the files; PlanError when there are none."""
    patterns = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not patterns:
        raise PlanError(f"{reader}: no path")
    places = [local_path(pattern, reader) for pattern in patterns]
    _look_at_objects(places)
    files = (file for place in places for file in _expand_one(place, reader))
    found = tuple(dict.fromkeys(files))
    check_names(found, reader)
    return found
