"""The parts of a process size, and settings that do not fit it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config.loader import Configuration
from engine.errors import ConfigurationError
from engine.memory.page_size import page_size_for
from engine.memory.process_memory import (
    BASE_BYTES,
    SIZE_STEP_BYTES,
    ProcessMemory,
    process_bytes_for,
    room_bytes,
    too_large_text,
)
from engine.memory.process_memory import process_memory as divide

MIB = 1 << 20


def process_memory(settings: dict[str, object], slots: int = 1, machine_bytes: int = 8 << 30) -> ProcessMemory:
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set(key, value, "test")
    return divide(configuration, slots, machine_bytes)


@given(
    st.integers(32 << 20, 1 << 42),
    st.floats(0.01, 0.9),
    st.floats(0, 0.9),
    st.integers(0, 1 << 30),
    st.integers(1 << 30, 1 << 40),
)
def test_the_parts_add_up_to_the_process(
    size: int, managed: float, network: float, network_min: int, network_max: int
) -> None:
    memory = process_memory(
        {
            "taskmanager.memory.process.size": size,
            "taskmanager.memory.managed.fraction": managed,
            "taskmanager.memory.network.fraction": network,
            "taskmanager.memory.network.min": network_min,
            "taskmanager.memory.network.max": network_max,
        }
    )
    shares = [memory.base_bytes, memory.network_bytes, memory.managed_bytes, memory.workers_bytes, memory.arrow_bytes]
    assert sum(shares) == memory.process_bytes == size
    assert all(share >= 0 for share in shares)
    assert memory.network_bytes <= network_max
    alone = memory.of_job(has_functions=False)
    assert sum(share for name, share in alone.parts if name != "all") == size
    assert (alone.managed_bytes, alone.workers_bytes) == (memory.managed_bytes + memory.workers_bytes, 0)
    assert alone.managed_bytes // memory.page_bytes == memory.managed_bytes // memory.page_bytes + memory.spare_pages


@given(
    st.integers(32 << 20, 1 << 36),
    st.sampled_from([None, "4mb", "64mb"]),
    st.integers(1, 16),
    st.integers(0, 1 << 34),
)
def test_a_process_in_which_workers_have_enough_is_no_larger_than_needed(
    size: int, managed: str | None, slots: int, workers_bytes: int
) -> None:
    settings: dict[str, object] = {"taskmanager.memory.process.size": max(size, 128 << 20)}
    if managed is not None:
        settings["taskmanager.memory.managed.size"] = managed
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set(key, value, "test")
    own = process_memory(settings, slots)
    advised = process_bytes_for(configuration, slots, 1 << 50, workers_bytes)
    on_this = process_bytes_for(configuration, slots, 8 << 30, workers_bytes)
    assert on_this == (advised if advised <= max(8 << 30, own.process_bytes) else 0), "no more than the machine has"
    assert process_memory(settings | {"taskmanager.memory.process.size": advised}, slots).workers_bytes >= workers_bytes
    if own.workers_bytes >= workers_bytes:
        assert advised == own.process_bytes
    else:
        assert advised % SIZE_STEP_BYTES == 0
        less = settings | {"taskmanager.memory.process.size": advised - SIZE_STEP_BYTES}
        assert process_memory(less, slots).workers_bytes < workers_bytes


def test_a_process_that_is_larger_than_the_machine_is_told() -> None:
    configuration = Configuration()
    assert too_large_text(configuration, 1 << 30, 3) is None  # nobody chose a size
    configuration.set("taskmanager.memory.process.size", "2gb", "test")
    assert too_large_text(configuration, 4 << 30, 2) is None
    assert "2gb for each of 3 TaskManagers is more than the 4gb" in (too_large_text(configuration, 4 << 30, 3) or "")
    text = too_large_text(configuration, 1 << 30) or ""
    assert text.startswith("taskmanager.memory.process.size: 2gb is more than the 1gb of this machine")


def test_an_absolute_managed_size_wins_over_the_fraction() -> None:
    memory = process_memory({"taskmanager.memory.managed.size": "16mb", "taskmanager.memory.managed.fraction": 0.9})
    assert memory.managed_bytes == 16 << 20
    assert memory.managed_source == "taskmanager.memory.managed.size: 16mb"
    assert memory.of_job(has_functions=False).managed_bytes == 16 << 20, "it is what it says in every job"


def test_the_defaults_and_their_table() -> None:
    memory = process_memory({"taskmanager.memory.process.size": "1216m"})
    assert (memory.base_bytes, memory.managed_bytes) == (BASE_BYTES, int(((1216 << 20) - BASE_BYTES) * 0.4))
    assert sum(size for name, size in memory.parts if name != "all") == dict(memory.parts)["all"] == 1216 << 20
    table = memory.table().splitlines()
    assert table[0].split() == ["interpreter", "and", "libraries", "136mb", "11%"]
    assert table[2].endswith("432mb    36%  taskmanager.memory.managed.fraction: 0.4")
    assert table[-1].split() == ["process", "1.2gb", "100%", "taskmanager.memory.process.size"]


@pytest.mark.parametrize(
    ("configuration", "key"),
    [
        ({"taskmanager.memory.process.size": "1mb"}, "process.size"),
        ({"taskmanager.memory.process.size": "many"}, "process.size"),
        ({"taskmanager.memory.managed.size": "10gb"}, "managed.size"),
        ({"taskmanager.memory.managed.size": "1kb"}, "managed.size"),
        ({"taskmanager.memory.managed.fraction": 1.5}, "managed.fraction"),
        ({"taskmanager.memory.network.fraction": "x"}, "network.fraction"),
        ({"taskmanager.memory.network.min": "2g", "taskmanager.memory.network.max": "1g"}, "network.min"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_key(configuration: dict[str, object], key: str) -> None:
    with pytest.raises(ConfigurationError, match=f"taskmanager.memory.{key}"):
        process_memory(configuration)


@pytest.mark.parametrize(
    ("budget", "slots", "page_size"),
    [
        (1 << 30, 4, 32768),
        (2 << 20, 1, 32768),
        ((2 << 20) - 1, 1, 16384),
        (1 << 20, 1, 16384),
        (1 << 20, 2, 8192),
        (1 << 20, 4, 4096),
        (24 << 10, 4, 4096),
        (0, 1, 4096),
    ],
)
def test_a_page_is_small_when_a_slot_would_have_too_few(budget: int, slots: int, page_size: int) -> None:
    assert page_size_for(budget, slots) == page_size


def test_without_a_size_the_process_is_half_of_the_machine() -> None:
    assert process_memory({}, machine_bytes=6 << 30).process_bytes == 3 << 30
    assert process_memory({}, machine_bytes=1 << 20).process_bytes == 32 * MIB


@pytest.mark.parametrize(
    ("held_mib", "process_mib"),
    [(0, 1024), (136 + 600, 1024), (136 + 1448, 450), (136 + 2048, 32), (136 + 4000, 32)],
)
def test_a_script_that_holds_much_of_the_machine_leaves_the_process_three_quarters_of_the_rest(
    held_mib: int, process_mib: int
) -> None:
    room = room_bytes(2048 * MIB, held_mib * MIB)
    assert process_memory({}, machine_bytes=room).process_bytes == process_mib * MIB


def test_pages_and_network_buffers_follow_from_managed_memory_and_slots() -> None:
    sizes = process_memory({"taskmanager.memory.process.size": "1216m"})
    assert sizes.page_bytes == 32768
    assert sizes.network_segments * sizes.page_bytes == 108 * MIB
    small = {"taskmanager.memory.managed.size": "16mb"}
    assert process_memory(small, 14).page_bytes == 16384
    assert process_memory({"taskmanager.memory.managed.size": "1mb"}, 4).page_bytes == 4096
    assert process_memory({**small, "taskmanager.memory.segment-size": "8kb"}).page_bytes == 8192


def test_a_network_share_that_does_not_fit_gives_way() -> None:
    sizes = process_memory({"taskmanager.memory.process.size": "32mb", "taskmanager.memory.managed.size": "23mb"})
    assert sizes.network_bytes == (24 - 23) * MIB // 2
    assert sizes.network_segments == MIB // 2 // sizes.page_bytes


def test_a_page_that_is_no_power_of_two_is_refused_by_its_key() -> None:
    with pytest.raises(ConfigurationError, match="segment-size: 5000 bytes is not a power of two"):
        process_memory({"taskmanager.memory.segment-size": "5000"})
