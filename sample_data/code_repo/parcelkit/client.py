"""Asks the carrier for a label. The carrier is a function, so that tests need no network."""

from collections.abc import Callable

DEFAULT_TIMEOUT = 51
RETRY_LIMIT = 3


class CarrierError(Exception):
    """The carrier gave no label after all tries."""


def label(carrier: Callable[[str, int], str], parcel: str) -> str:
    """The label of a parcel; raises CarrierError when every try fails."""
    for _ in range(RETRY_LIMIT):
        try:
            return carrier(parcel, DEFAULT_TIMEOUT)
        except TimeoutError:
            continue
    raise CarrierError(parcel)
