"""Requests and bytes are counted for the task that asks, as the server counts them."""

import threading

from engine.graph.deployment import store_totals
from engine.shown_sizes import store_lines
from engine.storage.file_systems import file_system_of
from engine.storage.store_counters import StoreTraffic, counted, current_traffic, note
from engine.storage.store_output import PART_BYTES


def test_what_a_thread_asks_for_is_counted_for_its_block_alone(store):
    files = file_system_of("s3://data")
    path = store.put("counted/a", b"x" * 3_000_000)
    traffic = StoreTraffic()
    note("s3://data", requests=5)
    with counted(traffic), counted(None):
        files.read(path)
    with counted(traffic):
        with files.open_ranges(path) as file:
            file.read_at(0, 100)
            list(file.read_ranges([(0, 10), (1_500_000, 1_500_010), (2_900_000, 2_900_010)]))
        list(files.entries("s3://data/counted"))
        other = threading.Thread(target=files.read, args=(path,))
        other.start()
        other.join()
    assert current_traffic() is None
    assert traffic.by_store() == {"s3://data": (6, 130, 0)}


def test_what_is_written_is_counted_with_the_parts_of_uploads(store):
    files, traffic = file_system_of("s3://data"), StoreTraffic()
    with counted(traffic):
        for size in (10, PART_BYTES + 1):
            with files.create(f"s3://data/sized/{size}") as output:
                view = memoryview(bytes(size))
                while view:
                    view = view[output.write(view) :]
        files.replace("s3://data/sized/small", b"abc")
    assert traffic.by_store() == {"s3://data": (1 + 4 + 1, 0, 10 + PART_BYTES + 1 + 3)}


def test_sums_and_lines_are_by_store():
    totals = store_totals([{"s3://a": (1, 10, 0)}, {}, {"s3://a": (2, 5, 0), "gs://b": (1, 0, 2_000_000)}])
    assert totals == {"s3://a": (3, 15, 0), "gs://b": (1, 0, 2_000_000)}
    assert store_lines(totals) == ["gs://b: 1 request, 2 MB written", "s3://a: 3 requests, 15 B read"]
