"""What the demo model knows about language: its lexicon of labels, function words and stems.

Everything the demo model can recognise stands here in plain dictionaries, so that a reader can see why it
answered as it did. English, Spanish and Portuguese; nothing else.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final


def word_set(text: str) -> frozenset[str]:
    """The words of a list written as text."""
    return frozenset(text.split())


OTHER: Final = "other"

# Group of labels -> label -> beginnings of the words that point to it.
LEXICON: Final[dict[str, dict[str, str]]] = {
    "tickets:en": {
        "billing": "billing billed bill invoice charge refund payment overcharge receipt vat",
        "login": "login log-in sign-in signing-in password locked-out two-factor authenticat credential "
        "passcode",
        "shipping": "shipping shipped shipment parcel delivery deliver courier package tracking warehouse",
        "bug": "bug crash error freeze exception stack-trace glitch broken",
        "feature": "feature suggest wish roadmap enhancement would-love",
        "cancellation": "cancel unsubscribe terminat close-our-account",
    },
    "tickets:es": {
        "facturación": "factura cobro cargo reembolso pago recibo",
        "acceso": "acceso contraseña iniciar-sesión usuario-bloqueado autentic credencial",
        "envío": "envío paquete entrega mensajer seguimiento almacén",
        "error": "error fallo falla excepción cuelga",
        "sugerencia": "sugerencia sugerimos función-nueva mejora nos-gustaría",
    },
    "tickets:pt": {
        "cobrança": "cobrança cobrad fatura pagamento reembolso boleto recibo",
        "acesso": "acesso senha login autentica credenci",
        "entrega": "entrega pacote transportadora encomenda rastreio rastreamento remessa",
        "erro": "erro falha trava travou exceção bug",
        "sugestão": "sugestão sugerimos melhoria funcionalidade-nova gostaríamos",
    },
    "papers:en": {
        "sleep": "sleep insomnia circadian nap drowsi",
        "soil": "soil humus compost tillage topsoil",
        "traffic": "traffic congestion intersection commut roadway",
        "batteries": "batter electrolyte cathode anode lithium",
        "glaciers": "glacier glacial ice-sheet moraine meltwater",
        "pollination": "pollinat bees nectar hive pollen",
    },
}
# Other words a question may use for a label. Words that merely belong to one (a refund) do not name it.
_ALIASES: Final = {
    "bug": "bugs defect defects",
    "login": "logins logging-in signing-in sign-in log-in",
    "shipping": "delivery deliveries shipment shipments",
    "feature": "features feature-request feature-requests new-feature new-features",
    "cancellation": "cancellations cancelling canceling",
    "facturación": "facturacion",
    "envío": "envíos envio envios",
    "error": "errores",
    "sugerencia": "sugerencias",
    "cobrança": "cobranças cobranca",
    "acesso": "acessos",
    "entrega": "entregas",
    "erro": "erros",
    "sugestão": "sugestões sugestao",
    "batteries": "battery",
    "glaciers": "glacier",
    "soil": "soils",
}
_GROUP_NOUNS: Final = {
    "tickets": "ticket request message complaint case chamado mensage solicita solicitud mensaje tique "
    "incidencia",
    "papers": "paper article abstract study studies",
}

FUNCTION_WORDS: Final = word_set(
    """
    a an the this that these those our their your its his her my any some each every all
    is are was were be been being am do does did done has have had will would can could shall should may might
    must of for to in on at by from with without within into onto under over behind inside between among
    across about as per and or but not no nor so than then there here it he she they we you i me us them
    who whom whose which what when where why how much many
    according please tell give find state know show say says return report let
    el la los las un una unos unas lo al del de en con sin por para entre sobre según y o pero es son fue era
    fueron ser está están se le su sus que qué cuál cuáles quién quiénes cuándo cuánto cuánta cuántos cuántas
    dónde cómo hay ha han tiene
    os uma um uns umas ao aos à às da do das dos na nos nas em com sem pelo pela e ou é são foi eram qual
    quais quem quando quanto quanta quantos quantas onde como há tem têm tinha
    """
)
# Words that ask without naming anything: they weigh nothing.
EMPTY_WORDS: Final = word_set(
    """
    value special assigned given exact exactly current currently following called named set stored mentioned
    provided stated listed recorded registered associated linked belong belongs kept used noted written
    corresponding appear appears
    valor especial asignado asignó dado exacto actual guardado mencionado registrado corresponde
    atribuído atribuiu exato atual
    """
)


def tokens(text: str) -> list[str]:
    """The words of a text in lower case; hyphens, underscores and marks separate."""
    return [m.lower() for m in re.findall(r"[^\W_]+", text)]


def content_words(text: str) -> list[str]:
    """The words of a text that are not function words."""
    return [w for w in tokens(re.sub(r"['’]s\b", "", text)) if w not in FUNCTION_WORDS]


def stem(word: str) -> str:
    """A word without its most common ending, never shorter than four letters."""
    for ending in ("ings", "ing", "ied", "ies", "ed", "es", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word


@cache
def _beginnings(group: str, label: str) -> re.Pattern[str]:
    words = (re.escape(w).replace(r"\-", r"[\W_]*") for w in LEXICON[group][label].split())
    return re.compile(r"(?<![^\W_])(?:" + "|".join(words) + ")")


def hits(group: str, label: str, text: str) -> int:
    """How many different words of a label's lexicon begin a word of `text` (in lower case)."""
    return len(set(_beginnings(group, label).findall(text)))


def group_of(labels: list[str]) -> str | None:
    """The lexicon group that knows all these labels, or None."""
    return next((g for g, known in LEXICON.items() if all(label in known for label in labels)), None)


def label_named(phrase: str, language: str) -> tuple[str, str] | None:
    """(group, label) that a question means by `phrase`, preferring groups of the question's language."""
    wanted = "-".join(phrase.lower().split())
    for group in sorted(LEXICON, key=lambda g: not g.endswith(language)):
        for label in LEXICON[group]:
            if wanted == label or wanted in _ALIASES.get(label, "").split():
                return group, label
    return None


def group_for_noun(noun: str, language: str) -> str | None:
    """The group of labels for what a question calls its records ("tickets", "papers"), or None."""
    for name, nouns in _GROUP_NOUNS.items():
        group = f"{name}:{language}"
        if group in LEXICON and any(noun.lower().startswith(n) for n in nouns.split()):
            return group
    return None


def language_of(question: str) -> str:
    """`en`, `es` or `pt`, by a few words that only one of them has."""
    if "¿" in question:
        return "es"
    words = set(tokens(question))
    known = {
        "en": "the of is are what which how many who when where for in to and all was list",
        "es": "el los las del una cuál cuáles qué cuántos cuántas quién cuándo dónde y es según hay",
        "pt": "o os um uma da das do dos na no em qual quais quantos quantas quem são é não há e",
    }
    return max(known, key=lambda language: len(words & set(known[language].split())))
