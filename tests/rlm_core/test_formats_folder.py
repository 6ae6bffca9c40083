"""The documents made by other programs, added as a user adds them; and what becomes of damaged copies."""

from __future__ import annotations

import io
import random
import shutil
import zipfile
from pathlib import Path

import pytest

from rlm_core.corpus import Corpus
from tests.conftest import FULL

DOCUMENTS = Path(__file__).parent.parent / "fixtures" / "documents"
GOOD, BROKEN = DOCUMENTS / "good", DOCUMENTS / "broken"

NO_HEADER = "sheet Rates: no header found, columns are named A to C"
HEADER = "sheet Orders: row 5 is taken as the header"
ERROR = "sheet Orders: 1 cell with an error (such as #DIV/0!), shown empty"
HIDDEN, EMPTY = "sheet Suppliers is hidden, but read", "sheet Empty is empty"
ORDERS = "sheet Orders, Rates, Catch by year, Suppliers"

# name | reader | table | sections | what is remarked
DOCUMENTS_READ = """
BSD.gz                       | text    |        |                   |
archive.zip/costs.csv        | text    | csv    |                   |
archive.zip/inner.zip/notes.md | text  |        |                   |
archive.zip/manual.pdf       | pdf     |        | page 1, 2         |
attached.pdf                 | pdf     |        | page 1            |
attached.pdf/costs.csv       | text    | csv    |                   |
contract.docx                | docx    |        |                   |
contract.pdf                 | pdf     |        | page 1, 2, 3, 4   |
cp1252.html                  | html    |        |                   |
deck.pptx                    | pptx    |        | slide 1, 2, 3     | no text on slide 2; hidden, but read: slide 3
form.pdf                     | pdf     |        | page 1            |
letter.eml                   | mail    |        |                   |
letter.eml/kostnader å.csv   | text    | csv    |                   |
letter.eml/manual.pdf        | pdf     |        | page 1, 2         |
log-linearized.pdf           | pdf     |        | page 1, 2, 3      |
log.txt.gz                   | text    |        |                   |
lying.html                   | html    |        |                   | declares utf-8, but is not: read as cp1252 (guessed)
manual.pdf                   | pdf     |        | page 1, 2         |
minutes-by-writer.html       | html    |        |                   |
minutes.docx                 | docx    |        |                   | hidden text is left out (1 place)
mixed.pdf                    | pdf     |        | page 1, 2, 3      | no text on page 2
notes.md                     | text    |        |                   |
odd-charsets.eml             | mail    |        |                   | a part declares us-ascii, read as cp1252
only-html.eml                | mail    |        |                   |
orders.ods                   | sheets  | sheets | {ORDERS}          | {HEADER}; {NO_HEADER}; {HIDDEN}; {EMPTY}
orders.xls                   | sheets  | sheets | {ORDERS}          | {HEADER}; {NO_HEADER}; {HIDDEN}; {EMPTY}
orders.xlsx                  | sheets  | sheets | {ORDERS}          | {HEADER}; {ERROR}; {NO_HEADER}; {HIDDEN}; {EMPTY}
page.html                    | html    |        |                   |
rates.csv                    | text    | csv    |                   |
rates.parquet                | parquet | sheets | sheet table       |
slides.pptx                  | pptx    |        | slide 1, 2, 3, 4  |
surrogates.txt               | text    |        |                   | not valid utf-8: 3 bad places are shown as U+FFFD, the first in line 1
utf16.html                   | html    |        |                   |
climbing.zip/fine.txt        | text    |        |                   |
damaged-member.zip/costs.csv | text    | csv    |                   |
damaged-member.zip/inner.zip/notes.md | text |  |                   |
really-a-page.xls            | html    |        |                   | named .xls, but it is an HTML page: read as that
really-a-pdf.docx            | pdf     |        | page 1, 2         | named .docx, but it is a PDF document: read as that
picture.pdf                  | image   |        |                   | named .pdf, but it is an image: read as that
scanned.pdf                  | pdf     |        | page 1, 2, 3, 4   | 4 pages without any text (scanned images?): a model that sees images can be shown them; to read them as text, run text recognition (OCR) and add the result
"""  # noqa: E501

PROBLEMS = """
bomb.docx                    | unpacks from 40 KB to 40 MB (a zip bomb?): not read
bomb.zip/zeros.txt           | unpacks to more than 200 times its size, as files made to fill a disk do: not read
climbing.zip/../../outside.txt | a name that leads out of the archive: not read
climbing.zip//absolute.txt   | a name that leads out of the archive: not read
damaged-member.zip/manual.pdf | damaged or cut off: not read
empty.pdf                    | an empty file: nothing to read
far.xlsx                     | sheet Far is not read: 1,048,576 rows by 16,384 columns, 2 of the cells filled, need too much memory; delete what stands far out, or split it
laughs.docx                  | is damaged: open it in its program, save it again and add that
locked.docx                  | an encrypted Office document: save it without the password and add that
locked.pdf                   | is protected by a password: remove it and add the file again
locked.xlsx                  | an encrypted Office document: save it without the password and add that
locked.zip                   | an encrypted archive: unpack it with its password and add the folder
nested.zip/inner.zip/inner.zip | a zip archive inside 2 others: unpack it and add the folder
no-pages.pdf                 | has no pages
outside.docx                 | its XML declares entities, which no Office program writes: not read
scripts-only.html            | a page without any visible text (made by scripts?): save it as text and add that
truncated.docx               | damaged or cut off: named .docx, but there is no document in it
truncated.parquet            | is damaged or cut off: write it again and add that
truncated.pdf                | is damaged or no PDF at all: open it in a viewer, save or print it to PDF again and add that
truncated.xlsx               | damaged or cut off: named .xlsx, but there is no document in it
truncated.zip                | a zip archive, damaged or cut off: it has no table of contents that can be used
"""  # noqa: E501


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return Corpus.add([GOOD, BROKEN], tmp_path_factory.mktemp("corpora"))


def test_every_document_is_read_as_it_should_be(corpus: Corpus) -> None:
    found = []
    for document in corpus.documents:
        kinds = sorted({section.kind for section in document.sections})
        labels = ", ".join(section.label for section in document.sections)
        sections = " ".join(filter(None, [*kinds, labels]))
        found.append([document.name, document.reader, document.table, sections, "; ".join(document.problems)])
    names = {"{ORDERS}": ORDERS, "{HEADER}": HEADER, "{NO_HEADER}": NO_HEADER, "{ERROR}": ERROR}
    table = DOCUMENTS_READ
    for name, text in {**names, "{HIDDEN}": HIDDEN, "{EMPTY}": EMPTY}.items():
        table = table.replace(name, text)
    assert sorted(found) == sorted(rows(table))


def test_every_problem_is_one_line(corpus: Corpus) -> None:
    found = [[problem.path.partition("broken/")[2], problem.message] for problem in corpus.problems]
    assert sorted(found) == sorted(rows(PROBLEMS))


def test_a_fact_is_found_on_its_page(corpus: Corpus) -> None:
    facts = {
        "73 days": ("contract.pdf", "page 3"),
        "6,400": ("manual.pdf", "page 2"),
        "Asta Lund": ("deck.pptx", "slide 1"),
        "9 September 2025": ("slides.pptx", "slide 4"),
        "Nordsalt AS": ("orders.xlsx", "sheet Suppliers"),
        "012,SEK": ("rates.parquet", "sheet table"),
        "Minus fourteen": ("letter.eml", None),
    }
    for fact, (name, place) in facts.items():
        document = next(document for document in corpus.documents if document.name == name)
        at = Path(document.path).read_bytes().index(fact.encode())
        assert corpus.place(document.number, at, at + len(fact)) == place


def test_nothing_is_written_outside_the_corpus(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("climbing.zip", "nested.zip", "outside.docx", "laughs.docx", "bomb.zip"):
        shutil.copy(BROKEN / name, tmp_path / "in")
    shutil.copy(GOOD / "letter.eml", tmp_path / "in")
    corpus = Corpus.add([tmp_path / "in"], tmp_path / "corpora")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpora", "in"]
    assert sorted(path.name for path in (tmp_path / "in").iterdir()) == sorted(
        ["climbing.zip", "nested.zip", "outside.docx", "laughs.docx", "bomb.zip", "letter.eml"]
    )
    assert [path.name for path in (tmp_path / "corpora").iterdir()] == [corpus.corpus_id]
    assert not Path("/absolute.txt").exists()


# -- damaged copies


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Bytes changed, taken out, repeated, or cut off, in a few places."""
    changed = bytearray(data)
    how = rng.choice(("byte", "bit", "out", "twice", "end"))
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at = rng.randrange(len(changed) or 1)
        if how == "end":
            return bytes(changed[: at + 1])
        if how == "out":
            del changed[at : at + rng.choice((1, 4, 50, 500))]
        elif how == "twice":
            start = rng.randrange(len(changed) or 1)
            changed[at:at] = changed[start : start + rng.choice((1, 8, 100))]
        elif changed:
            changed[at] = rng.randrange(256) if how == "byte" else changed[at] ^ 1 << rng.randrange(8)
    return bytes(changed)


def damaged_inside(data: bytes, rng: random.Random) -> bytes:
    """An Office file with one of its parts damaged or missing: its container is sound."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        target = rng.choice([name for name in old.namelist() if name.endswith((".xml", ".rels"))])
        for name in old.namelist():
            if name != target:
                new.writestr(name, old.read(name))
            elif rng.random() > 0.05:
                new.writestr(name, damaged(old.read(name), rng))
    return buffer.getvalue()


def copies(folder: Path, seed: int, each: int) -> int:
    """Write damaged copies of every good document into a folder; how many there are."""
    rng = random.Random(seed)
    folder.mkdir()
    count = 0
    for path in sorted(GOOD.iterdir()):
        data = path.read_bytes()
        for _ in range(each):
            inside = path.suffix in (".docx", ".pptx", ".xlsx", ".ods") and rng.random() < 0.8
            changed = damaged_inside(data, rng) if inside else damaged(data, rng)
            if changed:
                (folder / f"{count:04}-{path.name}").write_bytes(changed)
                count += 1
    return count


def test_damaged_copies_are_read_or_named_in_one_line(tmp_path: Path) -> None:
    count = copies(tmp_path / "in", seed=5, each=30 if FULL else 2)
    corpus = Corpus.add([tmp_path / "in"], tmp_path / "corpora")
    read = {document.name.partition("/")[0] for document in corpus.documents}
    named = {Path(problem.path).relative_to(tmp_path / "in").parts[0] for problem in corpus.problems}
    assert read | named == {path.name for path in (tmp_path / "in").iterdir()}
    assert len(read | named) == count
    for problem in corpus.problems:
        assert "\n" not in problem.message and str(tmp_path) not in problem.message
        assert "Traceback" not in problem.message
        # what a reader did not foresee: an error of ours (a crash of a library is foreseen)
        assert not problem.message.startswith("cannot be read, it may be damaged"), problem
    assert [path.name for path in (tmp_path / "corpora").iterdir()] == [corpus.corpus_id]
