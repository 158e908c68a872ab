from engine.memory.arrow_share import LEAST_BYTES, ArrowShare, Role

MIB = 1 << 20


def test_a_reader_gets_what_it_wants_while_that_is_free() -> None:
    share = ArrowShare(100 * MIB)
    with share.reserved(30 * MIB) as first, share.reserved(20 * MIB) as second:
        assert (first, second) == (30 * MIB, 20 * MIB)
        assert share.reserved_bytes == 50 * MIB
    assert share.reserved_bytes == 0


def test_who_wants_more_than_is_free_gets_half_of_it_so_that_the_next_one_gets_some() -> None:
    share = ArrowShare(100 * MIB)
    with share.reserved(60 * MIB) as first, share.reserved(60 * MIB) as second:
        assert first == 25 * MIB
        assert second == 12.5 * MIB


def test_the_least_is_granted_in_any_case() -> None:
    share = ArrowShare(1 * MIB)
    with share.reserved(60 * MIB) as first, share.reserved(60 * MIB) as second, share.reserved(1) as third:
        assert (first, second, third) == (LEAST_BYTES, LEAST_BYTES, 1)


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
