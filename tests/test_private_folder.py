"""Folders of one's own: made closed, checked when they are there, never under a name that others can take."""

import contextlib
import os
import pwd
import shutil
import stat
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.dispatcher.job_archive import JobArchive
from engine.entrypoint import scripts
from engine.iomanager.spill_directory import SpillDirectory
from engine.private_folder import (
    NotPrivateError,
    check_place,
    make_closed,
    make_private,
    own_folder,
    scratch_folder,
)
from engine.process_folder import FolderPrefix, ProcessFolder, sweep


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home, and a common temporary folder beside it."""
    home, common = tmp_path / "home", tmp_path / "common"
    home.mkdir()
    common.mkdir()
    common.chmod(0o1777)
    monkeypatch.setenv("HOME", str(home))
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(common))
    return home


@pytest.fixture
def no_home(home, monkeypatch):
    """A user without a home."""
    monkeypatch.setenv("HOME", "")
    monkeypatch.setattr(pwd, "getpwuid", lambda user: SimpleNamespace(pw_dir="/nonexistent", pw_name=f"user{user}"))


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def of_another(monkeypatch, *paths):
    """Have what there is at these paths belong to another user, also where the test may not give it away."""
    if os.geteuid() == 0:
        for path in paths:
            os.lchown(path, 54321, 54321)
        return
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)


@pytest.mark.parametrize("mode_of_it", [0o777, 0o1777])
@pytest.mark.parametrize("how", ["make_closed", "TMPDIR", "a process", "spilled rows", "a record of ended jobs"])
def test_a_place_of_another_user_to_which_everybody_can_write_is_refused(home, tmp_path, monkeypatch, mode_of_it, how):
    place = tmp_path / "place"
    place.mkdir()
    place.chmod(mode_of_it)
    of_another(monkeypatch, place)
    with pytest.raises(NotPrivateError, match=rf"place is of another user, .*\(mode {mode_of_it:04o}\): name"):
        match how:
            case "make_closed":
                make_closed(place)
            case "TMPDIR":
                monkeypatch.setenv("TMPDIR", str(place))
                monkeypatch.setattr(tempfile, "tempdir", None)
                scratch_folder()
            case "a process":
                ProcessFolder.create(place, FolderPrefix.JOBS)
            case "spilled rows":
                SpillDirectory.create(place, 0, 1)
            case _:
                JobArchive(str(place))
    assert list(place.iterdir()) == []


def test_a_place_that_another_user_opened_to_some_or_that_is_roots_or_ones_own_is_taken(tmp_path, monkeypatch):
    own, given = tmp_path / "own", tmp_path / "given"
    for place, mode_of_it in ((own, 0o777), (given, 0o775)):
        place.mkdir()
        place.chmod(mode_of_it)
    make_closed(own)
    of_another(monkeypatch, given)
    make_closed(given)
    check_place(Path("/tmp"))


def test_folders_are_made_for_their_owner_only_whatever_the_mask_is(home):
    before = os.umask(0)
    try:
        folder = own_folder("pid", "host")
    finally:
        os.umask(before)
    assert folder == home / ".local/state/drey/pid/host"
    assert {mode(each) for each in (folder, folder.parent, folder.parent.parent)} == {0o700}
    assert scratch_folder() == home / ".local/state/drey/tmp"


def test_a_folder_that_others_could_read_is_closed_and_one_that_they_could_write_is_refused(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    folder.chmod(0o755)
    assert mode(make_private(folder)) == 0o700
    folder.chmod(0o770)
    with pytest.raises(NotPrivateError, match=r"can be written by others.*0770"):
        make_private(folder)


def test_links_and_files_are_refused_and_nothing_is_made_where_a_link_points(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(NotPrivateError, match="symbolic link"):
        make_private(tmp_path / "link")
    assert not (tmp_path / "target").exists()
    (tmp_path / "target").mkdir()
    with pytest.raises(NotPrivateError, match="symbolic link"):
        make_private(tmp_path / "link")
    (tmp_path / "file").touch()
    with pytest.raises(NotPrivateError, match="no folder"):
        make_private(tmp_path / "file")


def test_a_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "own"
    folder.mkdir(mode=0o700)
    of_another(monkeypatch, folder)
    with pytest.raises(NotPrivateError, match="another user"):
        make_private(folder)


@pytest.mark.usefixtures("no_home")
def test_a_home_that_is_another_user_s_is_not_used(home, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(home))
    assert own_folder() == home / ".local/state/drey"
    shutil.rmtree(home / ".local")
    of_another(monkeypatch, home)
    with contextlib.suppress(NotPrivateError):  # without root everything is another user's
        assert own_folder().parent == tmp_path / "common"
    assert not (home / ".local").exists()


@pytest.mark.usefixtures("no_home")
def test_names_in_the_common_folder_that_others_have_taken_are_passed_over(home, tmp_path):
    common = tmp_path / "common"
    first = common / f"drey-{os.geteuid()}"
    first.symlink_to(tmp_path / "target")
    (common / f"drey-{os.geteuid()}-1").touch()
    assert own_folder("pid") == common / f"drey-{os.geteuid()}-2" / "pid"
    first.unlink()  # and the folder stays the same when a name before it is given back
    assert own_folder("pid") == common / f"drey-{os.geteuid()}-2" / "pid"
    assert not (tmp_path / "target").exists()


@pytest.mark.usefixtures("home")
def test_tmpdir_is_the_choice_of_a_person(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert scratch_folder() == tmp_path


def test_what_others_made_to_look_like_a_dead_process_s_folder_is_left_alone(tmp_path, monkeypatch):
    prefix = FolderPrefix.SPILL
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "lock").touch()
    (tmp_path / f"{prefix}1-1-0").symlink_to(precious)
    linked = tmp_path / f"{prefix}2-2-0"
    linked.mkdir()
    (linked / "lock").symlink_to(precious / "lock")
    assert sweep(tmp_path, prefix) == []
    (linked / "lock").unlink()
    (linked / "lock").touch()
    of_another(monkeypatch, linked)
    assert sweep(tmp_path, prefix) == []
    assert (precious / "lock").exists() and (linked / "lock").exists()


def test_what_killed_processes_of_any_version_left_is_swept_when_a_cluster_stops(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("DREY_CONF_DIR", str(tmp_path))
    for kind in ("spill", "data", "jobs", "client", "blobs"):
        (tmp_path / f"drey-{kind}-1-1-0").mkdir()
        (tmp_path / f"drey-{kind}-1-1-0" / "lock").touch()
    scripts._sweep_folders_of_the_dead()
    assert not list(tmp_path.glob("drey-*"))
