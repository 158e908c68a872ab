"""The life of a process: its exit codes, its last words, and what it tells the script that started it."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from tests.entrypoint.conftest import ROOT, WAIT_S

PROGRAM = """
import asyncio, os, sys
from engine.entrypoint import daemon
from engine.errors import ResourceError

class Fake:
    def __init__(self, context):
        self.context = context
    async def start(self):
        {start}
        print("started", flush=True)
    async def stop(self, reason):
        print("stops:", reason, flush=True)
        {stop}

daemon.STOP_TIMEOUT_S = {timeout}
arguments = daemon.build_parser("fake").parse_args(sys.argv[1:])
os._exit(daemon.run_daemon("fake", Fake, arguments))
"""


@pytest.fixture
def run(tmp_path):
    running = []

    def begin(start="self.context.readiness.ready('here')", stop="pass", timeout=30.0, words=()):
        reading, writing = os.pipe()
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                textwrap.dedent(PROGRAM).format(start=start, stop=stop, timeout=timeout),
                "--log-file",
                str(tmp_path / "fake.log"),
                "--ready-fd",
                str(writing),
                *words,
            ],
            cwd=ROOT,
            env={name: value for name, value in os.environ.items() if not name.startswith("DREY_")}
            | {"DREY_CONF_DIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            pass_fds=[writing],
        )
        os.close(writing)
        running.append((process, reading))
        return process

    def told():
        with os.fdopen(os.dup(running[-1][1])) as pipe:
            return pipe.read()

    begin.told = told
    begin.log = (tmp_path / "fake.log").read_text
    yield begin
    for process, reading in running:
        process.kill()
        process.communicate()
        os.close(reading)


def end(process):
    output = process.communicate(timeout=WAIT_S)[0]
    return process.returncode, output


def test_a_process_that_is_asked_to_end_stops_politely(run):
    process = run()
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGTERM)
    assert end(process) == (0, "stops: it was stopped\n")
    assert run.told() == "ready here\n"
    assert "SIGTERM: fake stops" in run.log()


def test_one_that_does_not_start_says_why_and_gives_back_what_it_took(run):
    process = run("raise ResourceError('no room\\nat all')")
    assert end(process) == (1, "stops: it was stopped\n")
    assert run.told() == "failed no room at all\n"
    assert "fake does not start: no room" in run.log()
    assert "Traceback" not in run.log()


def test_a_secret_file_that_cannot_be_used_is_a_wrong_configuration(run, tmp_path):
    (tmp_path / "file").touch()
    start = "from engine.rpc.secret_file import load_or_create_secret as load; from pathlib import Path; "
    process = run(f"{start}load(Path({str(tmp_path / 'file' / 'webhook.key')!r}), 'webhook key')")
    assert end(process)[0] == 3
    assert run.told().startswith("failed the webhook key") and "cannot be made" in run.log()


def test_a_fault_of_the_program_is_logged_with_its_place(run):
    process = run("raise KeyError('x')")
    assert end(process)[0] == 1
    assert "Traceback" in run.log()


def test_settings_that_are_wrong_are_told_before_anything_starts(run):
    process = run(words=("-D", "rest.prt=1"))
    code, output = end(process)
    assert code == 3
    assert "started" not in output
    assert run.told() == "failed unknown key 'rest.prt' (command line); did you mean rest.port?\n"


def test_what_a_component_cannot_survive_ends_the_process_with_2(run):
    process = run("asyncio.get_running_loop().call_later(0.05, self.context.on_fatal, ResourceError('worn out'))")
    assert end(process) == (2, "started\nstops: it failed: ResourceError('worn out')\n")
    assert "fake cannot go on: worn out" in run.log()


def test_an_error_that_nobody_catches_ends_the_process_too(run):
    process = run("asyncio.get_running_loop().call_later(0.05, lambda: 1 // 0)")
    assert end(process)[0] == 2
    assert "ZeroDivisionError" in run.log()


def test_a_signal_while_it_starts_ends_it(run):
    process = run("print('begins', flush=True); await asyncio.sleep(600)")
    assert process.stdout.readline() == "begins\n"
    process.send_signal(signal.SIGTERM)
    assert end(process) == (0, "stops: it was stopped\n")


def test_a_second_signal_ends_by_force_one_that_is_still_stopping(run):
    process = run(stop="await asyncio.sleep(600)")
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "stops: it was stopped\n"
    process.send_signal(signal.SIGTERM)
    assert end(process)[0] == 143
    assert "ended by force" in run.log()


def test_one_that_takes_too_long_to_stop_is_ended_by_force(run):
    process = run(stop="await asyncio.sleep(600)", timeout=0.05)
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGTERM)
    assert end(process)[0] == 143
    assert "has not stopped within 0.05 s" in run.log()
