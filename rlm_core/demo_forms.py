"""The question forms of `demo/root`: each function returns the plan for a question of its form, else None.

A plan holds the cells after the first look. Forms are anchored to the whole question: a question that asks
for more than a form covers ("... in March") gets no plan rather than the answer to another question.
"""

from __future__ import annotations

import re
from typing import Final

from rlm_core import demo_cells as cells
from rlm_core.demo_cells import Raw, fill
from rlm_core.demo_plans import Plan, finish, no_plan
from rlm_core.demo_words import (
    FUNCTION_WORDS,
    LEXICON,
    OTHER,
    content_words,
    group_for_noun,
    label_named,
    language_of,
    tokens,
)

_RECORD_NOUNS: Final = (
    r"(?:documents?|files?|records?|tickets?|requests?|messages?|contracts?|agreements?|papers?"
    r"|articles?|studies|entries"
    r"|reports?|e-?mails|rows?|lines?|documentos?|archivos?|ficheros?|registros?|contratos?|artículos?"
    r"|mensajes?|solicitudes"
    r"|líneas?|arquivos?|chamados?|mensagens|artigos?|linhas?)"
)
_LINES: Final = r"(?:lines?|l[ií]neas?|linhas?)"
_DOCUMENTS: Final = r"(?:documents?|files?|documentos?|archivos?|ficheros?|arquivos?)"
_REST: Final = (  # what may follow a question without changing it
    r"(?:\s+(?:are there|there are|in total|in all|overall|altogether|exist|hay|existen|existem|há|en "
    r"total|no total|ao todo"
    r"|(?:mentioned|named|used|found|stated|listed|that appear|contained|given)?\s*(?:in|from|across"
    r"|among|of|within|en|de|em|n[oa]s?|d[oa]s?)"
    r"\s+(?:all\s+|todos\s+|todas\s+)?(?:the|these|this|those|my|our|los|las|el|la|estos|este|esta|os"
    r"|as|o|a|estes|esses)?\s*"
    r"(?:whole |entire |server )?(?:"
    + _RECORD_NOUNS[3:-1]
    + r"|corpus|collection|folder|data|text|log|log file|contratos|papers|registro|pasta|carpeta)))*"
)
_LABEL_TAIL: Final = (
    r"\s+(?:issues?|problems?|requests?|questions?|matters?|tickets?|complaints?|problemas?|asuntos?"
    r"|chamados?)$"
)
_ARTICLE: Final = r"^(?:an?|the|one|at least one|un|una|el|la|los|las|um|uma|os|as|o|a)\s+"


def plain(question: str) -> str:
    """A question without its marks and its polite or scoping opening."""
    flat = question.strip(" ¿¡?!.\t\n")
    flat = re.sub(r"^(?:please|por favor)\b[, ]*", "", flat, flags=re.I)
    scope = (
        r"^(?:in total|overall|of|among|across|in|de|entre|en|dos|das)(?: all)?(?: the| these| los| las"
        r"| os| as)? "
    )
    return re.sub(scope + _RECORD_NOUNS + r",\s*", "", flat, flags=re.I)


def _match(patterns: tuple[str, ...], question: str) -> re.Match[str] | None:
    return next((m for p in patterns if (m := re.match(p + r"\s*$", question, re.I))), None)


# -- labels


def _labels(phrase: str, language: str) -> tuple[list[str], list[str], bool] | None:
    """(labels to choose from, labels wanted, in the lexicon) for "billing or a bug"; None if it says more."""
    parts = re.split(r"\s*,\s*|\s+(?:or|and|o|ou|y|e|u)\s+", phrase.strip(" '\"").lower())
    parts = [re.sub(_LABEL_TAIL, "", re.sub(_ARTICLE, "", p.strip(" '\""))) for p in parts]
    known = [label_named(p, language) for p in parts]
    groups = {found[0] for found in known if found}
    if all(known) and len(groups) == 1:
        return [*LEXICON[groups.pop()], OTHER], [found[1] for found in known if found], True
    simple = all(p and len(p.split()) <= 3 and not set(tokens(p)) & FUNCTION_WORDS for p in parts)
    return ([*parts, OTHER], parts, False) if simple and not any(known) else None


_ABOUT: Final = {
    "en": r"(?:that |which )?(?:are |were |is )?(?P<neg>not )?(?:(?:mainly |mostly )?about"
    r"|concern(?:ing)?|regarding|relat(?:e|ing|ed) to|"
    r"deal(?:ing)? with|classified as|labell?ed(?: as)?|in the category(?: of)?|in category|belong to"
    r"|fall under)",
    "es": r"(?:que )?(?P<neg>no )?(?:(?:son|están|hay|tratan|hablan|versan) )*(?:sobre|acerca de"
    r"|relacionad[oa]s con|de)",
    "pt": r"(?:que )?(?P<neg>não )?(?:(?:são|estão|há|existem|tratam|falam) )*(?:sobre|a respeito de"
    r"|relacionad[oa]s (?:com|a)|de|da|do)",
}


def by_label(question: str) -> Plan | None:
    """How many / which records are about LABEL."""
    language = language_of(question)
    opening = {
        "en": r"(?P<ask>how many|count|which|list|find|what is the number of|number of)(?: of| all)*(?: "
        r"the| these)?(?: support| customer)? (?P<noun>\w+)(?: are there| there are)?",
        "es": r"(?P<ask>cu[aá]nt[oa]s|qué|cuáles) (?P<noun>\w+)",
        "pt": r"(?P<ask>quant[oa]s|quais|que) (?P<noun>\w+)",
    }[language]
    found = _match((rf"{opening} {_ABOUT[language]} (?P<label>.+?){_REST}",), question)
    negated = bool(found and found["neg"])
    if found is None and language == "en":
        found = _match((rf"(?P<ask>how many) (?P<label>[\w-]+) (?P<noun>{_RECORD_NOUNS}){_REST}",), question)
        if found and not label_named(found["label"], language):
            return None
    if found is None or not re.fullmatch(_RECORD_NOUNS, found["noun"], re.I):
        return None
    choice = _labels(found["label"], language)
    if choice is None:
        return no_plan(question)
    labels, wanted, known = choice
    values = {"labels": labels, "wanted": wanted, "noun": Raw(found["noun"].lower()), "unknown": not known}
    first = ("One sub-call per record: which label fits?", fill(cells.LABELS, **values))
    if found["ask"].lower() in ("which", "list", "find", "qué", "cuáles", "quais", "que"):
        return Plan((first, ("I collect the names.", fill(cells.LABELLED, **values))), finish("result"))
    second = ("I count the labels.", fill(cells.COUNT_LABEL, negated=negated, **values))
    return Plan((first, second), finish("total"))


def common_label(question: str) -> Plan | None:
    """Which label is the most (least) common."""
    kinds = r"(?:\w+ )?(?:labels?|categor(?:y|ies)|topics?|themes?|types?|kinds?|subjects?|issues?)"
    found = _match(
        (
            rf"(?:what|which)(?:'s| is| are)? (?:the )?(?P<sup>most|least) (?:common|frequent) "
            rf"{kinds}(?P<rest>.*)",
            rf"(?:what|which) {kinds} (?:is|are|occurs|appears)(?: the)? (?P<sup>most|least)(?: common| "
            rf"frequent| often)?(?P<rest>.*)",
            r"what are (?P<sup>most)(?P<rest> \w+) about",
            r"cuál es (?:la|el) (?:categoría|tema|etiqueta|tipo|asunto) (?P<sup>más|menos) (?:común"
            r"|frecuente)(?P<rest>.*)",
            r"qual (?:é )?(?:a|o) (?:categoria|tema|rótulo|tipo|assunto) (?P<sup>mais|menos) (?:comum"
            r"|frequente)(?P<rest>.*)",
        ),
        question,
    )
    if found is None:
        return None
    language = language_of(question)
    nouns = [*content_words(found["rest"]), "papers" if "theme" in question else "tickets"]
    noun = next((n for n in nouns if group_for_noun(n, language)), None)
    if noun is None or len(nouns) > 2 or re.search(r"\d", found["rest"]):
        return no_plan(question)
    labels = [*LEXICON[group_for_noun(noun, language) or ""], OTHER]
    values = {"labels": labels, "noun": Raw(noun), "unknown": False}
    pick = Raw("min" if found["sup"].lower() in ("least", "menos") else "max")
    return Plan(
        (
            ("One sub-call per record: which label fits?", fill(cells.LABELS, **values)),
            ("I count the labels.", fill(cells.COMMON_LABEL, pick=pick, **values)),
        )
    )


def pairs(question: str) -> Plan | None:
    """Pairs of FIELD where both have a record about LABEL."""
    found = _match(
        (
            r".*\bpairs? of (?P<field>\w+)\b.*\bboth\b.*?\b(?:about|on|regarding|concerning"
            r"|labell?ed(?: as)?) (?P<label>.+)",
            r".*\bpairs? of (?P<field>\w+)\b.*\bboth\b.*?\b(?:have|has|sent|opened|wrote) (?:an? |at "
            r"least one |some )?(?P<label>[\w-]+) tickets?",
            r".*\bpares de (?P<field>\w+)\b.*\bamb[oa]s\b.*?\b(?:sobre|de) (?P<label>.+)",
        ),
        question,
    )
    if found is None:
        return None
    choice = _labels(re.sub(_REST + "$", "", found["label"]), language_of(question))
    beyond = re.search(
        r"\b(?:exactly|other|before|after|not|exactamente|otro|outro|exatamente)\b", question, re.I
    )
    if choice is None or beyond:
        return no_plan(question)
    labels, wanted, known = choice
    field = re.sub(
        r"(?<=\w{3})(?:es|s)$" if question.lower().startswith("¿") else r"s$", "", found["field"].lower()
    )
    values = {
        "labels": labels,
        "wanted": wanted,
        "noun": Raw("records"),
        "unknown": not known,
        "field": Raw(field),
    }
    first = ("One sub-call per record: which label fits?", fill(cells.LABELS, **values))
    return Plan((first, ("I pair those who have one.", fill(cells.PAIRS, **values))), finish("pairs"))


# -- pure code


def by_text(question: str) -> Plan | None:
    """How many lines / documents / records contain X; which documents contain X; how often X occurs."""
    found = _match(
        (
            r"(?P<ask>how many|which) (?:of the )?(?P<unit>\w+)(?: (?:in|of) the [\w ]{1,20}?)? (?:do "
            r"|does )?(?:contain|mention|include|say|have the (?=word|string|text|phrase))s?"
            r" (?P<kind>(?:the )?(?:exact )?(?:words?|string|term|phrase|text)? ?)(?P<what>.+)",
            r"in (?P<ask>how many|which) (?P<unit>\w+) (?:do|does|is) (?P<kind>(?:the )?(?:words?"
            r"|string|term|phrase|text)? ?)(?P<what>.+?)"
            r" (?:occur|appear|mentioned)s?",
            r"(?:how many (?P<unit>times) (?:do|does|is)|how often (?:do|does|is)) (?P<kind>(?:the "
            r")?(?:word|string|term|phrase)? ?)(?P<what>.+?)"
            r" (?:occur|appear|mentioned|used)s?" + _REST,
            r"(?P<ask>cu[aá]nt[oa]s|qué) (?P<unit>\w+) (?:contienen|mencionan|incluyen) (?P<kind>(?:la "
            r"|el )?(?:palabra|texto|frase)? ?)(?P<what>.+)",
            r"(?P<ask>quant[oa]s|quais) (?P<unit>\w+) (?:contêm|contem|mencionam|incluem) (?P<kind>(?:a "
            r"|o )?(?:palavra|texto|frase)? ?)(?P<what>.+)",
        ),
        question,
    )
    if found is None:
        return None
    pattern = _text_pattern(found["what"], found["kind"])
    if pattern is None:
        return no_plan(question)
    values = {"pattern": pattern[0], "flags": Raw(", re.I" if pattern[1] else "")}
    unit = (found["unit"] or "times").lower()
    asks_which = found.groupdict().get("ask", "") and found["ask"].lower() in ("which", "qué", "quais")
    if asks_which:
        step = ("No sub-call is needed for this.", fill(cells.HOLDING, **values))
        return Plan((step,), finish("result", sure=True)) if _unit(unit) != "lines" else no_plan(question)
    code = fill(cells.COUNT_TEXT[_unit(unit)], **values) + cells.SHOW_TOTAL
    return Plan((("No sub-call is needed for this: I count in code.", code),), finish("total", sure=True))


def _unit(noun: str) -> str:
    if re.fullmatch(_LINES, noun):
        return "lines"
    return "documents" if re.fullmatch(_DOCUMENTS, noun) else "times" if noun == "times" else "records"


def _text_pattern(what: str, kind: str) -> tuple[str, bool] | None:
    """(pattern, ignore case) for the text of a question; None if it is more than one text to find."""
    quoted = re.fullmatch(r"[\"'“«`](.+?)[\"'”»`]" + _REST, what, re.I)
    if quoted:
        return re.escape(quoted[1]), False
    bare = re.sub(r"^(?:the|an?|la|el|o|a) (?=\w+$)", "", re.sub(_REST + "$", "", what, flags=re.I))
    parts = re.split(r"\s+(?:or|ou|o)\s+", bare)
    beyond = r"\b(?:and|but|not|before|after|between|without|y|e|pero|mas|sin|sem|in|on|from)\b"
    if any(len(p.split()) > 4 or re.search(beyond, p) for p in parts):
        return None
    whole = re.search(r"word|palabra|palavra", kind)
    escaped = [rf"\b{re.escape(p)}\b" if whole else re.escape(p) for p in (p.strip(" \"'") for p in parts)]
    return "|".join(escaped), bare == bare.lower()


def count_all(question: str) -> Plan | None:
    """How many documents / records / lines there are."""
    found = _match(
        (
            rf"how many (?P<unit>{_RECORD_NOUNS})(?: are there| there are| are| is)?{_REST}",
            rf"(?:cu[aá]nt[oa]s|quant[oa]s) (?P<unit>{_RECORD_NOUNS})(?: hay| há| existem)?{_REST}",
        ),
        question,
    )
    if found is None:
        return None
    code = cells.COUNT_ALL[_unit(found["unit"].lower())]
    return Plan(
        (("No sub-call is needed for this.", code.lstrip() + cells.SHOW_TOTAL),), finish("total", sure=True)
    )


# -- one sub-call per document


def listing(question: str) -> Plan | None:
    """List all e-mail addresses, dates, amounts, URLs ..."""
    named = (
        ("e-mail address",
            r"e-?mails?(?: address(?:es)?)?|correos?(?: electrónicos?)?|direcciones de correo(?: "
            r"electrónico)?|endereços de e-?mail"),
        ("date", r"dates|fechas|datas"),
        ("money amount", r"(?:monetary )?amounts?(?: of money)?|prices|importes|montos|precios|preços"),
        ("url", r"urls?|links|web addresses|enlaces"),
        ("percentage", r"percentages|porcentajes|porcentagens|percentuais"),
        ("ip address", r"ip addresses|ips|direcciones ip|endereços ip"),
        ("uuid", r"uuids?"),
    )  # fmt: skip
    verb = (
        r"(?:list|find|extract|give|show|name|collect|what are|which|lista|liste|enumera|extrae|muestra"
        r"|cuáles son|extraia|mostre|quais são)"
    )
    between = (
        r"(?: me| us)?(?: all| every| todos| todas| toda| todo)?(?: of)?(?: the| los| las| os| as)?(?: "
        r"different| distinct| unique| contact| customer)*"
    )
    for what, names in named:
        if _match((rf"{verb}{between} (?:{names})(?: (?:are|appear|there are))?{_REST}",), question):
            steps = (
                (f"Every {what}: one sub-call per document.", fill(cells.LIST, what=Raw(what))),
                ("I unite the lists.", fill(cells.LIST_UNION)),
            )
            return Plan(steps, finish("result"))
    return None


_MOST: Final = (
    r"highest|largest|greatest|biggest|longest|latest|newest|most recent|most expensive|most|last"
    r"|mayor|más alt[oa]|más grande|más larg[oa]|más reciente|más car[oa]|últim[oa]"
    r"|maior|mais alt[oa]|mais long[oa]|mais recente|mais car[oa]|mais tardi[oa]"
)
_FEWEST: Final = (
    r"lowest|smallest|least expensive|cheapest|shortest|earliest|oldest|fewest|least|first"
    r"|menor|más baj[oa]|más pequeñ[oa]|más cort[oa]|más antigu[oa]|más barat[oa]|primer[oa]?"
    r"|mais baix[oa]|mais curt[oa]|mais antig[oa]|mais barat[oa]|primeir[oa]"
)


def extreme(question: str) -> Plan | None:
    """Which document has the highest / lowest / latest FIELD, or what that value is."""
    superlative = rf"(?P<sup>{_MOST}|{_FEWEST})"
    found = _match(
        (
            rf"(?:which|what) (?P<noun>\w+) (?:has|have|had|with|is|was|carries|sets|names|gives|states"
            rf"|allows)(?: the)? {superlative}(?: (?P<field>.+?))?{_REST}",
            rf"what(?:'s| is| was) the {superlative} (?P<field>.+?) (?:among|across|of all|in all|of "
            rf"any|in any)(?: all)?(?: of)?(?: the)? {_RECORD_NOUNS}",
            rf"(?:qué|cuál) (?P<noun>\w+) (?:tiene|fija|es)(?: el| la)? {superlative}(?: "
            rf"(?P<field>.+?))?{_REST}",
            rf"(?:qué|cuál) (?P<noun>\w+) tiene (?:el |la )?(?P<field>.+?) {superlative}{_REST}",
            rf"cuál es el (?P<noun>\w+) con (?:el |la )?(?P<field>.+?) {superlative}{_REST}",
            rf"qual (?P<noun>\w+) (?:tem|possui|é)(?: o| a)? {superlative}(?: (?P<field>.+?))?{_REST}",
            rf"qual (?P<noun>\w+) (?:tem|possui) (?:o |a )?(?P<field>.+?) {superlative}{_REST}",
        ),
        question,
    )
    if found is None or not _is_record(found.groupdict().get("noun")):
        return None
    field = _field(found["field"], found["sup"].lower())
    if field is None:
        return no_plan(question)
    asks = {"en": "What is the {}?", "es": "¿Cuál es {}?", "pt": "Qual é {}?"}[language_of(question)].format(
        field
    )
    pick = Raw("max" if re.fullmatch(_MOST, found["sup"], re.I) else "min")
    values = {"pick": pick, "value": found.groupdict().get("noun") is None}
    steps = (
        ("The same question to every document.", fill(cells.FIELD, question=asks)),
        ("I compare the values.", fill(cells.EXTREME, **values)),
    )
    return Plan(steps)


def _is_record(noun: str | None) -> bool:
    return noun is None or re.fullmatch(_RECORD_NOUNS, noun, re.I) is not None


def _field(field: str | None, superlative: str) -> str | None:
    """The field to ask for; "the cheapest" means the price, "the oldest" the date; None: it says too much."""
    if field is None:
        if re.search(r"expensive|cheap|car[oa]$|barat[oa]$", superlative):
            return "fee"
        dated = re.search(
            r"latest|newest|recent|earliest|oldest|first|last|antig|últim|primer|primeir", superlative
        )
        return "date" if dated else None
    field = re.sub(r"^(?:number of|número de) ", "", field.strip())
    return (
        field
        if len(field.split()) <= 4 and not re.search(r"\b(?:and|or|than|before|after)\b", field)
        else None
    )


def by_predicate(question: str) -> Plan | None:
    """Which / how many documents do something: yes or no per document, by shared words only."""
    found = _match(
        (
            rf"(?P<ask>which|how many)(?: of the)? (?P<noun>{_RECORD_NOUNS}) (?P<predicate>.+)",
            rf"(?P<ask>qué|cuáles|cu[aá]nt[oa]s|quais|quant[oa]s) (?P<noun>{_RECORD_NOUNS}) "
            rf"(?P<predicate>.+)",
        ),
        question,
    )
    if found is None:
        return None
    predicate, plural = (
        found["predicate"],
        found["noun"].lower().endswith("s") or found["noun"] in ("studies", "mensagens"),
    )
    beyond = (
        r"\b(?:and|or|than|before|after|between|since|most|more|less|not|except|both|only|on|in|from|by)\b|\d"
    )
    if not plural or re.search(beyond, predicate, re.I) or len(content_words(predicate)) not in (1, 2, 3, 4):
        return no_plan(question)
    counts = not found["ask"].lower().startswith(("which", "qu", "cuá")) or found["ask"].lower().startswith(
        "quant"
    )
    steps = (
        ("Yes or no, one sub-call per document.", fill(cells.FILTER, predicate=predicate)),
        ("I collect the documents that say yes.", fill(cells.FILTERED)),
    )
    return Plan(steps, finish("total" if counts else "result"))


def summary(question: str) -> Plan | None:
    """Summarise the documents."""
    opens = (
        r"(?:summari[sz]e\b|(?:give|write|provide)\b.{0,12}\bsummary\b|what (?:is|are) (?:this|the"
        r"|these) \w+ about|resume\b|resumir\b|resuma\b|(?:haz|faça)\b.{0,6}\bresum)"
    )
    if not re.match(opens, question, re.I):
        return None
    steps = (
        ("One summary per document.", cells.SUMMARISE),
        ("I put them together.", cells.SUMMARY_JOIN),
    )
    return Plan(steps, finish("result"))
