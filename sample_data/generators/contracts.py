"""Contracts against a template: contracts (English) and es_contratos (Spanish). Parties are company codes."""

from __future__ import annotations

import random

from .common import Corpus, day, rng_for

TEMPLATE = """\
# Services agreement {ident}

Between provider {provider} and client {client}.

## 1. Term
This agreement takes effect on {start}. {renewal}

## 2. Fees
The client pays an annual fee of EUR {fee:,}. Invoices are due within {due} days.

## 3. Notice
Either party may end this agreement with a notice period of {notice} days.

## 4. Liability
{liability}

## 5. Contact
Notices are sent by e-mail to {email}.

## 6. Law
{law}
{more}"""
RENEWS = "It renews automatically for further periods of 12 months."
ENDS = "It does not renew automatically and ends after 24 months."
CAPPED = "The liability cap of each party is EUR {cap:,} per year."
LAW = "The law of the provider's seat applies."
DEVIATIONS = (
    "## 7. Exclusivity\nThe client buys such services from the provider only.",
    "## 7. Audit\nThe client may audit the provider once a year, announced ten days ahead.",
    "## 7. Price review\nThe provider may review its prices once a year by at most four percent.",
    "## 7. Data\nAll client data is erased sixty days after the end of this agreement.",
)
DESKS = ("legal", "notices", "contracts")
HOSTS = ("alder", "birch", "cedar", "maple")
OTHER_LAW = "The law of the client's seat applies, and its courts decide."


def contracts(seed: int, count: int = 30) -> Corpus:
    """Contracts with a fee, notice period, effective date, liability cap, e-mail, renewal; some deviate."""
    rng = rng_for(seed, "contracts")
    corpus = Corpus("contracts", {})
    rows = _rows(rng, count)
    deviating = []
    for row in rows:
        extra = rng.random() < 0.3
        other_law = rng.random() < 0.2
        law = OTHER_LAW if other_law else LAW
        more = "\n" + rng.choice(DEVIATIONS) + "\n" if extra else ""
        text = TEMPLATE.format(
            **row,
            renewal=RENEWS if row["renews"] else ENDS,
            liability=CAPPED.format(cap=row["cap"]),
            law=law,
            more=more,
        )
        corpus.files[f"{str(row['ident']).lower()}.md"] = text
        if extra or other_law:
            deviating.append(row["ident"])
    blank = {"ident": "[number]", "provider": "[code]", "client": "[code]", "start": "[date]", "due": "30",
             "notice": "90", "email": "[address]"}  # fmt: skip
    template = TEMPLATE.replace("{fee:,}", "[amount]").format(
        **blank, renewal=RENEWS, liability=CAPPED.replace("{cap:,}", "[amount]"), law=LAW, more=""
    )
    corpus.beside["contracts_template.md"] = template
    _ask(corpus, rows, deviating, rng)
    return corpus


def _rows(rng: random.Random, count: int) -> list[dict[str, object]]:
    """The values of each contract; fees, caps and dates are all different, so that each extreme is one
    contract.
    """
    fees = rng.sample(range(12_000, 480_000, 500), count)
    caps = rng.sample(range(50_000, 2_000_000, 5_000), count)
    starts: list[str] = []
    while len(starts) < count:
        start = day(rng, rng.randint(2021, 2026))
        if start not in starts:
            starts.append(start)
    return [
        {
            "ident": f"K-{number + 1:03}",
            "provider": f"PRV-{rng.randint(10, 99)}",
            "client": f"CLT-{rng.randint(100, 999)}",
            "start": starts[number],
            "renews": rng.random() < 0.6,
            "fee": fees[number],
            "due": rng.choice((14, 30, 30, 30, 45, 60)),
            "notice": rng.choice((30, 60, 90, 90, 90, 120, 180)),
            "cap": caps[number],
            "email": f"{rng.choice(DESKS)}.{number + 1:02}@{rng.choice(HOSTS)}.example",
        }
        for number in range(count)
    ]


def _ask(corpus: Corpus, rows: list[dict[str, object]], deviating: list[object], rng: random.Random) -> None:
    count = len(rows)
    one = rng.choice(rows)
    corpus.ask("lookup", f"What is the annual fee of contract {one['ident']}?", f"EUR {one['fee']:,}", "text")
    one = rng.choice(rows)
    corpus.ask(
        "lookup", f"What is the notice period in contract {one['ident']}?", f"{one['notice']} days", "text"
    )
    one = rng.choice(rows)
    corpus.ask("lookup", f"When does contract {one['ident']} take effect?", one["start"], "text")
    one = rng.choice(rows)
    corpus.ask("lookup", f"What is the contact e-mail of contract {one['ident']}?", one["email"], "text")
    one = rng.choice(rows)
    corpus.ask(
        "lookup", f"What is the liability cap of contract {one['ident']}?", f"EUR {one['cap']:,}", "text"
    )
    for wording, field, pick in (
        ("highest annual fee", "fee", max),
        ("lowest annual fee", "fee", min),
        ("highest liability cap", "cap", max),
        ("latest effective date", "start", max),
        ("earliest effective date", "start", min),
    ):
        best = pick(rows, key=lambda row: row[field])  # type: ignore[arg-type, return-value]
        name = f"{str(best['ident']).lower()}.md"
        corpus.ask("extreme", f"Which contract has the {wording}?", name, "text", sub_calls=count)
    emails = sorted(str(row["email"]) for row in rows)
    corpus.ask("list", "List all e-mail addresses in the contracts.", emails, "list", sub_calls=count)
    renewing = [f"{str(row['ident']).lower()}.md" for row in rows if row["renews"]]
    corpus.ask("filter", "Which contracts renew automatically?", renewing, "list", sub_calls=count)
    corpus.ask("filter", "How many contracts renew automatically?", len(renewing), "number", sub_calls=count)
    held = sum("audit" in text.lower() for text in corpus.files.values())
    corpus.ask("count_text", "How many documents contain audit?", held, "number", sub_calls=0)
    corpus.ask("summarise", "Summarise the contracts.", None, "none", sub_calls=count)
    names = [f"{str(ident).lower()}.md" for ident in deviating]
    note = "beyond the demo model: compare each contract with contracts_template.md (clauses, not the values)"
    corpus.ask(
        "open", "Which contracts deviate from the template in their clauses?", names, "list", note=note
    )


SPANISH = """\
# Contrato de servicios {ident}

Entre el proveedor {provider} y el cliente {client}.

## 1. Vigencia
Este contrato entra en vigor el {start}. {renewal}

## 2. Tarifa
El cliente paga una tarifa anual de {fee} EUR. Las facturas vencen a los 30 días.

## 3. Preaviso
Cualquiera de las partes puede terminar este contrato con un preaviso de {notice} días.

## 4. Responsabilidad
El límite de responsabilidad de cada parte es de {cap} EUR por año.

## 5. Contacto
Las notificaciones se envían por correo electrónico a {email}.
"""
MONTHS = [
    "enero",
    "febrero",
    "marzo",
    "abril",
    "mayo",
    "junio",
    "julio",
    "agosto",
    "septiembre",
    "octubre",
    "noviembre",
    "diciembre",
]


def es_contratos(seed: int, count: int = 12) -> Corpus:
    """Spanish contracts, with dates and amounts written the Spanish way."""
    rng = rng_for(seed, "es_contratos")
    corpus = Corpus("es_contratos", {})
    rows = _rows(rng, count)
    for row in rows:
        year, month, date = str(row["start"]).split("-")
        row["start_es"] = f"{int(date)} de {MONTHS[int(month) - 1]} de {year}"
        spanish = {
            **row,
            "start": row["start_es"],
            "fee": _thousands(row["fee"]),
            "cap": _thousands(row["cap"]),
            "renewal": "Se renueva automáticamente cada año."
            if row["renews"]
            else "No se renueva automáticamente.",
        }
        corpus.files[f"{str(row['ident']).lower()}.md"] = SPANISH.format(**spanish)
    _ask_spanish(corpus, rows, rng)
    return corpus


def _thousands(amount: object) -> str:
    return f"{amount:,}".replace(",", ".")


def _ask_spanish(corpus: Corpus, rows: list[dict[str, object]], rng: random.Random) -> None:
    count, es = len(rows), "es"
    one = rng.choice(rows)
    fee = f"{_thousands(one['fee'])} EUR"
    corpus.ask("lookup", f"¿Cuál es la tarifa anual del contrato {one['ident']}?", fee, "text", language=es)
    one = rng.choice(rows)
    corpus.ask(
        "lookup", f"¿Cuándo entra en vigor el contrato {one['ident']}?", one["start_es"], "text", language=es
    )
    best = max(rows, key=lambda row: int(str(row["fee"])))
    name = f"{str(best['ident']).lower()}.md"
    question = "¿Qué contrato tiene la tarifa anual más alta?"
    corpus.ask("extreme", question, name, "text", sub_calls=count, language=es)
    emails = sorted(str(row["email"]) for row in rows)
    question = "Lista todos los correos electrónicos de los contratos."
    corpus.ask("list", question, emails, "list", sub_calls=count, language=es)
    held = sum("no se renueva" in text.lower() for text in corpus.files.values())
    corpus.ask(
        "count_text",
        "¿Cuántos documentos contienen 'No se renueva'?",
        held,
        "number",
        sub_calls=0,
        language=es,
    )
