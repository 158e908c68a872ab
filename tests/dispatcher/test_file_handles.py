"""Handles as files: versions, epochs, one process at a time, and what is none of them."""

import shutil

import pytest

from engine.dispatcher.file_handles import FileHandles
from engine.errors import ConfigurationError
from ha.interfaces import ForeignStateError, StaleEpochError, StateUnavailableError, StoredState

NAME = "a" * 32


@pytest.fixture
def handles(tmp_path):
    made = FileHandles(tmp_path / "handles", lambda epoch: epoch == 7)
    made.hold()
    return made


def test_a_handle_is_created_once_changed_by_version_and_removed(handles, tmp_path):
    assert handles.names() == () and handles.read(NAME) is None
    assert handles.create(7, NAME, b"one") and not handles.create(7, NAME, b"two")
    assert handles.read(NAME) == StoredState(b"one", 0)
    assert handles.replace(7, NAME, b"with blank", 0) and not handles.replace(7, NAME, b"three", 0)
    again = FileHandles(tmp_path / "handles", lambda epoch: False)
    assert again.names() == (NAME,) and again.read(NAME) == StoredState(b"with blank", 1)
    handles.remove(7, NAME)
    handles.remove(7, NAME)
    assert handles.names() == () and not handles.replace(7, NAME, b"four", 1)


def test_an_epoch_that_is_not_granted_changes_nothing(handles):
    handles.create(7, NAME, b"one")
    for write in (
        lambda: handles.create(6, "b" * 32, b""),
        lambda: handles.replace(8, NAME, b"two", 0),
        lambda: handles.remove(6, NAME),
    ):
        with pytest.raises(StaleEpochError):
            write()
    assert handles.names() == (NAME,) and handles.read(NAME) == StoredState(b"one", 0)


def test_a_second_job_manager_is_kept_out(handles, tmp_path):
    with pytest.raises(ConfigurationError, match=r"another JobManager keeps its jobs in .*ZOOKEEPER"):
        FileHandles(tmp_path / "handles", lambda epoch: True).hold()


@pytest.mark.parametrize("content", [b"", b"rubbish", b"x 1", b"-1 x"])
def test_what_is_no_handle_is_foreign(handles, tmp_path, content):
    (tmp_path / "handles" / NAME).write_bytes(content)
    with pytest.raises(ForeignStateError):
        handles.read(NAME)


def test_a_folder_that_cannot_be_written_is_unavailable(handles, tmp_path):
    (tmp_path / "handles" / NAME).mkdir()
    with pytest.raises(StateUnavailableError):
        handles.read(NAME)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be used"):
        FileHandles(tmp_path / "file" / "handles", lambda epoch: True).hold()


def test_a_folder_that_was_removed_is_made_again_and_kept_from_others(handles, tmp_path):
    assert handles.create(7, NAME, b"one")
    shutil.rmtree(tmp_path / "handles")
    assert handles.names() == () and handles.read(NAME) is None
    assert handles.create(7, NAME, b"one") and handles.read(NAME) == StoredState(b"one", 0)
    with pytest.raises(ConfigurationError, match="another JobManager"):
        FileHandles(tmp_path / "handles", lambda epoch: True).hold()


def test_names_of_others_are_refused(handles):
    with pytest.raises(ValueError, match="is not a name"):
        handles.create(7, "../x", b"")
