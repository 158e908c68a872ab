"""What a process takes of its disks."""

from __future__ import annotations

import shutil

from engine.iomanager.disk_use import disk_bytes, folder_bytes


def test_files_of_all_folders_count_and_each_disk_is_free_once(tmp_path):
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        (folder / "deep").mkdir(parents=True)
        (folder / "deep" / "file").write_bytes(b"x" * 100_000)
    (folders[0] / "elsewhere").symlink_to("/usr")
    used, free = disk_bytes([*folders, tmp_path / "gone"])
    assert 200_000 <= used < 300_000
    assert 0 < free <= shutil.disk_usage(tmp_path).free * 1.5, "both lie on one disk"
    assert folder_bytes(tmp_path / "gone") == 0
