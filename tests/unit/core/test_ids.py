"""Ids sort by time, grow within a process and do not repeat."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

from bethink.core.ids import IdGenerator, is_valid_id, make_id

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)


def test_an_id_has_sixteen_safe_characters():
    """Crockford's alphabet, small letters, no i, l, o, u."""
    made = IdGenerator()(NOW)

    assert len(made) == 16
    assert set(made) <= set("0123456789abcdefghjkmnpqrstvwxyz")
    assert is_valid_id(made)


def test_ids_sort_by_time_and_grow_within_a_moment():
    """Even where the clock stands still or goes back."""
    make = IdGenerator()
    moments = [NOW, NOW, NOW + timedelta(milliseconds=1), NOW, NOW - timedelta(days=1), NOW]

    made = [make(moment) for moment in moments]

    assert made == sorted(set(made))
    assert IdGenerator()(NOW) < IdGenerator()(NOW + timedelta(milliseconds=1))


def test_two_makers_do_not_make_the_same_ids():
    """As if two processes wrote in the same millisecond."""
    one, other = IdGenerator(), IdGenerator()

    made = {maker(NOW) for _ in range(2_000) for maker in (one, other)}

    assert len(made) == 4_000


def test_threads_share_one_maker():
    """No id is given twice."""
    make = IdGenerator()
    made: list[str] = []
    threads = [
        threading.Thread(target=lambda: made.extend(make(NOW) for _ in range(500)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(made)) == 2_000


def test_a_forked_child_does_not_count_on_where_its_parent_does():
    """It draws anew."""
    make = IdGenerator()
    make(NOW + timedelta(days=1))
    make._process = -1

    assert make(NOW) < IdGenerator()(NOW + timedelta(hours=1))


def test_times_beyond_the_range_still_give_ids():
    """The first and the last year of the calendar."""
    for moment in (datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)):
        make = IdGenerator()
        assert len({make(moment) for _ in range(100)}) == 100


def test_the_shared_maker_is_one_of_them():
    """It is what the facade uses."""
    assert make_id(NOW) < make_id(NOW)


def test_ids_from_outside_are_checked():
    """Up to 64 letters, digits and a few signs."""
    for good in ("a", "A-1_b.c:d", "x" * 64):
        assert is_valid_id(good)
    for bad in ("", "x" * 65, "a b", "a/b", "é", "a\n", "a\x00"):
        assert not is_valid_id(bad)
