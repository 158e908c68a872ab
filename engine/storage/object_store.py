"""ObjectStore: objects of S3, Google Cloud Storage, Azure and HTTP servers, through obstore.

    s3://bucket/key  gs://bucket/key  abfs://container@account.dfs.core.windows.net/key  az://container/key  https://...

A store has names and no folders: a folder is what stands before ``/`` in the name of some object. It is listed by
prefix. An HTTP server lists nothing: its files are named one by one, and are read alone.

A listing leaves out what is being added to a prefix, or removed from it (``store_folder``).

Held by: tests/storage/test_object_store.py
Held by: tests/storage/test_store_writing.py
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import io
import os
import re
import uuid
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Final, NamedTuple, cast

from engine.errors import PlanError
from engine.storage.file_system import FileStatus, FolderEntry, Objects
from engine.storage.known_objects import current_known, in_parallel
from engine.storage.store_client import (
    FAMILIES,
    HEEDS_CONDITIONS,
    ONE_BY_ONE,
    StorePlace,
    asked,
    client_library,
    client_of,
    facts_of,
    place_of,
)
from engine.storage.store_counters import note
from engine.storage.store_files import StoreRangeFile, StoreStream, Version, version_of
from engine.storage.store_folder import STATE_NAME, FolderState, decode_state
from engine.storage.store_output import StoreOutput, written_bytes

#: a version that no object has
_NO_VERSION: Final = {"e_tag": '"0"', "version": "1"}
_GLOB: Final = re.compile(r"[*?[]")
_BUFFER_BYTES: Final = 256 << 10
#: stores that answer a request for the last bytes of an object
_TELL_ENDS: Final = frozenset({"s3", "gcs"})
#: limit of ends of objects that are kept until the objects are opened
_TAILS_MAX: Final = 128
#: names in one answer to a listing
_LISTED_AT_ONCE: Final = 1000
#: objects that are deleted at the same time, where one request deletes one
_AT_ONCE: Final = 16


class StoreEntry(NamedTuple):
    """One name below a prefix."""

    name: str
    path: str
    is_folder: bool
    size_bytes: int
    is_link: bool = False

    @property
    def is_file(self) -> bool:
        """Whether it is an object."""
        return not self.is_folder


class ObjectStore:
    """Objects by their URL. Thread: any."""

    schemes = tuple(FAMILIES)
    folders = None

    def status(self, path: str) -> FileStatus:
        """Return size, version and kind of an object, or of the prefix of one. Raises OSError where there is none."""
        known = current_known()
        if known is None:
            return self._status(path)
        if path not in known.statuses:
            try:
                known.statuses[path] = self._status(path)
            except FileNotFoundError:
                known.statuses[path] = None
        status = known.statuses[path]
        if status is None:
            raise FileNotFoundError(errno.ENOENT, "there is no such object", path)
        return status

    def _status(self, path: str) -> FileStatus:
        place = place_of(path)
        found = self._head(place, path) if place.key else None
        if found is not None:
            return found
        if place.family != "http" and self._is_prefix(place, path):
            return FileStatus(0, 0, 0, is_folder=True, is_file=False)
        raise FileNotFoundError(errno.ENOENT, "there is no such object", path)

    def _head(self, place: StorePlace, path: str) -> FileStatus | None:
        obstore, known = client_library(path), current_known()
        if known is not None and known.reads_tails and place.family in _TELL_ENDS and len(known.tails) < _TAILS_MAX:
            try:
                file = self._opened_by_tail(path)
            except FileNotFoundError:
                return None
            if file is not None:
                known.tails[path] = file.tail
                return _status_of(file.version)
        try:
            return _status_of(version_of(asked(path, lambda: obstore.head(client_of(place), place.key))))
        except FileNotFoundError:
            return None
        except OSError:
            # An answer to this has no text: one byte of the object is asked for, whose answer says why it is refused.
            asked(path, lambda: obstore.get(client_of(place), place.key, options={"range": (0, 1)}))
            raise

    def _opened_by_tail(self, path: str) -> StoreRangeFile | None:
        """Open an object by the request for its end; None for one that has none: its status says what is wrong."""
        try:
            return StoreRangeFile.of_tail(path)
        except OSError as error:
            if error.errno != errno.ERANGE:
                raise
            return None

    def _is_prefix(self, place: StorePlace, path: str) -> bool:
        obstore = client_library(path)
        prefix = f"{place.key}/" if place.key else None
        return bool(asked(path, lambda: next(iter(obstore.list(client_of(place), prefix, chunk_size=1)), ())))

    def find(self, path: str) -> FileStatus | None:
        """Return size, version and kind of an object or a prefix; None where there is none."""
        try:
            return self.status(path)
        except FileNotFoundError:
            return None

    def is_taken(self, path: str) -> bool:
        """Return whether something has a name."""
        return self.find(path) is not None

    def entries(self, folder: str) -> Iterator[FolderEntry]:
        """Yield the objects and prefixes directly below a prefix, in no order."""
        place = self._listed(folder)
        obstore = client_library(folder)
        prefix = f"{place.key}/" if place.key else None
        found = asked(folder, lambda: obstore.list_with_delimiter(client_of(place), prefix))
        listed = [each["path"] for each in found["objects"]]
        hidden = self._hidden(place, listed)
        if hidden:  # a prefix may have hidden objects alone
            visible = [key for key, _, _ in self._all_below(place, folder) if key not in hidden]
            prefixes = {prefix for key in visible if (prefix := _folder_in(key, place.key))}
        else:
            prefixes = {prefix.rstrip("/") for prefix in found["common_prefixes"]}
        for prefix in prefixes:
            yield StoreEntry(prefix.rpartition("/")[2], place.path_of(prefix), True, 0)
        for each in found["objects"]:
            key = each["path"]
            if key != place.key and key not in hidden:  # the marker of an empty folder
                self._know(place, each)
                yield StoreEntry(key.rpartition("/")[2], place.path_of(key), False, each["size"])

    def walk(self, folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield (folder, names of folders, names of files) from the top down."""
        place = self._listed(folder)
        found = [key for key, _, _ in self._all_below(place, folder)]
        hidden = self._hidden(place, found)
        tree: dict[str, tuple[dict[str, None], list[str]]] = {}
        for key in found:
            above, _, name = key.rpartition("/")
            if key in hidden or key == place.key:
                continue
            tree.setdefault(above, ({}, []))[1].append(name)
            while above != place.key:
                above, _, name = above.rpartition("/")
                tree.setdefault(above, ({}, []))[0][name] = None
        waiting = [place.key]
        while waiting:
            at = waiting.pop()
            names, files = tree.get(at, ({}, []))
            folders = list(names)
            yield place.path_of(at), folders, files
            waiting += [f"{at}/{name}" if at else name for name in reversed(folders)]

    def _all_below(self, place: StorePlace, path: str) -> Iterator[tuple[str, int, float]]:
        """Yield all objects below a prefix: (key, bytes, time of change)."""
        obstore, prefix = client_library(path), f"{place.key}/" if place.key else None
        chunks = asked(path, lambda: list(obstore.list(client_of(place), prefix, chunk_size=_LISTED_AT_ONCE)))
        note(place.root, requests=max(0, len(chunks) - 1))
        for chunk in chunks:
            for each in chunk:
                self._know(place, each)
                yield each["path"], each["size"], each["last_modified"].timestamp()

    def _know(self, place: StorePlace, meta: Any) -> None:
        """Keep the status of an object that a listing tells."""
        known = current_known()
        if known is not None and meta["e_tag"] is not None:
            known.statuses.setdefault(place.path_of(meta["path"]), _status_of(version_of(meta)))

    def _hidden(self, place: StorePlace, keys: Iterable[str]) -> set[str]:
        """Return the keys that are no content at present, by the states among keys that were listed below a prefix."""
        roots = {key.removesuffix(STATE_NAME) for key in keys if key.rpartition("/")[2] == STATE_NAME}
        above = place.key
        while "=" in above.rpartition("/")[2]:  # folders of values: the state is above them
            above = above.rpartition("/")[0]
        if above != place.key:
            roots.add(f"{above}/" if above else "")
        hidden: set[str] = set()
        for root in roots:
            hidden |= {f"{root}{name}" for name in self._state_of(place.path_of(f"{root}{STATE_NAME}")).hidden}
        return hidden

    def _state_of(self, path: str) -> FolderState:
        """Return the state in an object, which is read once where statuses are known."""
        known = current_known()
        states = {} if known is None else known.states
        if path not in states:
            found = self.read_version(path)
            states[path] = FolderState() if found is None else decode_state(found[0])
        return states[path]

    def matching(self, pattern: str) -> Iterable[str]:
        """Return objects and prefixes that match a glob, in no order."""
        place = place_of(pattern)
        parts = place.key.split("/")
        fixed = next((index for index, part in enumerate(parts) if _GLOB.search(part)), len(parts))
        if fixed == len(parts):
            return [pattern] if self.is_taken(pattern) else []
        self._listed(pattern)
        tests = [re.compile(_translated(part)) for part in parts]
        before = StorePlace(place.root, "/".join(parts[:fixed]))
        keys = [key for key, _, _ in self._all_below(before, pattern)]
        hidden = self._hidden(before, keys)
        found: dict[str, None] = {}
        for key in keys:
            names = key.split("/")
            if key not in hidden and len(names) >= len(tests) and all(map(re.Pattern.match, tests, names)):
                found[place.path_of("/".join(names[: len(tests)]))] = None
        return list(found)

    def _listed(self, path: str) -> StorePlace:
        """Return the place of what is listed; PlanError for a server that lists nothing."""
        place = place_of(path)
        if place.family == "http":
            shown = path.partition("?")[0]  # a query may hold a signature
            raise PlanError(
                f"{shown}: an HTTP server does not say what files it has; name each file, without wildcards (* ? [ ])."
                " An address with a query (?...) is not read"
            )
        return place

    def open_stream(self, path: str, *, is_buffered: bool = False) -> BinaryIO:
        """Open an object for reading from any position."""
        stream = StoreStream(self.open_ranges(path))
        return cast(BinaryIO, io.BufferedReader(stream, _BUFFER_BYTES) if is_buffered else stream)

    def open_ranges(
        self, path: str, *, is_tail_wanted: bool = False, status: FileStatus | None = None
    ) -> StoreRangeFile:
        """Open an object for reading ranges of it, with one request, or with none where its status is known."""
        known = current_known()
        status = status if status is not None or known is None else known.statuses.get(path)
        if status is None and is_tail_wanted and place_of(path).family in _TELL_ENDS:
            with contextlib.suppress(FileNotFoundError):  # a folder: its status says so
                found = self._opened_by_tail(path)
                if found is not None:
                    return found
        status = self.status(path) if status is None else status
        if not status.is_file:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        tail = None if known is None else known.tails.pop(path, None)
        return StoreRangeFile(path, status.size_bytes, cast("Version", status.version), tail)

    def read(self, path: str) -> bytes:
        """Return all of a small object, with one request."""
        found = self.read_version(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "there is no such object", path)
        return found[0]

    def native_path(self, path: str) -> None:
        """Return None: libraries get streams."""

    def create(self, path: str) -> StoreOutput:
        """Create an object and write it in parts. Its name is one that no other object has: it is not looked for."""
        self._written(path)
        return StoreOutput(path)

    def written_bytes(self, path: str) -> int:
        """Return the bytes so far of an object that this process writes."""
        size = written_bytes(path)
        return self.status(path).size_bytes if size is None else size

    def publish(self, staged: str, path: str) -> None:
        """Copy an object to its name, and delete it under its former one."""
        self.copy(staged, path)
        self.delete(staged)

    def create_if_absent(self, path: str, content: bytes, is_durable: bool = True) -> bool:
        """Create a small object; return False, and change nothing, when there is one."""
        return self.put_version(path, content, None) is not None

    def replace(self, path: str, content: bytes, is_durable: bool = True) -> None:
        """Make a small object of that content."""
        place, obstore = self._written(path), client_library(path)
        asked(path, lambda: obstore.put(client_of(place), place.key, content, use_multipart=False))
        note(place.root, written_bytes=len(content))

    def delete(self, path: str) -> None:
        """Delete an object; idempotent."""
        self.delete_all([path])

    def delete_tree(self, path: str) -> None:
        """Delete an object, or all below a prefix; idempotent."""
        place = self._written(path)
        below = [place.path_of(key) for key, _, _ in self._all_below(place, path)]
        self.delete_all(below or [path][: len(place.key)])

    # ---- objects as such

    @property
    def objects(self) -> Objects:
        """The operations on objects."""
        return self

    def read_version(self, path: str) -> tuple[bytes, Any] | None:
        """Return the content of a small object and its version; None where there is none."""
        place, obstore = place_of(path), client_library(path)

        def get() -> tuple[Any, bytes]:
            found = obstore.get(client_of(place), place.key)
            return found.meta, bytes(found.bytes())

        try:
            meta, content = asked(path, get)
        except FileNotFoundError:
            return None
        note(place.root, read_bytes=len(content))
        return content, _version_in(meta)

    def put_version(self, path: str, content: bytes, version: Any) -> Any:
        """Replace a small object that has this version still; None: create one. Return its new version.

        None is returned where another has done so.
        """
        place, obstore = self._written(path), client_library(path)
        mode = "create" if version is None else version
        try:
            put = asked(path, lambda: obstore.put(client_of(place), place.key, content, mode=mode, use_multipart=False))
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ESTALE, errno.ENOENT):
                raise
            # It may be the answer to a repetition of a put that was done.
            found = self.read_version(path)
            return found[1] if found is not None and found[0] == content else None
        return _version_in(put)

    def require_conditions(self, folder: str) -> None:
        """Raise PlanError where the store ignores the conditions of puts, or refuses them; asked once for a bucket."""
        place = self._written(folder)
        if HEEDS_CONDITIONS in facts_of(place):
            return
        path = f"{folder}/.drey-{uuid.uuid4().hex}"
        try:
            is_kept = self.put_version(path, b"1", None) and not (
                self.put_version(path, b"2", None) or self.put_version(path, b"3", _NO_VERSION)
            )
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EINVAL):
                raise
            is_kept = False
        finally:
            self.delete(path)
        if not is_kept:
            raise PlanError(
                f"{place.root} ignores the conditions of puts, without which writers overwrite each other unseen;"
                " write to a store that knows them (Amazon S3, Google, Azure, MinIO, Ceph), or to a folder"
            )
        facts_of(place).add(HEEDS_CONDITIONS)

    def copy(self, old: str, new: str) -> None:
        """Copy an object within its store; FileNotFoundError where there is none."""
        source, place, obstore = place_of(old), self._written(new), client_library(new)
        if source.root != place.root:
            raise PlanError(f"{new}: an object of {source.root} is not copied to another store")
        try:
            asked(old, lambda: obstore.copy(client_of(place), source.key, place.key))
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, "there is no such object", old) from None

    def delete_all(self, paths: Iterable[str]) -> None:
        """Delete objects; idempotent."""
        places = [self._written(path) for path in paths]
        if not places:
            return
        first, obstore = places[0], client_library(places[0].root)
        keys = [each.key for each in places]

        def delete() -> None:
            obstore.delete(client_of(first), keys)

        try:
            asked(first.path_of(first.key), delete)
        except FileNotFoundError:
            # Azure and Google say so of one that is gone, and do not go on behind it.
            def delete_one(key: str) -> None:
                with contextlib.suppress(FileNotFoundError):
                    asked(first.path_of(key), lambda: obstore.delete(client_of(first), [key]))

            for _ in in_parallel(delete_one, keys, _AT_ONCE):
                pass
        except OSError as error:
            if error.errno != errno.ENOTSUP or ONE_BY_ONE in facts_of(first):
                raise
            facts_of(first).add(ONE_BY_ONE)
            asked(first.path_of(first.key), delete)

    def abort_uploads(self, folder: str) -> int:
        """Abort uploads below a prefix that were not completed, where they can be found; return how many there were."""
        from engine.storage.store_uploads import abort_uploads

        return abort_uploads(folder)

    def has_below(self, folder: str) -> bool:
        """Return whether there is an object below a prefix."""
        place = place_of(folder)
        return place.family != "http" and self._is_prefix(place, folder)

    def below(self, folder: str) -> Iterator[tuple[str, int, float]]:
        """Yield all objects below a prefix: (name relative to it, bytes, time of change)."""
        place = self._listed(folder)
        start = len(place.key) + 1 if place.key else 0
        for key, size, changed in self._all_below(place, folder):
            if key != place.key:
                yield key[start:], size, changed

    def _written(self, path: str) -> StorePlace:
        """Return the place of what is written; PlanError for a server that takes nothing."""
        place = place_of(path)
        if place.family == "http":
            raise PlanError(f"{path}: files of an HTTP server are read and not written; write to a store or a folder")
        return place

    def free_bytes(self, path: str) -> None:
        """Return None: there is no bound."""


def _status_of(version: Version) -> FileStatus:
    return FileStatus(version[1], version[2], version, is_folder=False, is_file=True)


def _version_in(meta: Any) -> dict[str, str]:
    return {name: meta[name] for name in ("e_tag", "version") if meta[name]}


def _folder_in(key: str, folder: str) -> str:
    """Return the prefix directly below a folder in which a key lies; "" for one that lies in the folder itself."""
    start = len(folder) + 1 if folder else 0
    name, slash, _ = key[start:].partition("/")
    return f"{key[:start]}{name}" if slash else ""


def _translated(part: str) -> str:
    """Return a part of a glob as a pattern; as in folders, ``*`` means no name that begins with a dot."""
    hidden = "" if part.startswith(".") else r"(?!\.)"
    return hidden + fnmatch.translate(part)
