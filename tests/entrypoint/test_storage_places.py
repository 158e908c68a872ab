"""Where JobManagers keep what outlives them."""

from pathlib import Path

import pytest

from engine.config.loader import configuration_from_texts
from engine.entrypoint.places import Places, home_folder
from engine.entrypoint.storage_places import history_folder, shared_folder, storage_places
from engine.errors import ConfigurationError
from engine.storage import file_systems
from engine.storage.store_client import use_store_settings
from tests.storage.memory import MemoryStore
from tests.storage.store_servers import s3rver
from tests.test_private_folder import of_another

STORAGE = "high-availability.storageDir"


@pytest.fixture
def places(tmp_path):
    return Places(tmp_path / "conf", tmp_path / "log", tmp_path / "pid", "tester", "here")


def configured(elected=True, **settings):
    kind = {"high-availability.type": "ZOOKEEPER"} if elected else {}
    return configuration_from_texts(kind | {key.replace("__", "."): value for key, value in settings.items()})


def test_without_a_quorum_and_a_folder_everything_ends_with_the_process_but_history(places, tmp_path):
    found = storage_places(configured(elected=False), places, tmp_path / "own")
    assert (found.folder, found.history, found.is_durable) == (f"{tmp_path}/own", f"{places.log}/history", False)


def test_with_a_quorum_it_lies_beside_the_logs_or_where_it_is_told_each_cluster_apart(places, tmp_path):
    found = storage_places(configured(), places, tmp_path / "own")
    assert found.folder == f"{places.log}/high-availability/default" and found.is_durable
    assert found.history == f"{found.folder}/history" and found.blobs == f"{found.folder}/blobs"
    assert Path(found.folder).stat().st_mode & 0o077 == 0
    told = configured(**{STORAGE: str(tmp_path / "shared"), "high-availability.cluster-id": "/a/b"})
    assert shared_folder(told, places) == f"{tmp_path}/shared/a_b"
    assert shared_folder(configured(**{STORAGE: f"file://{tmp_path}"}), places) == f"{tmp_path}/default"
    assert shared_folder(configured(**{STORAGE: "state"}), places) == f"{home_folder()}/state/default"


def test_a_folder_that_is_told_makes_the_jobs_of_a_single_job_manager_durable(places, tmp_path):
    found = storage_places(configured(elected=False, **{STORAGE: str(tmp_path / "shared")}), places, tmp_path / "own")
    assert found.is_durable and found.handles == tmp_path / "shared" / "default" / "handles"


def test_history_lies_where_it_is_told(places):
    assert history_folder(configured(**{"jobstore.dir": "/elsewhere"}), places) == "/elsewhere"


@pytest.mark.parametrize("text", ["hdfs:///drey", "https://bucket/drey", "file://host"])
def test_what_is_no_folder_is_refused(places, text):
    with pytest.raises(ConfigurationError, match="is not a folder of this machine"):
        shared_folder(configured(**{STORAGE: text}), places)


def test_a_folder_of_another_user_to_which_everybody_can_write_is_refused(places, tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    of_another(monkeypatch, shared)
    with pytest.raises(ConfigurationError, match=r"storageDir: .*shared is of another user, .*\(mode 0777\)"):
        storage_places(configured(**{STORAGE: str(shared)}), places, tmp_path / "own")
    assert list(shared.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_refused_with_the_reason(places, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"storageDir: .*file/x/default cannot be made: Not a directory"):
        storage_places(configured(**{STORAGE: str(tmp_path / "file" / "x")}), places, tmp_path / "own")


def test_a_store_needs_a_quorum_and_is_asked_whether_it_is_there(places, tmp_path, monkeypatch):
    store = MemoryStore()
    monkeypatch.setattr(file_systems, "FILE_SYSTEMS", (file_systems.LOCAL, store))
    told = {STORAGE: "memory://bucket/ha/"}
    found = storage_places(configured(**told), places, tmp_path / "own")
    assert found.folder == "memory://bucket/ha/default" and found.is_durable
    assert found.history == "memory://bucket/ha/default/history" and found.blobs == "memory://bucket/ha/default/blobs"
    with pytest.raises(ConfigurationError, match="an object store, which needs high-availability"):
        shared_folder(configured(elected=False, **told), places)

    def refused(path):
        raise OSError(13, "access is denied (AccessDenied, request 5); set AWS_ACCESS_KEY_ID", path)

    monkeypatch.setattr(store, "require_conditions", refused)
    with pytest.raises(ConfigurationError, match=r"storageDir: memory.*used: access is denied .*request 5"):
        storage_places(configured(**told), places, tmp_path / "own")


def test_a_store_that_ignores_conditions_is_refused_before_the_jobmanager_leads(places, tmp_path):
    with s3rver() as server:
        use_store_settings(server.settings)
        told = {STORAGE: "s3://data/ha", **server.settings}
        with pytest.raises(
            ConfigurationError, match=r"storageDir: s3://data/ha/default .*ignores the conditions of puts"
        ):
            storage_places(configured(**told), places, tmp_path / "own")
        assert list(file_systems.file_system_of("s3://data").objects.below("s3://data")) == []
    use_store_settings({})


def test_jobs_that_ended_before_the_folder_was_set_are_told(places, tmp_path, caplog):
    (places.log / "history").mkdir(parents=True)
    storage_places(configured(False), places, tmp_path)
    for name in ("a.job", "b.job"):
        (places.log / "history" / name).touch()
    storage_places(configured(False), places, tmp_path)
    assert not caplog.records
    storage_places(configured(False, **{"high-availability.storageDir": str(tmp_path / "shared")}), places, tmp_path)
    assert f"2 jobs that ended before lie in {places.log}/history and are not shown" in caplog.text
