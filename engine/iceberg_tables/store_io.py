"""StoreIO: the files of metadata of a folder's catalog, by the file systems of the engine and their settings.

So a catalog that is a folder of an object store needs no settings of pyiceberg: what opens the data files opens these.

Held by: tests/iceberg_tables/test_stores.py
"""

from __future__ import annotations

import io
from types import TracebackType
from typing import Any

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream

from engine.storage.file_systems import file_system_of, is_file, size_of


class _Written(io.BytesIO):
    """A stream into a file, which is there when the stream is closed, unless an error has come first."""

    def __init__(self, location: str) -> None:
        super().__init__()
        self._location = location

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            super().close()

    def close(self) -> None:
        """Make the file."""
        if not self.closed:
            file_system_of(self._location).replace(self._location, self.getvalue())
        super().close()


class _Input(InputFile):
    """A file that is read, whole."""

    def __len__(self) -> int:
        return size_of(self.location)

    def exists(self) -> bool:
        """Return whether it is there."""
        return is_file(self.location)

    def open(self, seekable: bool = True) -> InputStream:
        """Return the content as a stream."""
        return io.BytesIO(file_system_of(self.location).read(self.location))


class _Output(OutputFile):
    """A file that is made."""

    def __len__(self) -> int:
        return size_of(self.location)

    def exists(self) -> bool:
        """Return whether it is there."""
        return is_file(self.location)

    def to_input_file(self) -> InputFile:
        """Return the file as one that is read."""
        return _Input(self.location)

    def create(self, overwrite: bool = False) -> OutputStream:
        """Return a stream into the file; names of metadata are never given twice."""
        return _Written(self.location)


class StoreIO(FileIO):
    """See the module's text."""

    def new_input(self, location: str) -> InputFile:
        """Return a file to be read."""
        return _Input(location)

    def new_output(self, location: str) -> OutputFile:
        """Return a file to be made."""
        return _Output(location)

    def delete(self, location: Any) -> None:
        """Delete a file."""
        path = location if isinstance(location, str) else location.location
        file_system_of(path).delete(path)
