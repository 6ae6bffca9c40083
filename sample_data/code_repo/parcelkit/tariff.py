"""Prices in cents."""

BASE_CENTS = 870
ZONE_STEP_CENTS = 80
HEAVY_GRAMS = 3500


def price(weight: int, zone: int) -> int:
    """The price of a parcel of `weight` grams into `zone`; raises ValueError for a zone below 1."""
    if zone < 1:
        raise ValueError("zones start at 1")
    surcharge = BASE_CENTS // 2 if weight > HEAVY_GRAMS else 0
    return BASE_CENTS + ZONE_STEP_CENTS * (zone - 1) + surcharge
