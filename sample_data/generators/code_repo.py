"""A small code repository: a package that computes parcel tariffs, its checks, README and settings."""

from __future__ import annotations

from .common import Corpus, rng_for

README = """\
# parcelkit

Computes parcel tariffs from weight and zone. `parcelkit.tariff.price(weight, zone)` returns cents.

Settings are read from `settings.toml`. Run the checks with `python -m unittest`.
"""
SETTINGS = """\
[client]
# seconds before a request is given up
default_timeout = {timeout}
retry_limit = {retries}

[tariff]
base_cents = {base}
zone_step_cents = {step}
"""
INIT = '''\
"""Parcel tariffs."""

__version__ = "{version}"
'''
TARIFF = '''\
"""Prices in cents."""

BASE_CENTS = {base}
ZONE_STEP_CENTS = {step}
HEAVY_GRAMS = {heavy}


def price(weight: int, zone: int) -> int:
    """The price of a parcel of `weight` grams into `zone`; raises ValueError for a zone below 1."""
    if zone < 1:
        raise ValueError("zones start at 1")
    surcharge = BASE_CENTS // 2 if weight > HEAVY_GRAMS else 0
    return BASE_CENTS + ZONE_STEP_CENTS * (zone - 1) + surcharge
'''
CLIENT = '''\
"""Asks the carrier for a label. The carrier is a function, so that tests need no network."""

from collections.abc import Callable

DEFAULT_TIMEOUT = {timeout}
RETRY_LIMIT = {retries}


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
'''
ZONES = '''\
"""Zones by the first digit of a postal code."""

ZONES = {zones}


def zone_of(postal_code: str) -> int:
    """The zone of a postal code; raises KeyError for an unknown first digit."""
    return ZONES[postal_code[0]]
'''
CHECKS = """\
import unittest

from parcelkit.tariff import BASE_CENTS, price


class PriceTest(unittest.TestCase):
    def test_first_zone(self) -> None:
        self.assertEqual(price(100, 1), BASE_CENTS)

    def test_zone_below_one(self) -> None:
        with self.assertRaises(ValueError):
            price(100, 0)
"""


def code_repo(seed: int) -> Corpus:
    """The repository, with constants drawn from the seed."""
    rng = rng_for(seed, "code_repo")
    values = {
        "timeout": rng.randint(5, 60),
        "retries": rng.randint(2, 6),
        "base": rng.randrange(250, 900, 10),
        "step": rng.randrange(30, 150, 5),
        "heavy": rng.randrange(2000, 9000, 500),
        "version": f"{rng.randint(0, 3)}.{rng.randint(0, 12)}.{rng.randint(0, 9)}",
        "zones": "{" + ", ".join(f'"{digit}": {rng.randint(1, 4)}' for digit in range(10)) + "}",
    }
    templates = {
        "README.md": README,
        "settings.toml": SETTINGS,
        "parcelkit/__init__.py": INIT,
        "parcelkit/tariff.py": TARIFF,
        "parcelkit/client.py": CLIENT,
        "parcelkit/zones.py": ZONES,
        "checks/test_tariff.py": CHECKS,
    }
    files = {
        path: text.format(**values) if path != "checks/test_tariff.py" and path != "README.md" else text
        for path, text in templates.items()
    }
    corpus = Corpus("code_repo", files)
    corpus.ask("lookup", "What is HEAVY_GRAMS set to?", str(values["heavy"]), "text")
    corpus.ask("lookup", "What value does zone_step_cents hold?", str(values["step"]), "text")
    held = sum("raise" in text.lower() for text in files.values())
    corpus.ask("count_text", "How many files contain raise?", held, "number", sub_calls=0)
    naming = sorted(path for path, text in files.items() if "retry_limit" in text.lower())
    corpus.ask("list", "Which files mention retry_limit?", naming, "list", sub_calls=0)
    corpus.ask("count", "How many files are there?", len(files), "number", sub_calls=0)
    return corpus
