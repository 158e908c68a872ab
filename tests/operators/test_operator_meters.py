"""Rows, bytes and time of each operator of a chain."""

import time
from types import SimpleNamespace

import pyarrow as pa

from engine import Environment, col, sum_
from engine.graph.deployment import OperatorCounters, TaskCounters, operator_totals
from engine.operators.meter import Meter, Stopwatch
from engine.operators.operator_meters import ChainMeters, with_edges
from engine.operators.spill_accounts import SpillAccounts
from engine.rest.vertex_document import subtask_metrics

BATCH = pa.record_batch({"x": list(range(10))})


class Step:
    """Takes its time, then hands half of the rows on, or the rest at the end."""

    takes_pages, router, is_satisfied = False, None, False

    def __init__(self, name, output, pause_s, at_end=False):
        self.name, self.node_id, self.output, self.pause_s, self.at_end = name, 7, output, pause_s, at_end

    def process(self, batch):
        time.sleep(self.pause_s)
        if self.output is not None and not self.at_end:
            self.output.process(batch.slice(0, batch.num_rows // 2))

    def finish(self):
        if self.at_end:
            time.sleep(self.pause_s)
            self.output.process(BATCH)


def ran(is_led):
    """Two slow steps behind a driver (or the first of them led by it), and a slow end."""
    chain = tuple(SimpleNamespace(name=name, node_id=number) for number, name in enumerate(["a", "b", "c"]))
    meters = ChainMeters(chain, is_led)
    end = meters.before(Step("end", None, 0.05))
    last = Step("c", end, 0.02, at_end=True)
    middle = Step("b", meters.before(last), 0.03)
    output = meters.before(middle)
    steps = [middle, last]
    if not is_led:
        steps.insert(0, Step("a", output, 0.01))
        output = meters.before(steps[0])

    def drive():
        time.sleep(0.01 if is_led else 0)
        for _ in range(3):
            output.process(BATCH)

    meters.driving.run(drive)
    for index, step in enumerate(steps):
        meters.finish(index, step.finish)
    return meters


def test_an_operators_own_time_has_neither_what_comes_behind_it_nor_waiting_for_input_in_it():
    for is_led in (True, False):
        meters = ran(is_led)
        counters = meters.counters(SpillAccounts())
        assert [(each.name, each.node_id) for each in counters] == [("a", 0), ("b", 1), ("c", 2)]
        a, b, c = (each.time_us / 1000 for each in counters)
        least = (10 if is_led else 30, 90, 80)
        assert all(own >= least_ms for own, least_ms in zip((a, b, c), least, strict=True)), (a, b, c)
        assert meters.output_ns >= 50_000_000
        # Together they are what was measured from outside, less what the end of the chain took.
        whole_ns = meters.driving.total_ns + sum(watch.total_ns for watch in meters._finishing) - meters.output_ns
        assert abs(sum(each.time_us for each in counters) - whole_ns / 1000) <= 3
        less = meters.counters(SpillAccounts(), waited_ns=5_000_000)
        assert abs(counters[0].time_us - less[0].time_us - 5000) <= 1
        assert less[1:] == counters[1:]


def test_rows_and_bytes_are_those_between_the_operators_and_at_the_edges():
    counters = with_edges(ran(is_led=False).counters(SpillAccounts()), (31, 999), (11, 88))
    assert [(each.rows_in, each.rows_out) for each in counters] == [(31, 15), (15, 6), (6, 11)]
    assert [(each.bytes_in, each.bytes_out) for each in counters][1:] == [(120, 48), (48, 88)]
    assert counters[0].bytes_in == 999
    assert with_edges((), (1, 1), (1, 1)) == ()


def test_a_chain_that_is_being_opened_has_no_counters():
    meters = ChainMeters((SimpleNamespace(name="a", node_id=0),), is_led=False)
    meters.before(Step("end", None, 0))
    assert meters.counters(SpillAccounts()) == ()


def test_a_meter_is_like_what_is_behind_it():
    inner = SimpleNamespace(takes_pages=True, router="router", is_satisfied=True, rows_in=5, taken=[])
    inner.process_page = lambda segment, size: inner.taken.append((segment, size))
    inner.process_rows = inner.keep_runs = inner.taken.append
    meter = Meter(inner)
    assert (meter.takes_pages, meter.router, meter.is_satisfied, meter.rows_in) == (True, "router", True, 5)
    meter.process_page("page", 3)
    meter.process_rows("rows")
    meter.keep_runs("runs")
    assert inner.taken == [("page", 3), "rows", "runs"]
    assert meter.busy_ns > 0


def test_a_stopwatch_counts_the_call_under_way_and_only_the_making_of_items():
    watch = Stopwatch()
    seen = []
    watch.run(lambda: (time.sleep(0.01), seen.append(watch.total_ns)))
    assert 10_000_000 <= seen[0] <= watch.total_ns
    items = Stopwatch()
    for _ in items.each(iter([1, 2])):
        time.sleep(0.05)
    assert items.total_ns < 50_000_000


def test_totals_add_what_adds_up_and_take_the_largest_peak():
    one = OperatorCounters("a", 1, 2, 7, 3, 4, 5, 6, 1, 8, 9)
    two = OperatorCounters("a", 10, 20, 7, 30, 40, 50, 60, 10, 80, 5)
    assert operator_totals([(one,), (), (two,)]) == (OperatorCounters("a", 11, 22, 7, 33, 44, 55, 66, 11, 88, 9),)


def test_each_operator_of_a_job_has_rows_time_and_memory(tmp_path):
    def odd(batch):
        return batch.filter(pa.array([value % 2 == 1 for value in batch.column("k").to_pylist()]))

    facts = pa.table({"k": list(range(60_000)), "v": [1.0] * 60_000})
    small = pa.table({"k": list(range(1000)), "w": [2.0] * 1000})
    with Environment(config={"parallelism.default": 2}) as env:
        kept = env.from_arrow(facts).filter(col("k") < 5000).map_batches(odd, facts.schema)
        joined = kept.join(env.from_arrow(small), on="k").group_by("w").agg(s=sum_("v"))
        joined.write_parquet(tmp_path / "out")
        result = env.execute()
    by_name = {}
    for vertex in result.vertices:
        for each in vertex.operators:
            by_name.setdefault(each.name.split()[0], []).append(each)
    function = next(each for vertex in result.vertices for each in vertex.operators if each.function_us)
    assert (function.rows_in, function.rows_out) == (5000, 2500)
    (filtered,) = by_name["filter"]
    assert (filtered.rows_in, filtered.rows_out) == (60_000, 5000)
    named = (each for vertex in result.vertices for each in vertex.operators if "join" in each.name)
    joining = max(named, key=lambda each: each.managed_bytes)
    assert joining.rows_out == 500
    assert 0 < joining.managed_bytes_peak <= joining.managed_bytes
    assert all(each.node_id >= 0 for vertex in result.vertices for each in vertex.operators)
    assert all(vertex.operators for vertex in result.vertices)


def test_metrics_have_the_numbers_of_operators_by_their_names():
    counted = OperatorCounters("sort", 10, 5, 3, 7, 6, 60, 2500, 1000, 400, 200)
    numbers = subtask_metrics(SimpleNamespace(counters=TaskCounters(operators=(counted,), output_us=1500)))
    assert numbers["sort.numRecordsIn"] == 7.0
    assert numbers["sort.numRecordsOut"] == 6.0
    assert numbers["sort.busyTimeMs"] == 2.5
    assert numbers["sort.functionTimeMs"] == 1.0
    assert numbers["accumulatedOutputTimeMs"] == 1.5
