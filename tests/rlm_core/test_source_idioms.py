"""Every way in which code brings text of the corpus into a prompt, and what is found of it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.source_runs import (
    CONTACT,
    CRANE,
    DOCUMENTS,
    DOG,
    DREDGING,
    GUESTS,
    HEAD,
    LETTERS,
    QUAY,
    SETUP,
    SHIP,
    SHIPS,
    Recorded,
    passages,
    sources,
)


@dataclass(frozen=True)
class Idiom:
    """What a cell asks with, and the passages of the corpus that stand in it, in order."""

    name: str
    prompt: str
    passages: list[str]
    how: str = "located"
    snippet: str = "''"


IDIOMS = [
    Idiom("plain slice", "report[39:122]", [QUAY], "reference"),
    Idiom("slice of a slice", "report[10:][29:][:83]", [QUAY], "reference"),
    Idiom("f-string", "f'<<{line}>>?'", [QUAY]),
    Idiom("percent", "'Look: %s!' % line", [QUAY]),
    Idiom("str.format", "'Look: {}! {x}'.format(lines[4], x=lines[6])", [SHIPS, CONTACT]),
    Idiom("join", "' / '.join(lines)", [HEAD, QUAY, CRANE, SHIPS, DREDGING, CONTACT]),
    Idiom("join back", "'<<' + '\\n'.join(lines[1:5]) + '>>'", ["\n".join((QUAY, CRANE, "", SHIPS))]),
    Idiom("concatenation", "'A ' + line + ' B ' + lines[4]", [QUAY, SHIPS]),
    Idiom(
        "re.findall",
        "'|'.join(re.findall(r'hours[^;]*|ships from [^.]*', report))",
        ["hours on average", "ships from Porto waited nine"],
    ),
    Idiom(
        "re.sub",
        "re.sub(r'[\\d,]+ cont', 'MANY cont', line)",
        ["The northern quay handled ", " containers in March, more than in any month before."],
    ),
    Idiom("re.split", "'#'.join(re.split(r'; ', lines[4]))", SHIPS.split("; ")),
    Idiom("json.dumps", "json.dumps({'text': report})", [HEAD, QUAY, CRANE[1:], SHIPS, DREDGING, CONTACT]),
    Idiom("json.dumps of non-ASCII", "json.dumps(lines[1] + letters[:17])", [QUAY, GUESTS[1:17]]),
    Idiom(
        "json.loads",
        "json.loads(context['records.json'])['body']",
        ["The motion about the lighthouse failed."],
    ),
    Idiom(
        "textwrap.fill",
        "textwrap.fill(line, 45)",
        ["The northern quay handled 4,812 containers in", "March, more than in any month before."],
    ),
    Idiom("textwrap.dedent", "textwrap.dedent(lines[5])", [DREDGING.strip()]),
    Idiom("loop over lines", "'\\n'.join('- ' + s for s in lines if 'of' in s)", [HEAD + "\n", CRANE]),
    Idiom("words", "' '.join(line.split())", [QUAY]),
    Idiom(
        "csv row",
        "' | '.join(list(csv.reader(io.StringIO(table)))[1])",
        ["Aurélie Montgolfier", "Lyon-Villeurbanne"],
    ),
    Idiom("dict lookup", "{s.split(':')[0]: s for s in lines}['Contact'] + '?'", [CONTACT]),
    Idiom("sorted set", "' * '.join(sorted(set(lines[4:])))", [DREDGING, CONTACT, SHIPS]),
    Idiom("replace", "line.replace('March', 'May')", QUAY.split("rch")),
    Idiom(
        "translate",
        "line.translate(str.maketrans('', '', '0123456789,'))",
        ["The northern quay handled ", " containers in March", " more than in any month before."],
    ),
    Idiom("string.Template", "string.Template('<<$t>>').substitute(t=lines[6])", [CONTACT]),
    Idiom(
        "pandas cell",
        "__import__('pandas').read_csv(io.StringIO(table)).iloc[1, 0]",
        ["Bartholomew Oyelaran"],
    ),
    Idiom("repr of a list", "repr([line, lines[6]])", [QUAY, CONTACT]),
    Idiom("bytes and back", "letters.encode().decode()", [LETTERS]),
    Idiom("non-ASCII", "f'¿{letters.splitlines()[1]}? {letters.splitlines()[2]}'", [DOG, SHIP]),
    Idiom("half a word", "'ü' + letters[2:60] + 'ö'", [LETTERS[2:60]]),
    Idiom("place and built text", "f'Compare <<{line}>> with'", [QUAY, HEAD], snippet="report[:38]"),
    Idiom("places only", "'Short: '", [HEAD, SHIPS], "reference", snippet="[report[:38], lines[4]]"),
    Idiom("empty place", "'Short: '", [], "none", snippet="report[5:5]"),
    Idiom("upper", "report.upper()", [], "none"),
    Idiom("reversed", "line[::-1]", [], "none"),
    Idiom("spaced", "' '.join(line)", [], "none"),
    Idiom("number", "'How many? ' + str(int('4,812'.replace(',', '')))", [], "none"),
    Idiom("base64", "base64.b64encode(report.encode()).decode()", [], "none"),
    Idiom("too short", "'<' + line[:15] + '>'", [], "none"),
    Idiom(
        "a question of its own", "'What is the capital of the country in question, in one word?'", [], "none"
    ),
]


def test_every_idiom_that_keeps_text_gives_its_exact_passages_and_no_other_does(recorded: Recorded) -> None:
    cells = [f"r = llm_query({idiom.prompt}, {idiom.snippet})" for idiom in IDIOMS]
    view = recorded.play(SETUP, *cells, "FINAL(1)", corpus=DOCUMENTS, max_iterations=len(cells) + 2)
    found = dict(zip((idiom.name for idiom in IDIOMS), passages(view, DOCUMENTS.values()), strict=True))
    assert found == {idiom.name: idiom.passages for idiom in IDIOMS}
    assert [value["how"] for value in sources(view)] == [idiom.how for idiom in IDIOMS]
    for value in sources(view):
        assert value["places"] == [None] * len(value["ranges"]) and "why" not in value
        assert value.get("also", []) == [0] * len(value["ranges"]) * (value["how"] == "located")
