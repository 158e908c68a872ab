"""Archives of strangers are unpacked within their folder and within bounds, or refused."""

from __future__ import annotations

import io
import stat
import struct
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.blob.archive import unpack
from engine.errors import DataError


def packed(tmp_path, *entries, method=zipfile.ZIP_DEFLATED):
    path = tmp_path / "archive.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return path


def link(name, target):
    entry = zipfile.ZipInfo(name)
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry, target


def tree(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def refused(tmp_path, archive, match=None, **limits):
    outside = tree(tmp_path)
    with pytest.raises(DataError, match=match):
        unpack(archive, tmp_path / "out", **limits)
    assert tree(tmp_path) == outside, "something stays"


def test_modules_and_packages_are_unpacked(tmp_path):
    archive = packed(tmp_path, ("a.py", b"A = 1"), ("p/", b""), ("p/__init__.py", b""), ("q/r/s.py", b"x" * 100_000))
    folder = unpack(archive, tmp_path / "out")
    assert tree(folder) == ["a.py", "p", "p/__init__.py", "q", "q/r", "q/r/s.py"]
    assert (folder / "a.py").read_bytes() == b"A = 1"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "name",
    [
        "../a.py",
        "/a.py",
        "a/../../b.py",
        "..",
        "a\\..\\..\\b.py",
        "c:/a.py",
        "a/../b.py",
        "x" * 300 + ".py",
        "/",
        "//a",
    ],
)
def test_a_name_that_leads_out_is_refused_and_nothing_stays(tmp_path, name):
    refused(tmp_path, packed(tmp_path, ("good.py", b"1"), (name, b"2")))


def test_a_name_with_a_nul_is_refused(tmp_path):
    archive = packed(tmp_path, ("aXb.py", b"1"))
    archive.write_bytes(archive.read_bytes().replace(b"aXb.py", b"a\0b.py"))
    refused(tmp_path, archive)


def test_links_and_devices_are_refused(tmp_path):
    refused(tmp_path, packed(tmp_path, link("a", "/etc"), ("a/passwd", b"x")), "not a plain file")
    device = zipfile.ZipInfo("device")
    device.external_attr = (stat.S_IFCHR | 0o666) << 16
    refused(tmp_path, packed(tmp_path, (device, b"")), "not a plain file")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_same_file_twice_is_refused(tmp_path):
    refused(tmp_path, packed(tmp_path, ("a.py", b"1"), ("a.py", b"2")), "twice")
    refused(tmp_path, packed(tmp_path, ("a", b"1"), ("a/b.py", b"2")), "twice")


def test_a_bomb_is_refused_before_it_fills_the_disk(tmp_path):
    archive = packed(tmp_path, ("zeros", bytes(64 << 20)))
    assert archive.stat().st_size < 100_000
    refused(tmp_path, archive, "100 times its size")


def test_bytes_and_entries_are_bounded(tmp_path):
    archive = packed(tmp_path, *((f"m{number}.py", b"x" * 100) for number in range(50)))
    refused(tmp_path, archive, "at most 49|more than 49", entries_max=49)
    refused(tmp_path, archive, "too large when unpacked", bytes_max=4999)
    assert len(tree(unpack(archive, tmp_path / "out", entries_max=50, bytes_max=5000))) == 50


def test_a_size_that_the_archive_states_wrongly_is_not_believed(tmp_path):
    content = b"y" * 5000
    archive = packed(tmp_path, ("a.py", content), method=zipfile.ZIP_STORED)
    data = archive.read_bytes().replace(struct.pack("<I", len(content)), struct.pack("<I", 10))
    archive.write_bytes(data)
    refused(tmp_path, archive)


def test_encrypted_or_unusual_packing_is_refused(tmp_path):
    refused(tmp_path, packed(tmp_path, ("a.py", b"1" * 100), method=zipfile.ZIP_BZIP2), "unusual")
    archive = packed(tmp_path, ("a.py", b"1"))
    data = bytearray(archive.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    archive.write_bytes(data)
    refused(tmp_path, archive, "encrypted")


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06", b"no archive at all", bytes(100_000)])
def test_what_is_no_archive_is_refused(tmp_path, content):
    archive = tmp_path / "archive.zip"
    archive.write_bytes(content)
    refused(tmp_path, archive)


def _sample():
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.py", b"A = 1" * 50)
        archive.writestr("p/b.py", b"B = 2" * 50)
    return target.getvalue()


SAMPLE = _sample()


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, len(SAMPLE) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_damaged_archive_is_unpacked_within_its_folder_or_refused(tmp_path, changes):
    with tempfile.TemporaryDirectory(dir=tmp_path) as name:
        inside = Path(name)
        data = bytearray(SAMPLE)
        for position, value in changes:
            data[position] = value
        archive = inside / "archive.zip"
        archive.write_bytes(data)
        try:
            unpack(archive, inside / "out")
        except DataError:
            assert tree(inside) == ["archive.zip"]
        else:
            assert {path.split("/")[0] for path in tree(inside)} <= {"archive.zip", "out"}
