"""Messages over a socket: whole, within limits, by a deadline."""

from __future__ import annotations

import socket
import struct
import time
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.worker.transport import FrameError, encode_frame, receive_message, send_message
from rows import each_row

MOST = 1000
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def soon() -> float:
    return time.monotonic() + 60


@given(message=st.dictionaries(st.text(), JSON, max_size=4))
def test_what_is_sent_is_what_comes(message):
    """Any object, lone surrogates included."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        send_message(ours, message, 1 << 16, soon())

        assert receive_message(theirs, 1 << 16, soon()) == message


def test_a_long_message_comes_in_many_parts(ends):
    """The receiver waits for the last byte, however they are dealt out."""
    ours, theirs = ends
    packed = encode_frame({"text": "x" * 300_000}, 1 << 20)
    Thread(target=ours.sendall, args=(packed,), daemon=True).start()

    assert len(receive_message(theirs, 1 << 20, soon())["text"]) == 300_000


def test_a_message_over_the_limit_is_not_sent():
    """Whoever sends it is told, before a byte goes out."""
    with pytest.raises(FrameError, match="limit is 1,000"):
        encode_frame({"text": "x" * MOST}, MOST)


def test_an_announced_length_over_the_limit_is_not_waited_for(ends):
    """Four gigabytes are refused by their announcement alone."""
    ours, theirs = ends
    ours.sendall(struct.pack(">I", 2**32 - 1))

    with pytest.raises(FrameError, match="limit is 1,000"):
        receive_message(theirs, MOST, soon())


@each_row(
    "body",
    [b"nonsense", b"\xff\xfe", b"[1]", b"7", b"null", b"", b"[" * 900, b'{"a":'],
)
def test_what_is_no_object_is_refused(ends, body):
    """Not JSON, or JSON of another kind, or nested beyond reason."""
    ours, theirs = ends
    ours.sendall(struct.pack(">I", len(body)) + body)

    with pytest.raises(FrameError):
        receive_message(theirs, MOST, soon())


def test_a_hang_up_in_the_middle_is_known_as_one(ends):
    """Half a message is none."""
    ours, theirs = ends
    ours.sendall(encode_frame({"text": "whole"}, MOST)[:-3])
    ours.close()

    with pytest.raises(FrameError, match="closed in the middle"):
        receive_message(theirs, MOST, soon())


def test_nobody_waits_beyond_the_deadline(ends):
    """A byte now and then does not buy more time."""
    ours, theirs = ends
    ours.sendall(b"\x00")

    with pytest.raises(TimeoutError):
        receive_message(theirs, MOST, time.monotonic() + 0.05)
    with pytest.raises(TimeoutError):
        receive_message(theirs, MOST, time.monotonic() - 1)
