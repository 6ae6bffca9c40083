"""`.tables`: documents that are tables, as DataFrames that lose nothing of what stands in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas
import pytest

from rlm_core.corpus import Corpus
from rlm_core.texts import build_context, files, take_touched
from rlm_core.texts.dialects import dialect
from rlm_core.texts.documents import Documents
from rlm_core.texts.files import Source, Store


def corpus_of(folder: Path, contents: dict[str, str], **kept: int) -> Documents:
    """Files with these contents, added."""
    (folder / "in").mkdir()
    for name, text in contents.items():
        (folder / "in" / name).write_text(text, "utf-8", newline="")
    corpus = Corpus.add([folder / "in" / name for name in contents], folder / "corpora")
    sources = [Source(facts) for facts in corpus.worker_documents()]
    return Documents(sources, Store(sum(source.size for source in sources), **kept))


def table_of(folder: Path, text: str, name: str = "t.csv", **kept: int) -> Any:
    """The table of one file."""
    return corpus_of(folder, {name: text}, **kept).tables[name]


def rows(frame: Any) -> list[list[Any]]:
    """The cells, missing ones as None."""
    return [[None if pandas.isna(cell) else cell for cell in row] for row in frame.itertuples(index=False)]


@pytest.mark.parametrize(
    ("text", "columns", "cells"),
    [
        ("id,name\n1,Ann\n2,Bob\n", ["id", "name"], [[1, "Ann"], [2, "Bob"]]),
        ("code;sum\n007;1,5\n010;2,5\n", ["code", "sum"], [["007", "1,5"], ["010", "2,5"]]),
        ("a\tb\r\n1\tx, y; z\r\n2\t\r\n", ["a", "b"], [[1, "x, y; z"], [2, None]]),
        ("a|b\n1.5|NA\n2|null\n", ["a", "b"], [[1.5, "NA"], [2.0, "null"]]),
        ('q,t\n1,"two\nlines, ""said"""\n', ["q", "t"], [[1, 'two\nlines, "said"']]),
        ("sep=;\na;b\n1;2\n", ["a", "b"], [[1, 2]]),
        ("1,Ann\n2,Bob\n", [0, 1], [[1, "Ann"], [2, "Bob"]]),
        ("name,city\nAnn,Paris\nBob,Rome\n", ["name", "city"], [["Ann", "Paris"], ["Bob", "Rome"]]),
        ("land,2019,2020\nFR,1,2\nDE,3,4\n", ["land", "2019", "2020"], [["FR", 1, 2], ["DE", 3, 4]]),
        ("Ann,1999\nBob,2001\n", [0, 1], [["Ann", 1999], ["Bob", 2001]]),
        ("only\nx\ny\n", ["only"], [["x"], ["y"]]),
        ("a,b,\n1,2,\n3,4,\n", ["a", "b", "Unnamed: 2"], [[1, 2, None], [3, 4, None]]),
        ("a,b\n1,2,\n3,4,\n", ["a", "b"], [[1, 2], [3, 4]]),
        ("n\n12345678901234567890\n1\n", ["n"], [["12345678901234567890"], ["1"]]),
        ("v\n-0.5\n1e3\n", ["v"], [[-0.5], [1000.0]]),
        ("v,w\n+1,1 000\n2,3\n", ["v", "w"], [["+1", "1 000"], ["2", "3"]]),
    ],
)  # fmt: skip
def test_csv(tmp_path: Path, text: str, columns: list[Any], cells: list[list[Any]]) -> None:
    frame = table_of(tmp_path, text)
    assert (list(frame.columns), rows(frame)) == (columns, cells)


def test_columns_of_numbers_are_numbers(tmp_path: Path) -> None:
    frame = table_of(tmp_path, "zip,count,share,name\n01234,1,0.5,x\n99999,,1,y\n")
    assert [str(kind) for kind in frame.dtypes] == ["str", "Int64", "float64", "str"]
    assert frame["count"].sum() == 1


def test_a_large_table_is_read_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_CHARS", 100)
    text = "número,ciudad\n" + "".join(f"{n},Málaga {n}\n" for n in range(9_000))
    frame = table_of(tmp_path, text, kept=1_000)
    assert (len(frame), frame["número"].sum(), frame["ciudad"].iloc[-1]) == (9_000, 40_495_500, "Málaga 8999")


@pytest.mark.parametrize(
    ("name", "text", "cells"),
    [
        ("t.tsv", "a\tb\n1,5\tx\n", [["1,5", "x"]]),
        ("t.json", json.dumps([{"a": 1, "b": "x"}, {"a": 2}]), [[1, "x"], [2, None]]),
        ("t.json", json.dumps({"total": 1, "items": [{"a": "007"}]}), [["007"]]),
        ("t.jsonl", '{"a": 1}\n\n{"a": {"b": 2}}\n', [[1], [{"b": 2}]]),
    ],
)
def test_other_kinds(tmp_path: Path, name: str, text: str, cells: list[list[Any]]) -> None:
    assert rows(table_of(tmp_path, text, name)) == cells


def test_several_lists_in_one_json_are_told_apart(tmp_path: Path) -> None:
    documents = corpus_of(tmp_path, {"t.json": json.dumps({"men": [{"a": 1}], "ships": [{"b": 2}], "x": 1})})
    with pytest.raises(ValueError, match="several lists of records, add # and one of men, ships"):
        documents.tables["t.json"]
    assert rows(documents.tables["t.json#ships"]) == [[2]]
    with pytest.raises(ValueError, match="holds no list 'x'"):
        documents.tables["t.json#x"]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("t.csv", "a,b\n1,2\n" + "3,4\n" * 300 + "1,2,3\n", "Expected 2 fields in line 303, saw 3"),
        ("t.json", "{", "Expecting property name"),
        ("t.json", "[1, 2]", "no list of records"),
        ("t.json", '{"a": 1}', "holds no list of records"),
        ("t.jsonl", '{"a": 1}\n[2]\n', "no list of records"),
        ("t.json", "[" * 100_000, "recursion"),
    ],
)
def test_what_is_no_table_gets_one_sentence(tmp_path: Path, name: str, text: str, says: str) -> None:
    with pytest.raises(ValueError) as caught:
        table_of(tmp_path, text, name)
    said = str(caught.value)
    assert said.startswith(f"'{name}' cannot be read as a table (") and says in said and "\n" not in said
    assert said.endswith("): read it with .lines(), .chunks(n) or slices")


def test_a_table_too_large_for_memory_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource")
    documents = corpus_of(tmp_path, {"t.csv": "a,b\n1,2\n" * 1_000})
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10_000, 10_000))
    with pytest.raises(ValueError, match="'t.csv' has 8,000 characters, too many for a table in memory"):
        documents.tables["t.csv"]


# -- names

SHEETS = "# Sheet: Costs\nday,sum,paid,id\n2024-01-31,1.5,true,007\n,2,,008\n\f# Sheet: Notes\nA\nx\n"
KINDS = {"day": "date", "sum": "number", "paid": "boolean", "id": "text"}


def workbook(folder: Path, *others: str) -> Documents:
    """A document as a workbook is read, and others."""
    corpus = Corpus.from_texts({"book.xlsx": SHEETS, **dict.fromkeys(others, "a,b\n1,2\n")}, folder)
    first, second = SHEETS.index("day"), SHEETS.rindex("A\n")
    facts = corpus.worker_documents()
    facts[0] |= {
        "table": "sheets",
        "sections": [
            ["sheet", "Costs", first, SHEETS.index("\f"), KINDS],
            ["sheet", "Notes", second, len(SHEETS), {"A": "text"}],
        ],
    }
    for document in facts[1:]:
        document["table"] = "csv"
    return build_context(facts)[1]


def test_sheets_have_names_and_kinds(tmp_path: Path) -> None:
    documents = workbook(tmp_path, "t.csv")
    assert list(documents.tables) == ["book.xlsx#Costs", "book.xlsx#Notes", "t.csv"]
    assert repr(documents.tables) == "<3 tables: 'book.xlsx#Costs', 'book.xlsx#Notes', 't.csv'>"
    frame = documents.tables["book.xlsx#Costs"]
    assert [str(kind)[:10] for kind in frame.dtypes] == ["datetime64", "float64", "boolean", "str"]
    assert rows(frame) == [[pandas.Timestamp("2024-01-31"), 1.5, True, "007"], [None, 2.0, None, "008"]]
    assert list(documents["book.xlsx"].tables) == ["Costs", "Notes"]
    assert rows(documents["book.xlsx"].tables["Notes"]) == [["x"]]
    assert rows(documents[:1].tables["book.xlsx#Notes"]) == [["x"]]


def test_a_value_that_does_not_fit_its_kind_leaves_the_column_as_text(tmp_path: Path) -> None:
    documents = workbook(tmp_path)
    documents._sources[0].sections[0][4] = {**KINDS, "id": "datetime", "sum": "integer"}
    frame = documents.tables["Costs"]
    assert (frame["id"].tolist(), frame["sum"].tolist()) == (["007", "008"], ["1.5", "2"])


def test_an_unknown_table_gets_the_close_ones(tmp_path: Path) -> None:
    documents = workbook(tmp_path, "t.csv")
    with pytest.raises(KeyError, match="no table is called 'book.xlsx#Cost': did you mean 'book.xlsx#Costs'"):
        documents.tables["book.xlsx#Cost"]
    plain = corpus_of(tmp_path, {"a.txt": "text"})
    assert len(plain.tables) == 0
    with pytest.raises(KeyError, match="there are no tables among the documents"):
        plain.tables["a.txt"]


def test_tables_are_those_of_whole_documents(tmp_path: Path) -> None:
    documents = workbook(tmp_path, "t.csv")
    with pytest.raises(ValueError, match=r"use documents\['t.csv'\].tables"):
        _ = documents["t.csv"][:4].tables


def test_what_code_does_to_a_table_stays_with_it(tmp_path: Path) -> None:
    documents = corpus_of(tmp_path, {"t.csv": "a\n1\n"})
    frame = documents.tables["t.csv"]
    frame["b"] = 5
    assert list(documents.tables["t.csv"].columns) == ["a"]


def test_a_table_that_was_read_is_noted_as_seen(tmp_path: Path) -> None:
    documents = workbook(tmp_path)
    take_touched()
    documents.tables["Notes"]
    assert take_touched() == [[0, SHEETS.rindex("A\n"), len(SHEETS)]]


@pytest.mark.parametrize(
    ("sample", "delimiter"),
    [
        ("a b c", ","),
        ("", ","),
        ("x;y\n1,2;3,4\n5,6;7,8\n", ";"),
        ("a, b\nc, d\n", ","),
        ("a|b,c\nd|e\n", "|"),
    ],
)
def test_the_delimiter_is_the_one_that_cuts_evenly(sample: str, delimiter: str) -> None:
    assert dialect(sample, True).delimiter == delimiter
