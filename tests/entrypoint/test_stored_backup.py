"""A backup that cannot be restored says why."""

from pathlib import Path

import pytest

from engine.config.loader import configuration_from_texts
from engine.dispatcher.file_handles import FileHandles
from engine.dispatcher.state_backup import BackupError
from engine.entrypoint import stored_backup
from engine.entrypoint.stored_backup import StoredBackup


@pytest.mark.parametrize("patience_s", [0.2, 30.0])
def test_where_zookeeper_does_not_answer_that_is_the_reason_and_not_a_leader(monkeypatch, tmp_path, patience_s):
    monkeypatch.setattr(stored_backup, "_LEAD_S", patience_s)
    for name in ("DREY_CONF_DIR", "DREY_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr(stored_backup, "read_backup", lambda *_: None)
    settings = {
        "high-availability.type": "ZOOKEEPER",
        "high-availability.storageDir": str(tmp_path / "shared"),
        "high-availability.zookeeper.quorum": "127.0.0.1:1",
        "high-availability.zookeeper.client.connection-timeout": "1s",
    }
    with pytest.raises(BackupError, match=r"no ZooKeeper of 127.0.0.1:1 has answered"):
        StoredBackup(configuration_from_texts(settings)).restore(tmp_path / "backup")


def test_a_job_manager_without_zookeeper_that_leads_is_to_be_stopped(monkeypatch, tmp_path):
    for name in ("DREY_CONF_DIR", "DREY_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr(stored_backup, "read_backup", lambda *_: None)
    storage = tmp_path / "shared"
    backup = StoredBackup(configuration_from_texts({"high-availability.storageDir": str(storage)}))
    leader = FileHandles(Path(backup._places.storage) / "handles", lambda epoch: True)
    leader.hold()
    with pytest.raises(BackupError, match="a JobManager leads: stop the cluster before a backup is restored"):
        backup.restore(tmp_path / "backup")
