import threading

from engine.memory.arrow_share import LEAST_BYTES, ArrowShare, Role

MIB = 1 << 20


def test_a_reader_gets_what_it_wants_while_that_is_free() -> None:
    share = ArrowShare(100 * MIB)
    with share.reserved(30 * MIB) as first, share.reserved(20 * MIB) as second:
        assert (first, second) == (30 * MIB, 20 * MIB)
        assert share.reserved_bytes == 50 * MIB
    assert share.reserved_bytes == 0


def test_who_wants_more_than_is_free_gets_nothing_and_stands_in_the_way_of_nobody() -> None:
    share = ArrowShare(100 * MIB)
    with share.reserved(30 * MIB) as first, share.reserved(21 * MIB) as second, share.reserved(20 * MIB) as third:
        assert (first, second, third) == (30 * MIB, 0, 20 * MIB)
    assert share.reserved_bytes == 0


def test_the_first_gets_the_least_in_any_case() -> None:
    share = ArrowShare(1 * MIB)
    with share.reserved(LEAST_BYTES) as first, share.reserved(LEAST_BYTES) as second:
        assert (first, second) == (LEAST_BYTES, 0)
    with share.reserved(LEAST_BYTES + 1) as first:
        assert first == 0


def test_one_is_alone_at_a_time_with_half_of_what_is_free_or_the_least() -> None:
    share = ArrowShare(100 * MIB)
    order: list[str] = []

    def second() -> None:
        with share.alone(lambda: False) as granted:
            assert granted == LEAST_BYTES
            order.append("second")

    with share.reserved(10 * MIB), share.alone(lambda: False) as granted:
        assert granted == 20 * MIB
        share.set_limit(20 * MIB)
        thread = threading.Thread(target=second)
        thread.start()
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]
    assert share.reserved_bytes == 0


def test_who_waits_to_be_alone_is_told_that_it_has_been_cancelled() -> None:
    share = ArrowShare(100 * MIB)
    with share.alone(lambda: False):
        granted: list[int] = []

        def wait() -> None:
            with share.alone(lambda: True) as bytes_granted:
                granted.append(bytes_granted)

        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(60)
        assert granted == [0]
    with share.alone(lambda: False) as again:
        assert again == 25 * MIB


def test_members_divide_the_half_of_their_role() -> None:
    share = ArrowShare(64 * MIB)
    first, second = share.join(Role.WRITER), share.join(Role.WRITER)
    readers = [share.join(Role.READER) for _ in range(4)]
    assert first.part_bytes == second.part_bytes == 8 * MIB
    assert [reader.part_bytes for reader in readers] == [MIB] * 4
    second.close()
    second.close()
    assert (first.part_bytes, second.part_bytes) == (16 * MIB, 0)
    share.set_limit(32 * MIB)
    assert first.part_bytes == 8 * MIB
    first.close()
