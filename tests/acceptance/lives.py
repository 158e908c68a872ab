"""A process that runs programs, seen from outside: one Life, one program after another.

    with Life(conditions, folder, has_functions) as life:       started, warmed up, idle; in its control group
        outcome = life.run(program, paths)                      ─► Outcome: what it took, held, and left
        life.discard(outcome)                                   the output is removed; what is idle again is looked at
    life.ending                                                 what is wrong with how it ended, "" when nothing is

With a cluster the process only submits; the one that is watched, and has the bound, is the TaskManager.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.acceptance.limits import WatchedProcess, kill_count, memory_group
from tests.acceptance.program import Program
from tests.acceptance.programs_process import WARM_UP
from tests.chaos.cluster import ChaosCluster
from tests.folders import files_below

ROOT = Path(__file__).resolve().parents[2]
#: spilled bytes that nobody is asked about: pages are whole, and there are some for each subtask
_SPILLED_MIN_BYTES = 1 << 20
SPILLED_RATIO_MAX = 2.0


@dataclass(frozen=True)
class Conditions:
    """How programs are run."""

    settings: Mapping[str, str]
    slots: int
    #: over idle; None: anything
    bound_bytes: int | None
    is_cluster: bool = False


@dataclass
class Outcome:
    """What a run of a program took, held and left. ``problems`` is what does not hold of the process."""

    program: Program
    output: Path
    seconds: float = 0.0
    growth_bytes: int = 0
    #: over the first idle, when it had ended and its output was gone
    kept_bytes: int = 0
    vertices: list = field(default_factory=list)
    report: list[str] = field(default_factory=list)
    error_class: str = ""
    error: str = ""
    problems: list[str] = field(default_factory=list)

    @property
    def spilled_ratio(self) -> float:
        """The largest ratio of what an operator, or a vertex, spilled and what it took."""
        ratios = [0.0]
        for _, bytes_in, bytes_out, spilled, operators in self.vertices:
            ratios += [each[2] / max(1, each[1]) for each in operators if each[2] >= _SPILLED_MIN_BYTES]
            taken = max(bytes_in, sum(each[1] for each in operators))
            # Sorted results are kept by who makes them; a source takes nothing that it could be held against.
            if spilled >= _SPILLED_MIN_BYTES:
                ratios.append(spilled / max(1, taken, bytes_out))
        return max(ratios)


class Life:
    """One process and its end."""

    def __init__(self, conditions: Conditions, folder: Path, has_functions: bool, spill: Path) -> None:
        self._conditions = conditions
        self._folder = folder
        self.spill = spill
        self._temporary = folder / "tmp"
        self._has_functions = has_functions
        self._stack = contextlib.ExitStack()
        self._number = 0
        self.ending = ""
        self.is_alive = False

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def _start(self, stack: contextlib.ExitStack) -> None:
        bound = self._conditions.bound_bytes
        self.group = None if bound is None else stack.enter_context(memory_group(bound))
        target, settings, watched = "local", dict(self._conditions.settings), None
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(self._temporary)}
        self._log = self._folder / "errors.txt"
        self._temporary.mkdir()
        if self._conditions.is_cluster:
            cluster_settings = {**settings, "io.tmp.dirs": str(self.spill)}
            self.cluster = ChaosCluster(self._folder / "cluster", 1, self._conditions.slots, **cluster_settings)
            stack.enter_context(self.cluster)
            target, watched, environment = "cluster", self.cluster.pids("taskmanager")[0], self.cluster.environment
            settings = {"parallelism.default": settings["parallelism.default"]}
        else:
            settings["io.tmp.dirs"] = str(self.spill)
        words = json.dumps({"settings": settings, "target": target})
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.acceptance.programs_process", words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stack.enter_context(self._log.open("w")),
            env=environment, text=True, cwd=ROOT,
        )  # fmt: skip
        stack.callback(self._end)
        self.is_alive = True
        self.watched = WatchedProcess(watched or self._process.pid)
        for name in WARM_UP[: 2 if self._has_functions else 1]:
            answer = self._ask({"program": name, "scratch": str(self._folder / name)})
            if answer.get("error", self.ending):
                raise SystemExit(f"{answer.get('message', self.ending)}")
        self.idle_bytes = self.watched.resident_bytes
        self.idle_descriptors = self.watched.descriptors
        if self.group is not None:
            (self.group / "cgroup.procs").write_text(str(self.watched.pid))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        left = files_below(self.spill) + files_below(self._temporary)
        if left and not self.ending:
            self.ending = f"{len(left)} files are left, such as {left[0]}"

    def run(self, program: Program, paths: dict[str, str]) -> Outcome:
        """Run a program in the process and return what came of it."""
        self._number += 1
        home = self._folder / f"{self._number}-{program.name}"
        outcome = Outcome(program, home / "out")
        (home / "scratch").mkdir(parents=True)
        self.watched.begin_peak()
        answer = self._ask(
            {"program": program.name, "paths": paths, "output": str(outcome.output), "scratch": str(home / "scratch")}
        )
        if not answer:
            outcome.problems.append(self.ending)
            return outcome
        outcome.growth_bytes = self.watched.peak_bytes - self.idle_bytes
        outcome.seconds = float(answer["seconds"])
        outcome.error_class, outcome.error = answer.get("error", ""), answer.get("message", "")
        outcome.vertices, outcome.report = answer.get("vertices", []), answer.get("report", [])
        shutil.rmtree(home / "scratch")
        beside = sorted(path.name for path in home.iterdir() if path != outcome.output)
        if beside:
            outcome.problems.append(f"left beside the output: {', '.join(beside)}")
        if outcome.error and outcome.output.exists():
            outcome.problems.append("it failed and there is an output")
        return outcome

    def discard(self, outcome: Outcome) -> None:
        """Remove an output, and look at what the process holds now."""
        shutil.rmtree(outcome.output.parent)
        if not self.is_alive:
            return
        outcome.kept_bytes = self.watched.resident_bytes - self.idle_bytes
        opened = self.watched.descriptors
        # Sockets and pipes have numbers for names, and those of a cluster come and go.
        more = [name for name in opened if name.startswith("/") and name not in self.idle_descriptors]
        if more or len(opened) > len(self.idle_descriptors) + (8 if self._conditions.is_cluster else 0):
            outcome.problems.append(
                f"{len(opened)} descriptors, {len(self.idle_descriptors)} before: {', '.join(more or opened)}"
            )
        left = [path for path in files_below(self.spill) if path.name != "lock"]
        if left:
            outcome.problems.append(f"{len(left)} files in the spill folder, such as {left[0]}")

    def _ask(self, words: dict[str, object]) -> dict:
        """Return the answer of the process; {} when it has ended, and then ``ending`` says how."""
        try:
            self._process.stdin.write(json.dumps(words) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            return json.loads(line)
        self._end()
        return {}

    def _end(self) -> None:
        if not self.is_alive:
            return
        self.is_alive = False
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        code = self._process.wait()
        self._process.stdout.close()
        killed = 0 if self.group is None else kill_count(self.group)
        if killed:
            self.ending = "ended by the kernel at the bound"
        elif code:
            said = self._log.read_text().strip().splitlines()
            self.ending = f"exit code {code}: {said[-1] if said else ''}"
