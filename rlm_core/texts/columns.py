"""Columns of text given their kinds, where nothing is lost."""

from __future__ import annotations

from typing import Any, Final

_INTEGER: Final = r"-?(?:0|[1-9]\d{0,17})"
_NUMBER: Final = r"-?(?:0|[1-9]\d{0,17})(?:\.\d+)?(?:[eE][+-]?\d{1,3})?"


def as_numbers(frame: Any) -> Any:
    """A DataFrame of texts with the columns of plain numbers as numbers: without leading zeros, plus signs,
    thousands or decimal commas. Integers are `Int64`, others `float64`.
    """
    import pandas

    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        filled = column.dropna()
        if filled.empty:
            continue
        if filled.str.fullmatch(_INTEGER).all():
            frame.isetitem(place, pandas.to_numeric(column).astype("Int64"))
        elif filled.str.fullmatch(_NUMBER).all():
            frame.isetitem(place, pandas.to_numeric(column).astype("float64"))
    return frame


def as_stored(frame: Any, columns: dict[str, str]) -> Any:
    """A DataFrame of texts with the kinds its columns had in the file; what does not fit stays text."""
    for place, kind in enumerate(list(columns.values())[: frame.shape[1]]):
        if kind != "text":
            frame.isetitem(place, _as(frame.iloc[:, place], kind))
    return frame


def _as(column: Any, kind: str) -> Any:
    import pandas

    try:
        if kind == "integer":
            return pandas.array([None if text != text else int(text) for text in column], dtype="Int64")
        if kind == "number":
            return pandas.to_numeric(column).astype("float64")
        if kind == "boolean":
            return column.str.lower().map({"true": True, "false": False}).astype("boolean")
        return pandas.to_datetime(column, format="ISO8601")
    except (ValueError, TypeError, OverflowError):  # such as a year that pandas has not got
        return column
