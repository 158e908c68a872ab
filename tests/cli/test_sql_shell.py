"""The shell of SQL: what lines do, and a whole session on a pseudo-terminal."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment
from engine.cli import sql_shell
from engine.cli.sql_session import SqlSession
from engine.cli.sql_shell import Shell, history_file, is_complete

#: what the line editor sends when a statement is typed: the terminal shall not mark what is pasted any more
END_OF_EDITING = "\x1b[?2004l"
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")


@pytest.fixture(scope="module")
def sales(tmp_path_factory):
    path = tmp_path_factory.mktemp("shell") / "sales.parquet"
    pq.write_table(pa.table({"shop": ["a", "b", "a"], "price": [1.5, 2.0, 3.0]}), path)
    return path


@pytest.fixture
def shell(sales):
    with Environment(config={"parallelism.default": 1}) as environment:
        environment.register("sales", environment.read_parquet(sales))
        yield Shell(SqlSession(environment, "table"))


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("SELECT ';", False),
        ("SELECT ';'", False),
        ("SELECT 1 -- ;", False),
        ("SELECT 1 /* ; */", False),
        ("\\d", True),
        (" exit", True),
        ("Help", True),
        ("exit_code", False),
        ("  ", True),
    ],
)
def test_a_statement_ends_with_its_semicolon(text, complete):
    assert is_complete(text) is complete


def test_commands_and_statements(shell, capsys):
    shell.run("\\d")
    shell.run("\\d sales")
    shell.run("SELECT count(*) AS n FROM sales; SELECT 7 AS x;")
    out, err = capsys.readouterr()
    assert out.splitlines()[:3] == ["sales", "shop  string", "price  double"]
    assert re.findall(r"^ *(\d+)$", out, re.MULTILINE) == ["3", "7"]
    assert err == ""
    shell.run("\\what")
    assert "no such command" in capsys.readouterr().out


def test_an_error_is_shown_and_ends_its_line_only(shell, capsys):
    shell.run("SELECT nope FROM sales; SELECT 7 AS x;")
    out, err = capsys.readouterr()
    assert (out, "nope" in err) == ("", True)
    shell.run("\\d salse")
    assert "did you mean sales" in capsys.readouterr().err
    shell.run("SELECT 8 AS x;")
    assert "8" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["exit", "QUIT;", "\\q"])
def test_the_shell_is_left_by_the_words_of_other_shells(shell, text):
    shell.run(text)
    assert not shell.is_open


def test_help_is_shown(shell, capsys):
    shell.run("help")
    assert "Statements end with a semicolon" in capsys.readouterr().out


def test_a_table_is_summed_up(shell, capsys):
    shell.run("SUMMARIZE sales;")
    out = capsys.readouterr().out
    assert re.search(r"^shop +\| ", out, re.MULTILINE)
    assert re.search(r"^price +\| ", out, re.MULTILINE)


def test_timing_does_not_count_the_time_that_is_taken_to_read(shell, capsys, monkeypatch):
    clock, slept_s = time.perf_counter, 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + slept_s)

    def read(text):
        nonlocal slept_s
        slept_s += 10_000.0  # in a pager
        sys.stdout.write(text)

    monkeypatch.setattr(sql_shell, "_show", read)
    shell.run("\\timing")
    shell.run("SELECT 1 AS one")
    times = re.findall(r"^time: (\d+\.\d{3}) s$", capsys.readouterr().out, re.MULTILINE)
    assert len(times) == 2
    assert all(float(took_s) < 5_000 for took_s in times)


def test_timing_is_switched(shell, capsys):
    shell.run("\\timing")
    shell.run("SELECT 1 AS x;")
    assert re.search(r"^time: \d+\.\d{3} s$", capsys.readouterr().out, re.MULTILINE)
    shell.run("\\timing")
    shell.run("SELECT 1 AS x;")
    assert "time:" not in capsys.readouterr().out


def test_an_interrupt_cancels_the_statement_and_keeps_the_shell(shell, capsys, monkeypatch):
    def interrupted(_text):
        raise KeyboardInterrupt

    monkeypatch.setattr(shell.session, "run", interrupted)
    shell.run("SELECT 1;")
    assert capsys.readouterr().out == "cancelled\n"
    assert shell.is_open
    shell.run("\\q")
    assert not shell.is_open
    shell.is_open = True


def test_history_is_in_the_folder_of_state(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history_file() == tmp_path / "drey" / "sql_history"
    assert history_file().parent.is_dir()


class Terminal:
    """A program on a pseudo-terminal of 24 lines."""

    def __init__(self, *words, **variables):
        self.master, end = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "LINES": "24", "COLUMNS": "80", "PAGER": "cat", **variables}
        # the first terminal that the leader of a session opens is the one that control-C comes from
        script = f'exec "$@" <{os.ttyname(end)} >{os.ttyname(end)} 2>&1'
        self.process = subprocess.Popen(["sh", "-c", script, "sh", *words], env=environment, start_new_session=True)
        os.close(end)
        self.text = ""

    def type(self, text):
        os.write(self.master, text.encode())

    def wait_for(self, pattern, seconds=30):
        """Wait until what was shown since the last match matches; take it away."""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.text)):
            assert time.monotonic() < end, f"no {pattern!r} in:\n{self.text}"
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    more = os.read(self.master, 65536).decode(errors="replace")
                except OSError:
                    more = ""
                if "\x1b[6n" in more:
                    self.type("\x1b[1;1R")  # a terminal is asked where its cursor is
                self.text += COLOURS.sub("", more.replace(END_OF_EDITING, "<typed>"))
        self.text = self.text[found.end() :]
        return found

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.master)


@pytest.mark.thorough
def test_a_session_on_a_terminal(sales, tmp_path):
    command = [sys.executable, "-m", "engine.cli.main", "sql", "-p", "1", "--table", f"sales={sales}"]
    terminal = Terminal(*command, XDG_STATE_HOME=str(tmp_path), PYTHONPATH=str(Path.cwd()))
    try:
        terminal.wait_for("sql>")
        terminal.type("SELECT count(*)\rAS total_number FROM sal\t")
        terminal.wait_for("es")
        terminal.type(";\r")
        terminal.wait_for("<typed>")
        terminal.wait_for(r"total_number\s")
        terminal.wait_for(r"\n\s*3\s")
        terminal.wait_for("sql>")
        # 3 ** 24 rows: the query lasts until it is cancelled
        terminal.type(f"SELECT count(*) AS n FROM {', '.join(f'sales AS s{number}' for number in range(24))};\r")
        terminal.wait_for("<typed>")
        time.sleep(0.5)
        terminal.type("\x03")
        terminal.wait_for("cancelled")
        terminal.wait_for("sql>")
        terminal.type("SELECT 1\x03")
        terminal.wait_for("sql>")
        terminal.type("\\q\r")
        assert terminal.process.wait(30) == 0
    finally:
        terminal.close()
    assert "SELECT count(*)" in (tmp_path / "drey" / "sql_history").read_text()
