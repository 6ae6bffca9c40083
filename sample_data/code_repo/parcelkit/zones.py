"""Zones by the first digit of a postal code."""

ZONES = {"0": 3, "1": 2, "2": 1, "3": 1, "4": 3, "5": 3, "6": 3, "7": 1, "8": 4, "9": 4}


def zone_of(postal_code: str) -> int:
    """The zone of a postal code; raises KeyError for an unknown first digit."""
    return ZONES[postal_code[0]]
