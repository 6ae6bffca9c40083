"""Parcel tariffs."""

__version__ = "0.2.9"
