"""Bytes with a few faults: bits flipped, words overwritten with extremes, pieces cut out, doubled or moved."""

from hypothesis import strategies as st

_WORDS = (0, 1, 7, 8, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF8, 0xFFFFFFFF)


@st.composite
def damaged(draw, good, faults=4):
    """Return a changed copy of bytes; the same length more often than not."""
    data = bytearray(good)
    for _ in range(draw(st.integers(1, faults))):
        if not data:
            break
        at = draw(st.integers(0, len(data) - 1))
        match draw(st.sampled_from(["bit", "bit", "byte", "word", "word", "cut", "double", "end"])):
            case "bit":
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "byte":
                data[at] = draw(st.integers(0, 255))
            case "word":
                at &= ~3
                data[at : at + 4] = draw(st.sampled_from(_WORDS)).to_bytes(4, "little")
            case "cut":
                del data[at : at + draw(st.integers(1, 16))]
            case "double":
                data[at:at] = data[at : at + draw(st.integers(1, 16))]
            case "end":
                del data[at:]
    return bytes(data)
