"""The way of a batch through compiled expressions: to its mask, or to another batch, without a Python frame.

    run = ProgramRun(program, operands, places)     a program, and where its inputs come from
    run(batch), run.mask(batch), run.project(...)   as of the program; None: Arrow must say
    Condition.mask(batch, places) -> Mask           base of a compiled condition: native steps, or what Arrow says
    BatchMaker(batch) -> batch                      base of a projection: the same; columns that are chosen by reference

Every batch comes by once or twice. What is seldom (texts of errors, schemas of a kind of batches that has not
been seen) is left to the Python classes of these bases.

Held by: tests/expressions/test_evaluate.py
Held by: tests/expressions/test_program_builder.py
"""

from functools import partial

import pyarrow as pa

from engine.errors import DataError, SchemaError
from engine.expressions.binding import UNFIT, as_array
from engine.records.opened_batch cimport schema_of, shown_batch
from engine.records.row_mask cimport Mask
from engine.records.side_by_side import chosen_columns

#: larger than a kernel may see at once, or of a type that none knows
cdef tuple UNSEEN = (*UNFIT, DataError, SchemaError)


cdef class ProgramRun:
    """A program, and the functions that make its inputs from a batch. Thread: any."""

    #: operands whose values are the columns that the program reads
    cdef readonly list inputs
    cdef object _program
    cdef list _places           # indexes of the columns that are its inputs, None where some input is computed
    cdef bint _are_first        # these are the first columns, in order
    cdef list _names
    cdef readonly bint has_given_up

    def __init__(self, program not None, list inputs not None, list places):
        self._program, self.inputs, self._places = program, inputs, places
        self._are_first = places == list(range(len(inputs)))
        self._names = [""] * len(inputs)

    @property
    def reads_columns(self):
        """Whether its inputs are columns of a batch, none of which is computed before."""
        return self._places is not None

    def give_up(self):
        """Record that Arrow has found results where the program had none: it is no longer asked."""
        self.has_given_up = True

    def __call__(self, batch not None, narrow=()):
        """Return the outputs over a batch, None where Arrow must say; ``narrow``: those that may be of 64 bits."""
        if self.has_given_up:
            return None
        try:
            return self._program.run(self._inputs_of(batch, None), narrow, self._places_of(batch, None))
        except UNSEEN:
            return None

    def project(self, batch not None, narrow, list targets, list passed, schema_for):
        """Return the outputs at their targets beside columns that are passed on; None where Arrow must say.

        passed: (target, column of the batch). schema_for: from flags, which outputs are narrow, to the result's schema.
        """
        if self.has_given_up:
            return None
        try:
            inputs, places = self._inputs_of(batch, None), self._places_of(batch, None)
            return self._program.project(inputs, narrow, places, batch, targets, passed, schema_for)
        except UNSEEN:
            return None

    def mask(self, batch not None, list places=None):
        """Return the rows for which the only output is true, None where Arrow must say.

        places: of the columns of the schema in the batch, None: as they are.
        """
        if self.has_given_up:
            return None
        try:
            return self._program.mask(self._inputs_of(batch, places), self._places_of(batch, places))
        except UNSEEN:
            return None

    cdef object _inputs_of(self, batch, list places):
        """A batch that has the inputs; decimals come narrow, or not."""
        if self._places is not None:
            return batch
        if places is not None:
            batch = batch.select(places)
        batch = shown_batch(batch)
        columns = [as_array(operand.evaluate(batch), batch.num_rows) for operand in self.inputs]
        return pa.RecordBatch.from_arrays(columns, names=self._names)

    cdef list _places_of(self, batch, list places):
        """The places of the inputs in that batch, None: in order."""
        if self._places is None:
            return None
        if places is not None:
            return [places[place] for place in self._places]
        return None if self._are_first and batch.num_columns == len(self._places) else self._places


cdef class Condition:
    """Base of a compiled condition, or any other expression."""

    cdef ProgramRun _run

    def __init__(self, ProgramRun program):
        self._run = program

    def mask(self, batch not None, list places=None):
        """Return the rows of a batch for which it is true; ``places``: of the schema's columns in the batch.

        Raises: as a call does.
        """
        cdef Mask found = None if self._run is None else self._run.mask(batch, places)
        if found is not None:
            return found
        return Mask(self._without_steps(batch if places is None else batch.select(places)))


cdef class BatchMaker:
    """Base of a projection. Thread: any.

    Args:
        chosen: places of the columns of a batch that the result has, None where one of them is computed.
        run: what computes all but passed columns; None: Arrow's functions do.
        narrow, targets, passed: as of ``ProgramRun.project``.
    """

    cdef list _chosen, _targets, _passed
    cdef ProgramRun _run
    cdef object _narrow
    cdef tuple _known       # schema of the last batch, and those of results by which of the outputs are narrow

    def __init__(self, list chosen, ProgramRun run, narrow, list targets, list passed):
        self._chosen, self._run, self._narrow = chosen, run, narrow
        self._targets, self._passed, self._known = targets, passed, (None, {})

    def __call__(self, batch not None):
        """Return the batch that is made of another one."""
        made = None
        if self._chosen is None:
            if self._run is not None:
                schema_for = partial(self.schema_for, batch)
                made = self._run.project(batch, self._narrow, self._targets, self._passed, schema_for)
            return self._by_arrow(batch) if made is None else made
        if not self._chosen:
            return batch.select([])  # a batch of no columns has rows, which arrays alone do not tell
        try:
            made = chosen_columns(batch, self._chosen, self.schema_for(batch, ()))
        except pa.ArrowInvalid:  # of another type than told: Arrow casts it
            pass
        return self._of_columns([batch.column(index) for index in self._chosen]) if made is None else made

    def schema_for(self, batch, tuple is_narrow):
        """Return the schema of what is made of a batch; pa.ArrowInvalid: its columns are of other types than told."""
        cdef tuple known = self._known
        source = schema_of(batch)
        if source is not known[0] and (known[0] is None or not source.equals(known[0])):
            known = self._known = source, {}
        schema = known[1].get(is_narrow)
        if schema is None:
            schema = known[1][is_narrow] = self._new_schema(source, is_narrow)
        return schema
