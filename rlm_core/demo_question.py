"""How the demo model reads a lookup question: what is asked for, of what, and which type of value answers it.

No grammar: prepositions, determiners and marked names (quoted, hyphenated, with digits) in English, Spanish
and Portuguese. What cannot be placed still counts as a word to look for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from rlm_core.demo_words import EMPTY_WORDS, content_words, tokens, word_set

CONTAINERS: Final = word_set(  # places every answer is in, and units: they name nothing
    """
    text texts corpus document documents file files source sources folder contract agreement codebase code
    library passage context collection below above provided given directory repository module modules haystack
    config configuration euros eur dollars usd days months years percent total full
    texto textos documento documentos archivo archivos fichero ficheros carpeta contrato biblioteca arquivo
    arquivos pasta reais
    """
)
_RECORDS: Final = word_set(
    "ticket paper contract agreement document file text contrato documento archivo arquivo texto"
)
_EMPTY_HEADS: Final = word_set(
    """
    setting settings parameter option variable entry key record field item
    ajuste parámetro opción campo clave entrada configuração parâmetro opção chave registro
    """
)
_PREPOSITIONS: Final = (
    "for|of|to|in|on|at|from|by|with|behind|under|into|inside|within|about|as|"
    "del|de|al|para|en|con|por|sobre|da|do|das|dos|nas|nos|na|ao|à|em|com"
)
_DETERMINERS: Final = "the|this|that|our|its|el|la|los|las|este|esta|os|um|uma|un|una|o|a"
_WH_AHEAD: Final = r"(?:what|which|whom|whose|qué|que|cuál|qual|quem|where|when)\b"
_TRAILING_VERBS: Final = word_set(
    """
    expire expires begin begins start starts end ends leave leaves cost costs have has hold holds use uses
    weigh weighs need needs take takes arrive arrives open opens close closes run runs go goes stand stands
    get gets require requires contain contains carry carries show shows
    vence empieza termina cuesta tiene usa necesita abre cierra começa custa tem precisa fecha
    """
)
_KINDS: Final = (  # the kind of value a head noun asks for
    ("email", "email mail correo"),
    ("uuid", "uuid guid"),
    ("url", "url link website webpage homepage enlace"),
    ("ip", "ip"),
    ("percent", "percent percentage porcentaje percentagem porcentagem"),
    ("duration", "period duration notice plazo prazo preaviso duración duração aviso"),
    ("date", "date day deadline birthday fecha data día dia vencimiento vencimento"),
    ("time", "hour clock hora"),
    ("year", "year año ano"),
    ("money", "amount price fee cost budget salary sum cap liability rent fine payment"
              " precio importe tarifa cuota costo coste monto presupuesto límite preço taxa limite multa"),
    ("number", "number count quantity total height weight depth length population score age participants size"
               " número cantidad cifra quantidade tamaño tamanho participantes"),
    ("word", "word city town country colour color animal fruit person place codeword month"
             " palabra ciudad color país palavra cidade cor"),
)  # fmt: skip
_IDENTIFYING: Final = word_set(
    "serial registration reference account order case part model licence license tracking"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A lookup question as the demo model reads it.

    `key` are the words that say *of what* ("north", "archive"), which must stand together in the text, a
    compound ("blue-harbor") as one word; `words` those that say *what* ("access", "code"); `nouns` are those
    of the words that the value itself goes by ("code").
    `kind` is the type of the wanted value, "any" for any.
    """

    question: str
    kind: str
    key: tuple[str, ...]
    words: tuple[str, ...]
    nouns: tuple[str, ...] = ()


@cache
def read_question(question: str) -> Asked:
    """Take a lookup question apart. Never fails: what it cannot place becomes `words`."""
    question = asking_sentence(question)
    head, key = _split_key(question)
    taken = {*key, *(t for w in key for t in tokens(w))}
    left = [w for w in content_words(head) if w not in taken | EMPTY_WORDS | _TRAILING_VERBS]
    strong = dict.fromkeys([w for w in left if w not in _RECORDS] or left)
    return Asked(question, _kind(question, tokens(head)), tuple(key), tuple(strong), _nouns(head))


def _nouns(head: str) -> tuple[str, ...]:
    """ "Which word did ...": the word after which or what; else the last one: "the access code"."""
    after = re.search(
        r"\b(?:what|which|how many|qué|cuántos|cuántas|qual|que|quantos|quantas)\s+(\w+)", head, re.I
    )
    words = content_words(after[1]) if after else []
    return tuple(words or content_words(head)[-1:])


def asking_sentence(question: str) -> str:
    """The last sentence with a question mark, else all of it, on one line."""
    flat = " ".join(question.split())
    asking = [s for s in re.split(r"(?<=[.!?])\s+", flat) if "?" in s]
    return asking[-1] if asking else flat


def _marked(text: str) -> list[str]:
    """Names that a text marks itself: quoted or announced by "named" (its words), compound or with digits."""
    quoted = re.findall(r"[\"“«`]([^\"”»`]{2,60})[\"”»`]|(?<!\w)'([^']{2,60})'(?!\w)", text)
    found = [a or b for a, b in quoted]
    found = found or re.findall(r"\b(?:named|called|llamad[oa]|chamad[oa])\s+([^\W_]+)", text, re.I)
    if not found:
        found = re.findall(r"[^\W_]+(?:[-_./][^\W_]+)+|\b(?=\w*\d)(?=\w*[^\W\d])\w+", text)
    ordinary = {"e-mail", "log-in", "sign-in", "and/or", "auto-renewal"}
    return [w for f in found if f.lower() not in ordinary for w in f.lower().split()]


def _split_key(question: str) -> tuple[str, list[str]]:
    """(the part that says what is asked, the words that say of what)."""
    owned = re.search(r"([\w.-]+(?:\s+[\w.-]+){0,3})['’]s\s+(\w.+)", question)
    if owned:
        owner = re.split(r"\b(?:is|was|are|the|our|what|for)\b", owned[1], flags=re.I)[-1]
        key = _marked(owner) or content_words(owner)
        if key and not set(key) <= CONTAINERS:
            return owned[2], key
    head, tail = _last_tail(question)
    marked = _marked(tail) or _marked(question)
    if marked:
        return (head if tail and _marked(tail) else question), marked
    return (head, _narrow(tail)) if tail else _noun_after_verb(head)


def _last_tail(question: str) -> tuple[str, str]:
    """(all before it, the part after the last preposition that names something); ("all", "") without one."""
    end = len(question)
    for place in reversed(list(re.finditer(rf"(?<![\w-])(?:{_PREPOSITIONS})\s+", question, re.I))):
        tail = question[place.end() : end]
        if place.start() == 0 or re.match(_WH_AHEAD, tail, re.I):
            continue
        if all(w in CONTAINERS or w in EMPTY_WORDS or w.endswith("ed") for w in content_words(tail)):
            end = place.start()
            continue
        named = re.match(r"(.+?)\s(?=(?:does|do|did|must|can|should|has|have)\s)", tail)
        split = place.end() + named.end() if named else place.start()  # "[days of notice does] the contract"
        return question[:split], question[split:end]
    return question[:end], ""


def _narrow(tail: str) -> list[str]:
    """The naming words of a tail: its marked names, else what follows the last determiner."""
    marked = _marked(tail)
    if marked:
        return marked
    parts = re.split(rf"(?<!\w)(?:{_DETERMINERS})\s+", tail, flags=re.I)
    words = content_words(next((p for p in reversed(parts) if content_words(p)), tail))
    while len(words) > 1 and (
        words[-1] in _TRAILING_VERBS or words[-1] in EMPTY_WORDS or words[-1].endswith("ed")
    ):
        words.pop()
    return [w for w in words if w not in _EMPTY_HEADS] or words


def _noun_after_verb(question: str) -> tuple[str, list[str]]:
    """What password opens [the copper gate]: the noun after the last determiner, unless that is all."""
    flat = question.rstrip(" ?.")
    found = list(re.finditer(r"(?<!\w)(?:the|our|el|la|los|las|os|as|o|a)\s+", flat, re.I))
    if not found:
        return question, []
    head, tail = flat[: found[-1].start()], flat[found[-1].end() :]
    asks_itself = re.match(
        r"\W*(?:when|where|who|how|cuándo|dónde|quién|quando|onde|quem|cuánt\w+|quant\w+)\b", flat, re.I
    )
    if asks_itself or [w for w in content_words(head) if w not in EMPTY_WORDS]:
        key = _narrow(tail)
        if not set(key) <= CONTAINERS:
            return head, key
    return question, []


def _kind(question: str, head: list[str]) -> str:
    """The type of the wanted value, by the last head noun that tells one ("magic access code": code)."""
    phrases = (
        ("money", r"\bhow much\b|\bcuánto (?:cuesta|vale)\b|\bquanto (?:custa|vale)\b"),
        ("number", r"\bhow many\b|\bcu[aá]nt[oa]s\b|\bquant[oa]s\b"),
        ("duration", r"\bhow long\b"),
        ("time", r"\bwhat time\b|\bqué hora\b|\bque horas\b"),
        ("email", r"\be-mail\b"),
        ("word", r"\b(?:who|quién|quem)\b"),
        ("date", r"\b(?:when|cu[aá]ndo|quando)\b"),
    )
    for kind, pattern in phrases:
        if re.search(pattern, question, re.I):
            return kind
    any_value = {
        "code",
        "password",
        "pin",
        "token",
        "key",
        "id",
        "identifier",
        "serial",
        "reference",
        "value",
    }
    for before, word in reversed(list(zip(["", *head], head, strict=False))):
        for kind, known in _KINDS:
            if word in known.split() or word.removesuffix("s") in known.split():
                return "any" if kind == "number" and before in _IDENTIFYING else kind
        if word in any_value:
            return "any"
    return "any"
