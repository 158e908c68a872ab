"""Where a checkout and an installation have their files."""

import os
import sysconfig
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.config import home
from engine.entrypoint import places

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A user without anything."""
    for name in ("DREY_CONF_DIR", "DREY_LOG_DIR", "DREY_PID_DIR", "DREY_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def installed(monkeypatch, bare, tmp_path):
    """The packages are somewhere else than the sources."""
    packages = tmp_path / "packages"
    (packages / "engine" / "delivered" / "conf").mkdir(parents=True)
    (packages / "engine" / "delivered" / "conf" / "workers").write_text("localhost\n")
    (packages / "engine" / "delivered" / "conf" / "grafana").mkdir()
    (packages / "engine" / "delivered" / "conf" / "grafana" / "drey.json").write_text("{}\n")
    monkeypatch.setattr(home, "ROOT", packages)
    monkeypatch.setattr(home, "_DELIVERED", packages / "engine" / "delivered")
    return packages


def test_a_checkout_is_its_own_home(bare, monkeypatch):
    monkeypatch.setenv("DREY_HOME", "/somewhere/else")
    found = places.find_places()
    assert (found.conf, found.log, places.home_folder()) == (ROOT / "conf", ROOT / "log", ROOT)
    assert home.command("flink-run") == ROOT / "bin" / "flink-run"
    assert home.delivered("conf", "zoo.cfg").is_file()


def test_an_installation_has_folders_of_the_user_which_appear_when_they_are_needed(installed, bare):
    found = places.find_places()
    assert found.conf == bare / ".config" / "drey"
    assert found.log == bare / ".local" / "state" / "drey" / "log"
    assert home.command("flink-run") == Path(sysconfig.get_path("scripts")) / "flink-run"
    assert not found.conf.exists()
    assert places.make_conf(found)
    assert (found.conf / "workers").read_text() == "localhost\n"
    assert (found.conf / "grafana" / "drey.json").read_text() == "{}\n"
    assert found.conf.stat().st_mode & 0o777 == 0o700
    (found.conf / "workers").write_text("mine\n")
    assert places.make_conf(found)
    assert (found.conf / "workers").read_text() == "mine\n"


def test_one_variable_names_the_home_of_an_installation_and_others_its_folders(installed, bare, monkeypatch):
    monkeypatch.chdir(bare)
    monkeypatch.setenv("DREY_HOME", "here")
    found = places.find_places()
    assert (found.conf, found.log) == (bare / "here" / "conf", bare / "here" / "log")
    assert places.make_conf(found)
    monkeypatch.setenv("DREY_CONF_DIR", str(bare / "nowhere"))
    assert places.find_places().conf == bare / "nowhere"
    assert not places.make_conf(places.find_places())


def test_the_configuration_of_another_user_is_not_read(installed, bare, monkeypatch):
    other, own = bare / "other", bare / "own"
    for folder in (other, own):
        folder.mkdir()
    owners = {other: os.geteuid() + 1}
    stat = Path.stat

    def status(path, **options):
        found = stat(path, **options)
        return os.stat_result([*found[:4], owners.get(path, found.st_uid), *found[5:10]])

    monkeypatch.setattr(Path, "stat", status)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(other / ".config"))
    monkeypatch.setenv("HOME", str(own))
    assert home.conf_folder() == own / ".config" / "drey"


def test_what_was_delivered_is_copied_into_a_new_folder_and_replaces_nothing(tmp_path, capsys):
    target = tmp_path / "mine"
    assert main(["config", "copy", str(target)]) == 0
    copies = {path.relative_to(target) for path in target.rglob("*") if path.is_file()}
    assert {Path("helm/drey/values.yaml"), Path("systemd/drey-jobmanager.service"), Path("config.yaml")} <= copies
    assert capsys.readouterr().out.splitlines() == [str(target / path) for path in sorted(copies)]
    assert main(["config", "copy", str(target)]) == 1
    assert "is there already" in capsys.readouterr().err
