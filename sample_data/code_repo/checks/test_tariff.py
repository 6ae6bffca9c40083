import unittest

from parcelkit.tariff import BASE_CENTS, price


class PriceTest(unittest.TestCase):
    def test_first_zone(self) -> None:
        self.assertEqual(price(100, 1), BASE_CENTS)

    def test_zone_below_one(self) -> None:
        with self.assertRaises(ValueError):
            price(100, 0)
