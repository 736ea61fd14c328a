"""How old a copy is of what lies elsewhere.

By the clock on the wall: a process may be frozen, and restored hours later from a snapshot (Lambda SnapStart), and the
monotonic clock need not have counted that time.
"""


def is_fresh(read_at: float, now: float, max_age_s: float) -> bool:
    """True while the copy is younger than `max_age_s`; times are seconds since the epoch, minus infinity for never.

    One from the future is not fresh: the clock was set back, so nothing is known of its age.
    """
    return 0 <= now - read_at < max_age_s
