"""Scanning by bit masks gives what the state machine gives, byte for byte."""

import random

import pytest

from engine.csv.scan import RecordScanner, last_record_end

COMMA, QUOTE = ord(","), ord('"')


def expected_end(data):
    """The state machine of RFC 4180 with quotes that open at a field's begin only, in plain Python."""
    quoted, previous, end, position = False, "\n", 0, 0
    text = data.decode("latin-1")
    while position < len(text):
        byte = text[position]
        if quoted:
            if byte == '"':
                if text[position + 1 : position + 2] == '"':
                    position += 1
                else:
                    quoted = False
        elif byte == '"' and previous in ",\n\r":
            quoted = True
        elif byte == "\n":
            end = position + 1
        previous = byte
        position += 1
    return end


@pytest.mark.parametrize("alphabet", ['ab,"\n', 'abcdefgh,"\n\r', 'abcdefghijklmnop,,,,,,""""""\n\n\n\r', '"'])
def test_the_last_record_end_is_that_of_the_state_machine(alphabet):
    chooser = random.Random(alphabet)
    for length in [*range(0, 300, 7), *[chooser.randrange(64, 2000) for _ in range(150)]]:
        data = "".join(chooser.choices(alphabet, k=length)).encode()
        assert last_record_end(data, COMMA, QUOTE) == expected_end(data), data


@pytest.mark.parametrize("stray", ["", "x", 'say "hi" ', '5" pipe', '"a"b"c', '""x"'])
def test_stray_quotes_leave_the_masks_and_come_back_to_them(stray):
    good = '"one, two","three ""four""\nfive",6\n' * 40
    for cut in range(1, 200, 3):
        data = (good[:cut].rsplit("\n", 1)[0] + "\n" + f"{stray},tail\n" + good).encode()
        assert last_record_end(data, COMMA, QUOTE) == expected_end(data)


def test_the_state_is_carried_over_chunks_of_any_size():
    chooser = random.Random(5)
    for _ in range(60):
        data = "".join(chooser.choices('abcdefghijk,,,""""\n', k=1500)).encode()
        scanner = RecordScanner(COMMA, QUOTE)
        position = 0
        while position < 1000:
            size = chooser.randrange(1, 300)
            scanner.advance(data[position : position + size])
            position += size
        whole = RecordScanner(COMMA, QUOTE)
        for byte in range(position):
            whole.advance(data[byte : byte + 1])
        assert scanner.next_record_end(data[position:]) == whole.next_record_end(data[position:])
