"""Held states: places that all tasks of a job read as they were when it began, repeated tasks too.

    JobMaster    HeldStates(job graph).hold() ─► {place: name of its state} ─► descriptors of tasks      close()
    tasks        reader.read_states({place: name})

A format names the place of a source (``SourceFormat.state_place``) where what is there may change while a job runs, and
readers can be told to look at it as it was. The name is all that a task needs beside its source. A leader that takes a
job over holds a state of its own: tasks that it deploys may see a later one than those that ran before.

Blocking: runs in the JobMaster's executor.
Held by: tests/databases/test_held_states.py
"""

from __future__ import annotations

from threading import Lock

from engine.errors import PlanError
from engine.formats.registry import format_of
from engine.formats.source_format import HeldState
from engine.graph.job_graph import JobGraph
from engine.graph.source_spec import SourceSpec


class HeldStates:
    """The states of all places that the sources of a job read."""

    def __init__(self, job_graph: JobGraph) -> None:
        self._sources: list[SourceSpec] = []
        self._held: dict[str, HeldState] = {}
        #: lock: a job that is cancelled while it is prepared lets go of what is held
        self._turn = Lock()
        self._is_closed = False
        for vertex in job_graph.vertices:
            source = vertex.source
            if source is not None and _place_of(source.spec):
                self._sources.append(source.spec)
        #: flag of jobs that read such places
        self.has_places = bool(self._sources)

    def hold(self) -> dict[str, str]:
        """Return the name of each place's state. Raises what opening a connection raises."""
        for spec in self._sources:
            place = _place_of(spec)
            with self._turn:
                if not self._is_closed and place not in self._held and (held := format_of(spec).held_state(spec)):
                    self._held[place] = held
        return {place: held.name for place, held in self._held.items()}

    def close(self) -> None:
        """Let go of all states; idempotent."""
        with self._turn:
            self._is_closed = True
            while self._held:
                self._held.popitem()[1].close()


def _place_of(spec: SourceSpec) -> str:
    try:
        return format_of(spec).state_place(spec)
    except PlanError:
        return ""  # a package of this format is installed where tasks run, not here
