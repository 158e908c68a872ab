"""The command as a part of a pipeline, and its completion in a shell."""

import os
import re
import subprocess
import sys

import pytest
import shtab

from engine.cli.main import build_parser, main
from engine.cli.submit import _FILES


def test_a_reader_that_has_seen_enough_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "engine.cli.main", "config", "show"],
            check=False,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


COMPLETE = r"""
source "$1"
COMP_WORDS=($2 "$3"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
_shtab_flink_run
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("words", "begun", "expected"),
    [
        ("flink-run job", "s", {"submit", "status"}),
        ("flink-run job submit -t", "cl", {"cluster"}),
        ("flink-run job submit", "nightly", {"nightly_report.py"}),
        ("flink-run job submit --py-files", "nightly", {"nightly_report.py"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bash_completes_commands_choices_and_files(tmp_path, words, begun, expected):
    (tmp_path / "nightly_report.py").write_text("")
    command = [sys.executable, "-m", "engine.cli.main", "--print-completion", "bash"]
    script = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    (tmp_path / "completion").write_text(script)
    assert "complete -o default " in script, "the short form begins with a file"
    found = subprocess.run(
        ["bash", "-c", COMPLETE, "bash", str(tmp_path / "completion"), words, begun],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert set(found.stdout.split()) == expected


def test_files_are_completed_as_shtab_names_them():
    assert _FILES.items() <= shtab.FILE.items()


def test_a_word_that_is_nearly_a_command_is_named(capsys):
    with pytest.raises(SystemExit):
        build_parser().parse_args(["confg", "show"])
    assert capsys.readouterr().err.endswith("did you mean config?\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["job", "list", "--nonsense"], r"usage: flink-run job list.*unrecognized arguments: --nonsense"),
        (["taskmanager", "drain", "ab", "--now"], r"usage: flink-run taskmanager drain.*--now"),
        (["job", "list", "-D", "x"], r"usage: flink-run job list.*'x' is not key=value"),
    ],
)
def test_a_word_that_an_action_does_not_know_is_told_with_the_usage_of_that_action(capsys, words, said):
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 1
    assert re.search(said, capsys.readouterr().err, re.DOTALL)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["job", "list", "-D", "no.such.key=1"], "unknown key 'no.such.key' (command line)"),
        (["-D", "rest.port=1", "job", "list"], "no such script: job; options come behind the words of a command"),
    ],
)
def test_settings_come_behind_the_words_of_a_command_that_asks_a_cluster(words, said):
    command = [sys.executable, "-m", "engine.cli.main", *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["token", "list"], r"line 1 of {folder}/other.tokens"),
        (["ha", "gc"], r"No orphans in {folder}/ha"),
        (["ha", "backup", "{folder}/file"], r"{folder}/file: 0 jobs"),
        (["config", "show"], r"security.users-file: other.tokens +\[command line"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_commands_that_ask_no_job_manager_take_settings(tmp_path, words, said):
    (tmp_path / "config.yaml").write_text("")
    (tmp_path / "ha").mkdir()
    (tmp_path / "other.tokens").write_text("no user\n")
    (tmp_path / "other.tokens").chmod(0o600)
    settings = {"security.users-file": "other.tokens", "high-availability.storageDir": tmp_path / "ha"}
    done = subprocess.run(
        [sys.executable, "-m", "engine.cli.main", *(word.format(folder=tmp_path) for word in words)]
        + [word for key, value in settings.items() for word in ("-D", f"{key}={value}")],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "DREY_CONF_DIR": str(tmp_path)},
    )
    assert re.search(said.format(folder=tmp_path), done.stdout + done.stderr), done.stdout + done.stderr
