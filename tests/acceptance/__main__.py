"""Command line of the acceptance programs; see the package's text."""

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.config.loader import configuration_from_texts
from engine.config.options import MANAGED_SIZE
from tests.acceptance.damage import BitFlipper, small_disk
from tests.acceptance.expectations import Expectations
from tests.acceptance.limits import bound_bytes
from tests.acceptance.lives import SPILLED_RATIO_MAX, Conditions, Life, Outcome
from tests.acceptance.program import Program
from tests.acceptance.programs_process import PROGRAMS
from tests.acceptance.report import Line, table
from tests.acceptance.tables import RECORD_BYTES_MAX, Tables

_PROCESS_SIZE = "512mb"


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.acceptance", description="whole programs in a hundredth of the memory")
    parser.add_argument("--managed", default="4mb", help="managed memory (default 4mb)")
    parser.add_argument("--slots", type=int, default=2, help="slots, and the parallelism of programs (default 2)")
    parser.add_argument("--scale", type=float, default=100, help="how many times the managed memory a table is")
    parser.add_argument("--programs", default="", help=f"some of {','.join(PROGRAMS)}")
    parser.add_argument("--mode", choices=["PIPELINED", "BATCH"], help="execution mode")
    parser.add_argument("--force-spill", action="store_true", help="every operator spills on a few rows")
    parser.add_argument("-D", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="a setting")
    default = Path(tempfile.gettempdir()) / "drey-acceptance"
    parser.add_argument("--folder", type=Path, default=default, help="for tables, which are kept, and results")
    parser.add_argument("--rounds", type=int, metavar="N", help="one process runs all programs N times")
    parser.add_argument("--cluster", action="store_true", help="with --rounds: a TaskManager of a real cluster")
    damage = parser.add_mutually_exclusive_group()
    damage.add_argument("--disk-full", type=int, metavar="MB", help="the spill folder is a disk of that size")
    damage.add_argument("--bit-flips", action="store_true", help="bits of spill files flip")
    options = parser.parse_args(words)
    unknown = set(filter(None, options.programs.split(","))) - set(PROGRAMS)
    if unknown:
        parser.error(f"no program {', '.join(sorted(unknown))}: choose from {', '.join(PROGRAMS)}")
    if options.cluster and not options.rounds:
        parser.error("--cluster wants --rounds")
    return options


class Acceptance:
    """One run of the command."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        settings = {
            "taskmanager.memory.process.size": _PROCESS_SIZE,
            "taskmanager.memory.managed.size": options.managed,
            "parallelism.default": str(options.slots),
        }
        if options.mode:
            settings["execution.mode"] = options.mode
        if options.force_spill:
            settings["debug.force-spill"] = "true"
        settings |= dict(each.split("=", 1) for each in options.settings)
        self._options = options
        self._folder = folder
        managed = configuration_from_texts(settings).get(MANAGED_SIZE)
        # Files of a small disk are memory, of whom writes them.
        bound = None if options.disk_full else bound_bytes(settings, options.slots, RECORD_BYTES_MAX)
        self._conditions = Conditions(settings, options.slots, bound, options.cluster)
        self._tables = Tables(options.folder / f"{managed}-{options.scale:g}", managed, options.scale)
        self._expectations = Expectations(self._tables.folder)
        names = options.programs.split(",") if options.programs else PROGRAMS
        self.programs = [PROGRAMS[name] for name in names]
        self.lines: list[Line] = []
        self.endings: list[str] = []
        self._flip_count = 0

    def run(self) -> str:
        """Run everything and return the table."""
        with contextlib.closing(self._expectations):
            paths = [{name: str(self._tables.path(name)) for name in program.tables} for program in self.programs]
            work = list(zip(self.programs, paths, strict=True))
            for program, of_program in work:
                self._expectations.row_count(program, of_program)
            if self._options.rounds:
                self._live(work * self._options.rounds)
            else:
                for each in work:
                    self._live([each])
        if self._options.disk_full and not any(line.outcome.error for line in self.lines):
            self.endings.append("the disk was never full")
        if self._options.bit_flips and not self._flip_count:
            self.endings.append("no bit was flipped: no spill file was large enough")
        return table(self.lines, self.endings)

    def _live(self, work: Sequence[tuple[Program, dict[str, str]]]) -> None:
        """Run programs in one process."""
        with tempfile.TemporaryDirectory(prefix="run-", dir=self._folder) as name:
            spill = Path(name, "spill")
            spill.mkdir()
            with self._damaged(spill) as flipper:
                life = Life(self._conditions, Path(name), any(each.has_functions for each, _ in work), spill)
                with life:
                    if life.group is None and self._conditions.bound_bytes is not None:
                        sys.stderr.write("no control group can be made here: only the largest resident size is known\n")
                    for program, paths in work:
                        if life.is_alive:
                            outcome = life.run(program, paths)
                            self._judge(life, outcome, paths, flipper)
            if life.ending:
                self.endings.append(f"{', '.join(dict.fromkeys(each.name for each, _ in work))}: {life.ending}")

    @contextlib.contextmanager
    def _damaged(self, spill: Path) -> Iterator[BitFlipper | None]:
        with contextlib.ExitStack() as stack:
            if self._options.disk_full:
                stack.enter_context(small_disk(spill, self._options.disk_full))
            yield stack.enter_context(BitFlipper(spill)) if self._options.bit_flips else None

    def _judge(self, life: Life, outcome: Outcome, paths: dict[str, str], flipper: BitFlipper | None) -> None:
        wrong, difference, rows = list(outcome.problems), "", 0
        if outcome.error:
            wrong += self._wrong_with_error(outcome, life, flipper)
        elif life.is_alive:
            difference = self._expectations.difference(outcome.program, paths, outcome.output)
            rows = self._expectations.row_count(outcome.program, paths)
            wrong += [difference] if difference else []
        before = len(outcome.problems)
        life.discard(outcome)
        wrong += outcome.problems[before:]
        bound = self._conditions.bound_bytes
        if bound is not None and outcome.growth_bytes > bound:
            wrong.append(f"{outcome.growth_bytes:,} bytes over idle, {bound:,} are allowed")
        # Forced, an operator spills every few rows, again and again: what holds of its memory does not hold of that.
        if outcome.spilled_ratio > SPILLED_RATIO_MAX and not self._options.force_spill:
            wrong.append("\n  ".join(["spilled more than twice of what was taken:", *outcome.report]))
        line = Line(outcome, bound, rows, difference, tuple(wrong))
        self.lines.append(line)
        sys.stderr.write("\n".join([line.text, *wrong]) + "\n")
        if flipper is not None:
            self._flip_count += sum(flipper.flipped.values())
            sys.stderr.write(f"  flipped {flipper.flipped}; {outcome.error.splitlines()[:1]}\n")

    def _wrong_with_error(self, outcome: Outcome, life: Life, flipper: BitFlipper | None) -> list[str]:
        """Return what is wrong with an error: what nobody damaged, and what does not say what was damaged."""
        if self._options.disk_full:
            is_named = outcome.error.startswith("DiskFullError: ") and str(life.spill) in outcome.error
        else:
            is_named = flipper is not None and any(name in outcome.error for name in flipper.flipped)
        return [] if is_named else [outcome.error]


def main(words: Sequence[str] | None = None) -> int:
    """Run what is asked for, print one table; return 1 where something does not hold."""
    options = parsed(words)
    options.folder.mkdir(parents=True, exist_ok=True)
    acceptance = Acceptance(options, options.folder)
    sys.stdout.write(acceptance.run() + "\n")
    return int(any(line.wrong for line in acceptance.lines) or bool(acceptance.endings))


if __name__ == "__main__":
    sys.exit(main())
