"""GroupTable: a hash table of groups on pages of a PagePool.

    table = GroupTable(pool, key_schema, states, initial_level, ...)
    binding = table.bind(operations, columns)            which input column each state reads, and how
    opened = table.open(key_columns, batch, binding)     one call a batch; keys may be codes of dictionaries
    next_row = table.add(opened, start, reserved)        rows before next_row are in; fewer than all: full
    table.store_sizes(), GroupScan(table, ...)           what is in it
    table.drop(stores) / table.reset(level) / table.close()

    directory   tagged addresses of groups by hash (group_directory.pxd), at most 5/8 full
    group       | size 4 | kind 4 | hash 8 | states | flags | key row |        in the pages of its partition

Rows are handled 1024 at a time. Where keys have few values their groups are known by number (``dense_groups``). Other
rows go in rounds: all look for a slot (an empty one is taken at once, one with the right tag makes a candidate), new
keys are encoded, all candidates are compared column by column; those that differ look on in the next round. Keys of a
few integers are found in one pass instead (``integer_keys``). Then every state is updated by a kernel over the group
addresses, or over the rows of each group where these are few (``few_groups``).

Full means: no page for a group, a value or a larger directory. Rows before the one that found no room are complete; it
may have changed values of its group already, which does no harm, since it comes again. It and rows behind it may have
left groups without rows: has_rows() tells where that matters (their first would seem to be null).

Invariants: a group is found by every later row with its key until its partition is dropped; two rows get one group
exactly when KeyEquality says so. Without key columns there is one group. `reserved` puts one row in
beyond the pool's limit; a frozen table does so with values of groups that it has (they must not be lost), never with a
new group, except the first. Once sealed it takes no new one, or room that a value gives back would let a refused group
in with its later rows: it would come out twice.

Limits: about 100 KiB of scratch outside the budget.

Source: Flink's BytesHashMap (record area and bucket area on segments); tags as in the hash table of Umbra and DuckDB
("salt"), linear probing over addresses.

Held by: tests/aggregate/test_hash_aggregate.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from engine.accumulators.few_groups cimport NOT_DONE, FewGroups, list_rows, update_few_groups, update_only_group
from engine.accumulators.state_kernels cimport OP_COUNT_ROWS, OP_COUNT_VALID, OP_FIRST, OP_LAST, StateField
from engine.accumulators.state_kernels cimport update_state
from engine.aggregate.dense_groups cimport NO_NUMBERS, DenseGroups
from engine.aggregate.group_directory cimport directory_fill, directory_give, directory_group, directory_grow
from engine.aggregate.group_directory cimport directory_index, directory_limit, directory_shrink, directory_slot
from engine.aggregate.group_directory cimport directory_take
from engine.aggregate.group_input cimport GroupInput, StateBinding, new_binding, new_input
from engine.aggregate.group_store cimport GROUP_HASH, RECORD_GROUP, GroupStore, store_begin, store_clear
from engine.aggregate.group_store cimport store_destroy, store_next_group, store_place
from engine.aggregate.integer_keys cimport are_all_valid, find_keys, key_rows_begin, key_rows_destroy
from engine.aggregate.integer_keys cimport prefetch_keys, put_key, size_of_key, write_key_rows
from engine.aggregate.state_layout cimport place_states
from engine.aggregate.text_key_cache cimport TextKeyCache
from engine.aggregate.value_states cimport ValueScan, begin_values, next_value, put_value
from engine.memory.page_pool cimport PagePool
from engine.records.arrow_batch cimport KIND_BYTES, ArrowBatch
from engine.records.byte_kernels cimport prefetch
from engine.records.comparator cimport KeyEquality
from engine.records.hashing cimport hash_batch
from engine.records.outside_keys cimport raise_failed_comparison
from engine.records.row_codec cimport RowCodec

from engine.errors import DataError, MemoryBudgetError

cdef enum:
    CHUNK_ROWS = 1024           # rows located together
    CHUNK_ROWS_MIN = 8
    BLOCK_ROWS = 64             # rows whose groups are asked for together
    KEY_AHEAD = 24              # behind size, null bits and a first slot: where the bytes of a text are
    VALUE_BYTES = 1024          # what a row with values may take, generously
    NO_FAILURE = -1
    NO_VALUE_ROOM = -2          # a frozen table's group could not take what is its own
    FEW_STATES_MIN = 3          # fewer are not worth that rows are listed by groups
    NO_KEYS = -1                # instead of rows: keys are codes, and some are not known


@cython.final
cdef class GroupTable:
    """Args: states: a batch without rows of the state columns; operations: Operation of each; overflow_texts: what to
    say when its sum overflows; partition_count: 2^n spill partitions; separate_stores: pages of its own for each;
    group_limit: full at so many groups, 0: no limit.
    """

    def __cinit__(self, PagePool pool not None, key_schema, states, list operations, list overflow_texts,
                  int32_t partition_count, bint separate_stores, int64_t group_limit):
        cdef int32_t index
        self._pool = pool
        self._key_count = <int32_t> len(key_schema)
        self._overflow_texts = overflow_texts
        self._group_limit = group_limit if group_limit > 0 else (<int64_t> 1 << 62)
        self._room = 1          # without keys; with keys set before every chunk
        self.partition_count = partition_count
        self.store_count = partition_count if separate_stores else 1
        self.stores = <GroupStore*> calloc(self.store_count, sizeof(GroupStore))
        self._key_columns = <int32_t*> calloc(self._key_count + 1, sizeof(int32_t))
        if self.stores == NULL or self._key_columns == NULL:
            raise MemoryError()
        for index in range(self.store_count):
            store_begin(&self.stores[index], index, pool.page_size)
        for index in range(self._key_count):
            self._key_columns[index] = index
        if self._key_count > 0:
            self._codec = RowCodec(key_schema)
            columns = list(range(self._key_count))
            self._equality = KeyEquality(self._codec, columns, self._codec, columns)
            key_rows_begin(&self._key_rows, self._codec, CHUNK_ROWS)
        self._recent = TextKeyCache(self._key_count == 1 and self._codec.kinds[0] == KIND_BYTES)
        self._dense = DenseGroups(pool, self._codec)
        self._lay_out(states, operations)
        self._allocate_scratch()
        if not directory_take(&self._directory, pool, pool.page_size // 8):
            raise MemoryBudgetError(f"no page for the directory of a group table in {pool!r}")

    def __dealloc__(self):
        cdef int32_t index
        for index in range(self.store_count if self.stores != NULL else 0):
            store_destroy(&self.stores[index])
        free(self.stores)
        free(self._key_columns)
        free(self.fields)
        free(self._scans)
        free(self._initial)
        free(self._scratch)
        key_rows_destroy(&self._key_rows)

    cdef int _lay_out(self, states, list operations) except -1:
        """Give every state its place in a group."""
        cdef int32_t index
        self.field_count = states.num_columns
        self.fields = <StateField*> calloc(self.field_count + 1, sizeof(StateField))
        self._scans = <ValueScan*> calloc(self.field_count + 1, sizeof(ValueScan))
        if self.fields == NULL or self._scans == NULL:
            raise MemoryError()
        self.key_offset = (place_states(self.fields, states, operations, GROUP_STATES) + 7) & ~7
        self._key_rows.key_offset = self.key_offset
        for index in range(self.field_count):
            if self.fields[index].is_variable:
                self._scans[self._scan_count].state = index
                self._scan_count += 1
            self._has_order |= self.fields[index].operation in (OP_FIRST, OP_LAST)
        self._initial = <uint8_t*> calloc(self.key_offset, 1)
        if self._initial == NULL:
            raise MemoryError()
        for index in range(self.field_count):
            if self.fields[index].operation in (OP_COUNT_ROWS, OP_COUNT_VALID):
                self._initial[self.fields[index].flag - GROUP_STATES] = 1
        return 0

    cdef int _allocate_scratch(self) except -1:
        cdef uint8_t* memory = <uint8_t*> malloc(CHUNK_ROWS * (6 * 8 + 4 * 4 + 8) + sizeof(FewGroups))
        if memory == NULL:
            raise MemoryError()
        self._scratch = memory
        self._hashes = <uint64_t*> memory
        self._groups = <uint8_t**> (memory + 8 * CHUNK_ROWS)
        self._targets = <uint8_t**> (memory + 16 * CHUNK_ROWS)
        self._candidate_keys = <uint8_t**> (memory + 24 * CHUNK_ROWS)
        self._positions = <int64_t*> (memory + 32 * CHUNK_ROWS)
        self._candidate_rows = <int64_t*> (memory + 40 * CHUNK_ROWS)
        self._sizes = <uint32_t*> (memory + 48 * CHUNK_ROWS)
        self._pending = <int32_t*> (memory + 52 * CHUNK_ROWS)
        self._candidates = <int32_t*> (memory + 56 * CHUNK_ROWS)
        self._inserted = <int32_t*> (memory + 60 * CHUNK_ROWS)
        self._flags = memory + 64 * CHUNK_ROWS
        self._few = <FewGroups*> (memory + 72 * CHUNK_ROWS)
        self._few.rest = 0
        return 0

    # ------------------------------------------------------------------------------------------------------ input

    def bind(self, list operations not None, list columns not None):
        """Return a StateBinding: for each state its Operation and the column it reads (-1: none)."""
        return new_binding(self.fields, self.field_count, operations, columns)

    def keep_outside(self, owner):
        """Let wide values of keys and states lie with owner (write_value)."""
        self._owner = owner
        if self._key_count > 0:
            self._codec.let_outside(owner, ())

    def open(self, list key_columns not None, batch, StateBinding binding not None):
        """Open a batch. Args: key_columns: numbers of its keys, in order; batch: with the columns of the binding."""
        return new_input(key_columns, batch, binding, self._codec, self._dense, self._owner)

    def add(self, GroupInput opened not None, int64_t start, bint reserved):
        """Put rows start and following into their groups; return the first row that is not in.

        With reserved, only the row at start is put in, beyond the pool's limit where it has no room.

        Raises: DataError when a sum overflows; CorruptBlockError, SpillError where a value outside cannot be compared
        (the table is then unusable).
        """
        cdef int64_t count, done
        cdef int32_t failed = NO_FAILURE
        cdef int64_t row_count = min(opened.row_count, start + 1) if reserved else opened.row_count
        with nogil:
            while start < row_count:
                count = min(self._chunk_rows(), row_count - start)
                done = self._add_chunk(opened, start, count, reserved, &failed)
                if done == NO_KEYS:
                    with gil:
                        opened.open_keys()
                    continue
                start += done
                if done == 0 or failed != NO_FAILURE:
                    break
        raise_failed_comparison()
        if failed == NO_VALUE_ROOM:
            raise MemoryBudgetError("the machine has no memory for a value of a group")
        if failed != NO_FAILURE:
            raise DataError(self._overflow_texts[failed])
        return start

    cdef int64_t _chunk_rows(self) noexcept nogil:
        """Rows to locate together: few when little memory is left for their values (groups are made before them)."""
        cdef int64_t rows = self._pool.pages_free() * self._pool.page_size // VALUE_BYTES
        if self._scan_count == 0:
            return CHUNK_ROWS
        return min(max(rows, <int64_t> CHUNK_ROWS_MIN), <int64_t> CHUNK_ROWS)

    cdef int64_t _add_chunk(self, GroupInput opened, int64_t start, int64_t count, bint reserved,
                            int32_t* failed) noexcept nogil:
        cdef const StateField* field
        cdef int64_t updated
        cdef int32_t index
        cdef int over
        cdef bint few
        count = (self._locate(opened, start, count, reserved) if self._key_count > 0
                 else self._locate_global(count, reserved))
        if self._scan_count > 0 and count > 0:
            updated = self._update_values(opened, start, count, reserved or self.frozen)
            if self.frozen and updated < count:
                failed[0] = NO_VALUE_ROOM
            count = updated
        few = (self.field_count >= FEW_STATES_MIN and opened.numbered is not None and self._dense.are_numbered
               and list_rows(self._few, self._dense.numbers, self._dense.number_count(), self._groups, count))
        for index in range(self.field_count if count > 0 else 0):
            field = &opened.binding.fields[index]
            if field.is_variable and field.operation not in (OP_COUNT_ROWS, OP_COUNT_VALID):
                continue
            over = NOT_DONE
            if self._key_count == 0:
                over = update_only_group(field, &opened.arguments.columns[field.column], start, self._groups[0], count)
            elif few:
                over = update_few_groups(self._few, field, &opened.arguments.columns[field.column], start)
            if over == NOT_DONE:
                over = update_state(field, &opened.arguments.columns[field.column], start, self._groups, count)
            if over:
                failed[0] = index
        return count

    # --------------------------------------------------------------------------------------------- find or insert

    cdef int64_t _locate_global(self, int64_t count, bint reserved) noexcept nogil:
        cdef int64_t index, page_index = 0, offset = 0
        cdef uint8_t* group
        group = (self._new_group(0, 0, reserved or self.frozen) if self.group_count == 0
                 else store_next_group(&self.stores[0], &page_index, &offset))
        if group == NULL:
            return 0
        for index in range(count):
            self._groups[index] = group
        return count

    cdef int64_t _locate(self, GroupInput opened, int64_t start, int64_t count, bint reserved) noexcept nogil:
        """Find or insert the groups of rows start .. start + count into _groups; returns how many found room, or
        NO_KEYS."""
        cdef int64_t index
        cdef int64_t pending_count = NO_NUMBERS
        if opened.numbered is not None:
            pending_count = self._dense.find(opened.numbered, start, count, self._groups, self._pending)
        if pending_count == 0:
            return count
        if opened.keys is None:
            return NO_KEYS
        if self._recent.find(&opened.keys.columns[0], start, count, self._groups):
            if opened.numbered is not None:
                self._dense.keep(count, self._groups)
            return count
        directory_grow(&self._directory, self._pool, self.stores, self.store_count, self.group_count, count)
        self._room = 0 if self._sealed else min(directory_limit(&self._directory), self._group_limit)
        if self._directory.slots == NULL:
            return 0
        hash_batch(opened.keys, self._key_columns, self._key_count, start, count, self._hashes)
        for index in range(count):
            self._positions[index] = directory_index(&self._directory, self._hashes[index])
            prefetch(&self._directory.slots[self._positions[index]])
        if pending_count < 0 or pending_count == count:
            pending_count = count
            for index in range(count):
                self._pending[index] = <int32_t> index
        if pending_count == count and self._key_rows.words != NULL and are_all_valid(opened.keys):
            count = self._locate_integers(opened.keys, start, count, reserved)
        else:
            count = self._locate_pending(opened.keys, start, count, pending_count, reserved)
        self._recent.keep(&opened.keys.columns[0], start, count, self._groups)
        if opened.numbered is not None:
            self._dense.keep(count, self._groups)
        return count

    cdef int64_t _locate_pending(self, ArrowBatch keys, int64_t start, int64_t count, int64_t pending_count,
                                 bint reserved) noexcept nogil:
        """The same for the pending ones of the rows, of any keys, in rounds."""
        cdef int64_t index, inserted_count, candidate_count
        cdef int32_t row
        self._codec.measure(keys, start, count, self._sizes)
        while pending_count > 0:
            count = self._probe(start, count, pending_count, reserved, &inserted_count, &candidate_count)
            self._encode_inserted(keys, start, inserted_count)
            self._equality.batch_equals_rows(keys, self._candidate_rows, self._candidate_keys, candidate_count,
                                             self._flags)
            pending_count = 0
            for index in range(candidate_count):
                if not self._flags[index]:
                    row = self._candidates[index]
                    self._positions[row] = (self._positions[row] + 1) & (self._directory.slot_count - 1)
                    self._pending[pending_count] = row
                    pending_count += 1
        return count

    cdef int64_t _locate_integers(self, ArrowBatch keys, int64_t start, int64_t count, bint reserved) noexcept nogil:
        """The same for keys of a few integers without nulls, in one pass; positions are where rows begin to look."""
        cdef const KeyRows* rows = &self._key_rows
        cdef int64_t row = 0, end = 0
        cdef uint8_t* group
        write_key_rows(&self._key_rows, self._codec, keys, start, count)
        while row < count:
            if row == end:
                end = min(row + BLOCK_ROWS, count)
                prefetch_keys(&self._directory, self._hashes, rows, row, end, self._positions)
            row = find_keys(&self._directory, self._hashes, rows, row, end, self._positions, self._groups)
            if row == end:
                continue
            group = self._new_group(self._hashes[row], size_of_key(rows),
                                    (reserved and row == 0) or (self.frozen and self.group_count == 0))
            if group == NULL:
                break
            self._directory.slots[self._positions[row]] = directory_slot(group, self._hashes[row])
            put_key(group, rows, row)
            self._groups[row] = group
            row += 1
        return row

    cdef int64_t _probe(self, int64_t start, int64_t count, int64_t pending_count, bint reserved,
                        int64_t* inserted_count, int64_t* candidate_count) noexcept nogil:
        """One round: every pending row below count gets a new group or a candidate. Returns count, or less: full."""
        cdef uint64_t* slots = self._directory.slots
        cdef int64_t mask = self._directory.slot_count - 1
        cdef int64_t index, position
        cdef uint64_t slot, tag
        cdef uint8_t* group
        cdef int32_t row
        cdef int64_t inserted = 0, candidates = 0
        for index in range(pending_count):
            row = self._pending[index]
            if row >= count:
                break
            position = self._positions[row]
            tag = self._hashes[row] & 0xFFFF
            slot = slots[position]
            while slot != 0 and slot >> 48 != tag:
                position = (position + 1) & mask
                slot = slots[position]
            self._positions[row] = position
            if slot == 0:
                group = self._new_group(self._hashes[row], self._sizes[row],
                                        (reserved and row == 0) or (self.frozen and self.group_count == 0))
                if group == NULL:
                    count = row
                    break
                slots[position] = directory_slot(group, tag)
                self._targets[row] = group + self.key_offset
                self._inserted[inserted] = row
                inserted += 1
            else:
                group = directory_group(slot)
                prefetch(group)
                prefetch(group + self.key_offset + KEY_AHEAD)
                self._candidates[candidates] = row
                self._candidate_rows[candidates] = start + row
                self._candidate_keys[candidates] = group + self.key_offset
                candidates += 1
            self._groups[row] = group
        inserted_count[0] = inserted
        candidate_count[0] = candidates
        return count

    cdef void _encode_inserted(self, ArrowBatch keys, int64_t start, int64_t inserted_count) noexcept nogil:
        """Write the keys of new groups, in runs of neighbouring rows."""
        cdef int64_t stop, index = 0
        cdef int32_t first
        while index < inserted_count:
            first = self._inserted[index]
            stop = index + 1
            while stop < inserted_count and self._inserted[stop] == first + (stop - index):
                stop += 1
            self._codec.encode(keys, start + first, stop - index, self._sizes + first, self._targets + first)
            index = stop

    cdef uint8_t* _new_group(self, uint64_t hash, int64_t key_size, bint reserved) noexcept nogil:
        cdef GroupStore* store = self._store_of(hash)
        cdef uint8_t* group
        if self.group_count >= self._room:
            return NULL
        group = store_place(store, self._pool, self.key_offset + key_size, RECORD_GROUP, reserved)
        if group == NULL:
            return NULL
        (<uint64_t*> (group + GROUP_HASH))[0] = hash
        memcpy(group + GROUP_STATES, self._initial, <size_t> (self.key_offset - GROUP_STATES))
        store.group_count += 1
        self.group_count += 1
        self.groups_made += 1
        return group

    cdef inline GroupStore* _store_of(self, uint64_t hash) noexcept nogil:
        return &self.stores[self.partition_of(hash) if self.store_count > 1 else 0]

    # ------------------------------------------------------------------------------------------------------ values

    cdef int64_t _update_values(self, GroupInput opened, int64_t start, int64_t count, bint reserved) noexcept nogil:
        """Update min, max, first and last of strings in the order of rows; returns how many rows found room."""
        cdef GroupStore* store
        cdef int64_t row
        cdef int32_t index
        for index in range(self._scan_count):
            begin_values(&self._scans[index], &opened.binding.fields[self._scans[index].state], opened.arguments, start,
                         self._groups, count)
        while True:
            row = count
            for index in range(self._scan_count):
                row = min(row, self._scans[index].row)
            if row == count:
                return count
            store = self._store_of((<uint64_t*> (self._groups[row] + GROUP_HASH))[0])
            for index in range(self._scan_count):
                if self._scans[index].row == row:
                    if not put_value(&self._scans[index], store, self._pool, reserved):
                        return row
                    next_value(&self._scans[index])

    # ---------------------------------------------------------------------------------------------------- emptying

    def store_sizes(self):
        """Return (bytes of records, groups) of each store."""
        return [(self.stores[index].used_bytes, self.stores[index].group_count) for index in range(self.store_count)]

    def drop(self, list stores not None, bint go_on=True):
        """Forget the groups of some stores; their pages go back to the pool.

        Args: go_on: False when nothing is added before the next reset() (the directory is left as it is).
        """
        cdef int32_t index
        self._recent.forget()
        if go_on:
            self._dense.forget()
        else:
            self._dense.release()
        for index in stores:
            self.group_count -= self.stores[index].group_count
            store_clear(&self.stores[index], self._pool)
        if self._directory.slots == NULL:
            raise MemoryBudgetError(f"the directory of a group table has no memory in {self._pool!r}")
        if go_on:
            with nogil:
                memset(self._directory.slots, 0, <size_t> self._directory.size)
                if self.group_count > 0:
                    directory_fill(&self._directory, self.stores, self.store_count)

    def reset(self, int32_t level, bint frozen=False, int64_t expected_groups=-1):
        """Forget everything and begin again on a level of recursion.

        Args: expected_groups: the directory is made for so many (-1: is left as it is); it grows if there are more.
        """
        self.drop(list(range(self.store_count)), go_on=False)
        if expected_groups >= 0 and not directory_shrink(&self._directory, self._pool, expected_groups):
            raise MemoryBudgetError(f"the directory of a group table has no memory in {self._pool!r}")
        with nogil:
            memset(self._directory.slots, 0, <size_t> self._directory.size)
        self.level = level
        self.frozen = frozen
        self._sealed = False

    @property
    def dense_layouts(self):
        return self._dense.layouts

    def seal(self):
        """Take no new group until the next reset(): one was refused and its row went elsewhere."""
        self._sealed = True

    def close(self):
        """Give every page back; idempotent. The table is unusable afterwards."""
        cdef int32_t index
        self._dense.release()
        for index in range(self.store_count):
            store_clear(&self.stores[index], self._pool)
        self.group_count = 0
        directory_give(&self._directory, self._pool)
