"""Files that are compressed as a whole, or in an encoding that is no superset of ASCII: their text as a stream.

    codec_of("a.csv.gz", "")              "gzip": by the ending, or as the user says
    stored_as("", "utf-16")               " utf-16": a codec, and behind a blank the encoding; codec_of gives both
    check_named(paths, "", what)          PlanError: compressed, and its name does not say so
    with open_text(path, codec) as file:  readinto, read, seek, tell: of the text; "" opens the file as it is

    part-00000.csv.gz ──► decompressed ──► UTF-16 as UTF-8 ──► a stage of the format ──► text, a block at a time

Each step is there where it is needed; nothing of the text is kept.
Going back in a compressed file reads it again from its begin; readers only do that for errors and samples. What is
damaged or ends early is a DataError that says how far the text came. A file of no bytes is one of no text.

Held by: tests/files/test_compression.py
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import pyarrow as pa

from engine.errors import ConfigurationError, DataError, NotYetSupportedError, PlanError
from engine.files import packed_streams
from engine.files.packed_streams import PackedError, PackedStreams
from engine.storage.file_systems import file_system_of, size_of

#: codec by the ending of a file
_ENDINGS: Final = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz", ".lz4": "lz4"}
ENDING_OF: Final = {codec: ending for ending, codec in _ENDINGS.items()}
#: archives of several files, and codecs that no reader here knows
_REFUSED: Final = {".7z": "7z", ".rar": "rar", ".tar": "tar", ".tgz": "tar", ".z": "compress"}
#: codec of files that are not compressed, whatever their ending
PLAIN: Final = "none"
CODECS: Final = tuple(ENDING_OF)
#: text of a compressed file, in bytes of the file, where nothing is known of it
GUESSED_RATIO: Final = 4.0
_SKIP_BYTES: Final = 1 << 20
#: files whose begin is looked at when a plan is built, where they are large and small ones; bytes of all, and of each
_BEGINS_COUNT: Final = 31
_BEGINS_MAX: Final = 511
_BEGINS_BYTES: Final = 1 << 20
_BEGIN_BYTES_MIN: Final = 8 << 10
#: limit of compressed files that are read when a plan is built
_LOOKED_FILES: Final = 4
#: first bytes of compressed files, with which no text begins
_MAGIC: Final = {
    b"\x1f\x8b\x08": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    b"\x04\x22\x4d\x18": "lz4",
    **{b"BZh%d1AY&SY" % level: "bz2" for level in range(1, 10)},
}
#: errors of the libraries for damaged bytes
_DAMAGED: Final = (OSError, PackedError, pa.ArrowException, UnicodeError)
#: byte order marks
_MARKS: Final = {
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
}
#: bytes of a file that are decoded at a time
_ENCODED_BYTES: Final = 64 << 10
#: function that makes a stage from a stream: both have ``readinto``
Stage = Callable[[Any], Any]


def checked_codec(compression: str | None, what: str) -> str:
    """Return the codec that a user named, "" for none named; ConfigurationError for one that does not exist."""
    if compression is None:
        return ""
    if compression != PLAIN and compression not in ENDING_OF:
        known = ", ".join((*CODECS, PLAIN))
        raise ConfigurationError(f"{what}: compression={compression!r}: choose one of {known}")
    return compression


def stored_as(compression: str, charset: str) -> str:
    """Return the storage of files, for ``codec_of``: ``charset`` "": their text is UTF-8, or a superset of ASCII."""
    return f"{compression} {charset}" if charset else compression


def written_codec(compression: str | None, what: str) -> str:
    """Return the codec that files are written with; "" for plain ones."""
    codec = checked_codec(compression, what)
    return "" if codec == PLAIN else codec


def codec_of(path: str, compression: str = "", what: str = "read") -> str:
    """Return the codec of a file: the one that is named, else by the file's ending; "" for one that is plain.

    ``compression`` may be what ``stored_as`` gives; then so is the codec.
    """
    named, _, charset = compression.partition(" ")
    if named:
        return stored_as("" if named == PLAIN else named, charset)
    ending = Path(path).suffix.lower()
    if ending == ".zip":
        raise PlanError(
            f"{what}({path!r}): a zip archive, whose members are read by their names: zip://{path}!/NAME, or"
            f" zip://{path}!/*.csv for several"
        )
    if ending in _REFUSED:
        raise NotYetSupportedError(
            f"{what}({path!r}): a {_REFUSED[ending]} archive; unpack it, or compress with one of {', '.join(CODECS)}"
        )
    return stored_as(_ENDINGS.get(ending, ""), charset)


def check_named(paths: Sequence[str], compression: str, what: str) -> None:
    """Raise PlanError for a file that is compressed, though neither its name nor the user says so."""
    for path in paths if not compression.partition(" ")[0] else ():
        if codec_of(path, "", what):
            continue
        with file_system_of(path).open_stream(path) as file:
            begin = file.read(max(map(len, _MAGIC)))
        codec = next((codec for magic, codec in _MAGIC.items() if begin.startswith(magic)), None)
        if codec is not None:
            raise PlanError(
                f"{what}: {path} is compressed by {codec}, which its name does not say: pass compression={codec!r}, or"
                f" name it {Path(path).name}{ENDING_OF[codec]} (compression='none' reads it as it is)"
            )


def plain_ending(path: str) -> str:
    """Return the ending of a file without that of its codec, in small letters: ".csv" of "A.CSV.gz"."""
    name = Path(path)
    return Path(name.stem if name.suffix.lower() in _ENDINGS else name.name).suffix.lower()


def open_text(path: str, codec: str) -> BinaryIO:
    """Open a file for reading, as it is or as the text in it; without a buffer."""
    return ReadableText(path, codec) if codec else file_system_of(path).open_stream(path)  # type: ignore[return-value]


class ReadableText(io.RawIOBase):
    """The text of a file that is stored as ``codec_of`` says, front to back; ``stage``: what it goes through last."""

    def __init__(self, path: str, codec: str, stage: Stage | None = None) -> None:
        super().__init__()
        self.name = path
        self._codec, _, self._charset = codec.partition(" ")
        self._stage = stage
        self._position = 0
        self._file = file_system_of(path).open_stream(path)
        self._text = self._opened()

    def _opened(self) -> Any:
        size = self._file.seek(0, io.SEEK_END)
        self._file.seek(0)
        self._position = 0
        text = self._unpacked() if size else io.BytesIO()
        text = _Decoded(text, self._charset) if self._charset else text
        return text if self._stage is None else self._stage(text)

    def _unpacked(self) -> Any:
        if not self._codec:
            return self._file
        if self._codec in packed_streams.CODECS:
            return PackedStreams(self._file, self._codec)
        return pa.CompressedInputStream(pa.PythonFile(_Unclosed(self._file), "r"), self._codec)

    @property
    def last_stage(self) -> Any:
        """The last step that the text goes through, since it was begun."""
        return self._text

    def readable(self) -> bool:
        """Return whether it can be read."""
        return True

    def readinto(self, target: Any) -> int:
        """Read text; fewer bytes than asked for only at its end. DataError where the file is damaged."""
        view = memoryview(target).cast("B")
        used = 0
        while used < len(view):
            try:
                count = self._text.readinto(view[used:])
            except _DAMAGED as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise
                raise self._damaged(error) from None
            if not count:
                break
            used += count
            self._position += count
        return used

    def _damaged(self, error: Exception) -> DataError:
        reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
        if isinstance(error, UnicodeError):
            return DataError(
                f"file {self.name}: its bytes are not {self._charset}: {reason}, behind {self._position} bytes of its"
                " text; pass another encoding="
            )
        return DataError(
            f"file {self.name}: no whole {self._codec} file: {reason}, behind {self._position} bytes of its text, near"
            f" byte {self._file.tell()} of the file; where it is none, pass compression='none' or another one"
        )

    def tell(self) -> int:
        """Return the position in the text."""
        return self._position

    @property
    def compressed_position(self) -> int:
        """Bytes of the file that were taken, some of which may wait in a buffer."""
        return self._file.tell()

    def seek(self, position: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position in the text, or to its end; going back begins anew."""
        if whence == io.SEEK_END:
            while self.read(_SKIP_BYTES):
                pass
            return self._position
        if whence != io.SEEK_SET:
            raise io.UnsupportedOperation("seek from the current position")
        if position < self._position:
            self._text = self._opened()
        while self._position < position and self.read(min(_SKIP_BYTES, position - self._position)):
            pass
        return self._position

    def close(self) -> None:
        """Close the file; idempotent."""
        if not self.closed:
            self._file.close()
        super().close()


class _Decoded:
    """A text in some encoding as UTF-8; one of UTF-16 or UTF-32 without its mark has the lower byte first."""

    def __init__(self, file: Any, charset: str) -> None:
        self._file = file
        self._charset = charset
        self._decoder: codecs.IncrementalDecoder | None = None
        self._ready = memoryview(b"")

    def readinto(self, target: memoryview) -> int:
        """Read text; 0 at its end. Raises: UnicodeDecodeError."""
        while not self._ready:
            data = bytearray(_ENCODED_BYTES)
            size = self._file.readinto(memoryview(data))
            if self._decoder is None:
                marks = _MARKS.get(self._charset, (b"",))
                name = self._charset if data.startswith(marks) else f"{self._charset}-le"
                self._decoder = codecs.getincrementaldecoder(name)()
            self._ready = memoryview(self._decoder.decode(data[:size], final=not size).encode())
            if not size:
                break
        taken, self._ready = self._ready[: len(target)], self._ready[len(target) :]
        target[: len(taken)] = taken
        return len(taken)


class _Unclosed(io.RawIOBase):
    """A file that stays open when a decompressor over it is thrown away."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file

    def readable(self) -> bool:
        """Return whether it can be read."""
        return True

    def readinto(self, target: Any) -> int:
        """Read from the file."""
        return int(self._file.readinto(target))  # type: ignore[attr-defined]


class TextSizes(NamedTuple):
    """Bytes of text in each of some files."""

    sizes: list[int]
    #: True if the numbers are in the files, and not estimated
    is_exact: bool

    @property
    def total(self) -> int:
        """Bytes of all of them."""
        return sum(self.sizes)


def text_sizes(paths: Sequence[str], compression: str) -> TextSizes:
    """Return the sizes of text files; of compressed ones, as the first ones let expect."""
    sizes = list(map(size_of, paths))
    codecs = [codec_of(path, compression) for path in paths]
    looked: dict[int, tuple[int, int]] = {}
    is_exact = True
    for index in [index for index, codec in enumerate(codecs) if codec][:_LOOKED_FILES]:
        with open_text(paths[index], codecs[index]) as file:
            assert isinstance(file, ReadableText)
            head = len(file.read(_SKIP_BYTES) or b"")
            is_whole = head < _SKIP_BYTES
            looked[index] = (head, sizes[index] if is_whole else max(1, min(sizes[index], file.compressed_position)))
            is_exact &= is_whole
    is_exact &= len(looked) == sum(map(bool, codecs))
    text, taken = (sum(each) for each in zip(*looked.values(), strict=True)) if looked else (0, 0)
    ratio = text / taken if taken else GUESSED_RATIO
    for index, codec in enumerate(codecs):
        if codec:
            own, of_file = looked.get(index, (0, 0))
            sizes[index] = round(sizes[index] * (own / of_file if of_file else ratio))
    return TextSizes(sizes, is_exact)


def split_weights(paths: Sequence[str], compression: str) -> list[int]:
    """Return the estimated text of files, without a look into them."""
    factors = [GUESSED_RATIO if codec_of(path, compression).partition(" ")[0] else 1 for path in paths]
    return [round(size * factor) for size, factor in zip(map(size_of, paths), factors, strict=True)]


def spread_over(paths: Sequence[str], count: int) -> list[str]:
    """Return ``count`` of some paths at most, in their order and spread over all, the first and the last among them."""
    if len(paths) <= count:
        return list(paths)
    return [paths[index * (len(paths) - 1) // max(1, count - 1)] for index in range(count)]


def begins_of(paths: Sequence[str], block_bytes: int) -> tuple[list[str], int]:
    """Return the files whose begin is looked at, and how much of each: a few, spread over all, or all of few bytes."""
    total = 0
    for path in paths:
        total += size_of(path)
        if total > _BEGINS_BYTES:
            break
    chosen = spread_over(paths, _BEGINS_MAX if total <= _BEGINS_BYTES else _BEGINS_COUNT)
    return chosen, max(_BEGIN_BYTES_MIN, min(block_bytes, _BEGINS_BYTES // max(1, min(len(chosen), _BEGINS_COUNT))))


def heads(paths: Sequence[str], compression: str, size: int, count: int) -> list[bytes]:
    """Return the begin of the text of ``count`` files at most, spread over all of them."""
    found = []
    for path in spread_over(paths, count):
        with open_text(path, codec_of(path, compression)) as file:
            found.append(file.read(size))
    return found
