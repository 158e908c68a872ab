"""MemoryFileSystem, MemoryStore: files of this process under ``memory://``, without folders or descriptors."""

import errno
import fnmatch
import io
import itertools
import os
from dataclasses import dataclass

from engine.storage.file_system import NO_DESCRIPTOR, FileStatus
from engine.storage.store_folder import STATE_NAME, decode_state


class _Range(io.BytesIO):
    descriptor = NO_DESCRIPTOR

    def __init__(self, path, content):
        super().__init__(content)
        self.path, self.size_bytes, self.version = path, len(content), None

    def read_at(self, offset, size):
        return self.getvalue()[offset : offset + size]

    def read_ranges(self, ranges):
        return [(begin, self.read_at(begin, end - begin)) for begin, end in ranges]


class _Output(io.RawIOBase):
    def __init__(self, store, path):
        super().__init__()
        self._store, self._path, self._held = store, path, bytearray()

    def writable(self):
        return True

    def write(self, data, /):
        """Take at most a thousand bytes: a stream may take a part of what it gets."""
        taken = bytes(memoryview(data).cast("B")[:1000])
        self._held += taken
        return len(taken)

    def tell(self):
        return len(self._held)

    def close(self):
        if not self.closed:
            self._store.put(self._path, bytes(self._held))
        super().close()

    def abort(self):
        super().close()


@dataclass
class _Entry:
    path: str
    is_folder: bool
    size_bytes: int
    is_link: bool = False

    @property
    def name(self):
        return self.path.rpartition("/")[2]

    @property
    def is_file(self):
        return not self.is_folder


class CrashError(BaseException):
    """The process ends here."""


class MemoryFileSystem:
    """Files by their URL; a folder is there as long as a file lies below it."""

    schemes = ("memory",)
    folders = objects = None

    def __init__(self):
        self.files = {}
        self._versions = itertools.count(1)

    def put(self, path, content):
        self.files[path] = content, next(self._versions)

    def _content(self, path):
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self.files[path][0]

    def status(self, path):
        if path not in self.files and any(each.startswith(f"{path}/") for each in self.files):
            return FileStatus(0, 0, 0, is_folder=True, is_file=False)
        content = self._content(path)
        return FileStatus(len(content), 0, self.files[path][1], is_folder=False, is_file=True)

    def find(self, path):
        try:
            return self.status(path)
        except FileNotFoundError:
            return None

    def is_taken(self, path):
        return self.find(path) is not None

    def entries(self, folder):
        names = {each.removeprefix(f"{folder}/").split("/")[0] for each in self.files if each.startswith(f"{folder}/")}
        for path in (f"{folder}/{name}" for name in names):
            status = self.status(path)
            yield _Entry(path, status.is_folder, status.size_bytes)

    def walk(self, folder):
        entries = list(self.entries(folder))
        folders = [each.name for each in entries if each.is_folder]
        yield folder, folders, [each.name for each in entries if each.is_file]
        for name in folders:
            yield from self.walk(f"{folder}/{name}")

    def matching(self, pattern):
        return [path for path in self.files if fnmatch.fnmatchcase(path, pattern)]

    def open_stream(self, path, *, is_buffered=False):
        return io.BytesIO(self._content(path))

    def open_ranges(self, path, *, is_tail_wanted=False, status=None):
        file = _Range(path, self._content(path))
        file.version = self.files[path][1]
        return file

    def read(self, path):
        return self._content(path)

    def native_path(self, path):
        return None

    def create(self, path):
        if path in self.files:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        return _Output(self, path)

    def written_bytes(self, path):
        return len(self._content(path))

    def publish(self, staged, path):
        content = self._content(staged)
        del self.files[staged]
        self.put(path, content)

    def create_if_absent(self, path, content, is_durable=True):
        if path in self.files:
            return False
        self.put(path, content)
        return True

    def replace(self, path, content, is_durable=True):
        self.put(path, content)

    def delete(self, path):
        self.files.pop(path, None)

    def delete_tree(self, path):
        for each in [each for each in self.files if each == path or each.startswith(f"{path}/")]:
            del self.files[each]

    def free_bytes(self, path):
        return None


class MemoryStore(MemoryFileSystem):
    """Objects of a store, hidden as its state says, which can end the process before or after any request that writes.

    crash_at: number of the request; ``is_done``: whether the store has carried it out.
    """

    def __init__(self):
        super().__init__()
        self.objects = self
        self.requests = 0
        self.crash_at, self.is_done = -1, True
        #: called before each request
        self.before = lambda what, path: None

    def _request(self, what, path, work):
        self.before(what, path)
        self.requests += 1
        if self.requests == self.crash_at + 1 and not self.is_done:
            raise CrashError(what)
        answer = work()
        if self.requests == self.crash_at + 1:
            raise CrashError(what)
        return answer

    def _hidden(self, folder):
        name = f"{folder}/{STATE_NAME}"
        if name not in self.files:
            return frozenset()
        return {f"{folder}/{each}" for each in decode_state(self.files[name][0]).hidden}

    def visible(self, folder):
        """Return content by name, as readers of ours see it."""
        hidden = self._hidden(folder)
        below = {path.removeprefix(f"{folder}/"): path for path in self.files if path.startswith(f"{folder}/")}
        return {name: self.files[path][0] for name, path in below.items() if path not in hidden and name[0] != "_"}

    def walk(self, folder):
        names = list(self.visible(folder))
        yield folder, sorted({name.partition("/")[0] for name in names if "/" in name}), names

    def entries(self, folder):
        return list(super().entries(folder))

    def read_version(self, path):
        self.before("read", path)
        return self.files.get(path)

    def put_version(self, path, content, version):
        def work():
            now, found = self.files.get(path, (None, None))
            if found != version:
                return found if now == content else None
            self.put(path, content)
            return self.files[path][1]

        return self._request("put", path, work)

    def require_conditions(self, folder):
        """Return: it heeds them."""

    def replace(self, path, content, is_durable=True):
        self._request("put", path, lambda: self.put(path, content))

    def copy(self, old, new):
        self._request("copy", new, lambda: self.put(new, self._content(old)))

    def delete_all(self, paths):
        for path in paths:
            self._request("delete", path, lambda path=path: self.files.pop(path, None))

    def abort_uploads(self, folder):
        return 0

    def has_below(self, folder):
        return any(self.below(folder))

    def below(self, folder):
        found = [path for path in self.files if path.startswith(f"{folder}/")]
        return [(path.removeprefix(f"{folder}/"), len(self.files[path][0]), 0.0) for path in found]
