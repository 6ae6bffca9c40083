"""Support tickets, one file each, in English (tickets) and Portuguese (pt_chamados).

Obvious wording names the category by a plain word; oblique wording (a chosen share) describes it without one.
"""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

from .common import Corpus, day, labels_with_one_winner, rng_for

OBVIOUS: dict[str, tuple[str, ...]] = {
    "billing": (
        "Question about invoice {n}|The invoice {n} shows {eur}, but our contract says less.",
        "Charged twice|We were charged {eur} twice on {date}. Please look into the second charge.",
        "Refund still missing|You promised a refund of {eur} on {date} and it has not arrived.",
        "Receipt needed|Our bookkeeping needs a receipt for the payment of {eur} made on {date}.",
        "Billing address is wrong|The billing address on document {n} is out of date.",
        "VAT number|Please put our VAT number on invoice {n}; the amount of {eur} is fine.",
    ),
    "login": (
        "Cannot sign in|Since {date} the sign-in page refuses my password.",
        "Password reset|The password reset message never reaches mailbox {n}.",
        "Two-factor code rejected|The two-factor code is refused every time since {date}.",
        "Login loop|After the login I am sent back to the login page again.",
        "Locked out|Our whole team is locked out after changing credentials on {date}.",
        "Log-in on the phone|Log-in works on the desktop but not on device {n}.",
    ),
    "shipping": (
        "Where is my parcel|Parcel {n} should have been here on {date}.",
        "Delivery to the wrong door|The courier left delivery {n} at the neighbouring building.",
        "Tracking does not move|The tracking of shipment {n} has not moved since {date}.",
        "Damaged package|The package {n} came with a torn corner.",
        "Delivery window|Can delivery {n} be moved to {date}?",
        "Shipped without the cables|Shipment {n} left your warehouse without the cables we ordered.",
    ),
    "bug": (
        "Crash on export|The export crashes with code {n} every time.",
        "Error on the report page|The report page shows error {n} since {date}.",
        "App freezes|The app freezes when more than {n} rows are open.",
        "Exception in the log|Our log shows an exception with number {n} each night.",
        "Broken chart|The chart on the start page is broken since {date}.",
        "Bug in the filter|There is a bug in the filter: it drops row {n}.",
    ),
    "feature": (
        "Feature request: dark colours|A feature we miss: darker colours for night work.",
        "Wish: calendar view|Our wish is a calendar view for the {n} tasks we keep.",
        "Suggestion for the table|I suggest a second sort column in the table.",
        "Is this on the roadmap?|Is an offline mode on your roadmap? About {n} of us need it.",
        "Small enhancement|A small enhancement would help: remember the last filter.",
        "We would love a shortcut|We would love a keyboard shortcut for closing a task.",
    ),
    "cancellation": (
        "Cancel our plan|Please cancel our plan {n} by {date}.",
        "Cancellation|This is our cancellation of plan {n}, effective {date}.",
        "Unsubscribe|Please unsubscribe us from the service by {date}.",
        "Termination of plan {n}|We terminate plan {n} with effect from {date}.",
        "Close our account|Please close our account {n} on {date}.",
    ),
}  # fmt: skip
OBLIQUE: dict[str, tuple[str, ...]] = {
    "billing": (
        "Money|The money left us twice this month and nobody can tell me why.",
        "That sum|The sum on the sheet you sent on {date} is not what we agreed.",
        "Too much|We seem to pay more each quarter than the plan says.",
    ),
    "login": (
        "Shut out|Whatever I type on the first page, the door stays shut for me.",
        "Who am I|Since {date} the system says it does not know me any more.",
        "Cannot get in|Three of us cannot get in, the others can.",
    ),
    "shipping": (
        "Nothing here|The box we were promised for {date} has not turned up.",
        "Wrong street|Your driver handed our things to somebody in the next street.",
        "Still waiting|We are still waiting at the gate for what left you on {date}.",
    ),
    "bug": (
        "White page|When I press save, the window just goes white.",
        "Numbers move|The totals change by themselves whenever I scroll.",
        "It hangs|Since {date} nothing happens after the second step.",
    ),
    "feature": (
        "An idea|It would be lovely if the list could be sorted by colour.",
        "Missing something|Other tools let us pin a row at the top; yours does not yet.",
        "For later|Could the screen one day show two months side by side?",
    ),
    "cancellation": (
        "Goodbye|We have decided to part ways at the end of the quarter.",
        "Not going on|After {date} we will not need your service any longer.",
        "Moving on|From {date} another supplier does this for us.",
    ),
}  # fmt: skip
NEUTRAL = (
    "We work with about {n} colleagues in three time zones.",
    "I have written about this once before.",
    "Please answer to the address you have on file.",
    "It is not urgent, but it should be settled this week.",
    "A picture is attached.",
    "Thank you for looking into it.",
    "Our office is closed on Fridays.",
    "My colleague from the night shift sees the same.",
    "",
)
PORTUGUESE: dict[str, tuple[str, ...]] = {
    "cobrança": (
        "Dúvida sobre a fatura {n}|A fatura {n} mostra {brl}, mas o combinado era menos.",
        "Cobrança em dobro|Fomos cobrados duas vezes em {date}: {brl}.",
        "Reembolso atrasado|O reembolso de {brl} prometido em {date} não chegou.",
        "Boleto|Precisamos do boleto de {brl} com outra data.",
    ),
    "acesso": (
        "Senha recusada|Desde {date} a minha senha é recusada.",
        "Sem acesso|Toda a equipe está sem acesso desde {date}.",
        "Login no celular|O login funciona no computador, mas não no aparelho {n}.",
    ),
    "entrega": (
        "Entrega atrasada|A entrega {n} devia ter chegado em {date}.",
        "Pacote danificado|O pacote {n} chegou com um canto rasgado.",
        "Rastreamento parado|O rastreamento {n} não muda desde {date}.",
        "Transportadora|A transportadora deixou a encomenda {n} no prédio ao lado.",
    ),
    "erro": (
        "Erro no relatório|A página do relatório mostra o erro {n} desde {date}.",
        "Aplicativo trava|O aplicativo trava com mais de {n} linhas abertas.",
        "Falha na exportação|A exportação termina com a falha {n}.",
    ),
    "sugestão": (
        "Sugestão|Uma sugestão: cores escuras para o trabalho noturno.",
        "Melhoria na tabela|Uma melhoria útil: uma segunda coluna de ordenação.",
        "Gostaríamos de um atalho|Gostaríamos de um atalho para fechar tarefas.",
    ),
}  # fmt: skip
PORTUGUESE_NEUTRAL = (
    "Somos cerca de {n} colegas em três turnos.",
    "Já escrevi sobre isso uma vez.",
    "Não é urgente, mas deve ficar resolvido esta semana.",
    "Segue uma imagem em anexo.",
    "",
)


def tickets(seed: int, count: int = 200, oblique: float = 0.0) -> Corpus:
    """`count` English tickets, a share of them obliquely worded; the gold is what each is about."""
    rng = rng_for(seed, "tickets")
    labels = labels_with_one_winner(rng, list(OBVIOUS), count)
    veiled = set(rng.sample(range(count), round(oblique * count)))
    corpus = Corpus("tickets", {})
    senders: dict[str, set[str]] = {label: set() for label in OBVIOUS}
    for number, label in enumerate(labels):
        wording = rng.choice((OBLIQUE if number in veiled else OBVIOUS)[label])
        customer = f"C-{rng.randint(1, max(2, count // 4)):04}"
        senders[label].add(customer)
        fields = ("id", "date", "customer", "subject")
        corpus.files[f"ticket_{number + 1:04}.txt"] = _ticket(
            rng, f"T-{number + 1:04}", customer, wording, fields, NEUTRAL
        )
    _ask_tickets(corpus, labels, senders, len(veiled))
    return corpus


def _ask_tickets(corpus: Corpus, labels: list[str], senders: dict[str, set[str]], veiled: int) -> None:
    count = len(labels)
    note = f"{veiled} of {count} tickets are worded obliquely" if veiled else ""
    for label in OBVIOUS:
        corpus.ask(
            "count_label",
            f"How many tickets are about {label}?",
            labels.count(label),
            "number",
            sub_calls=count,
            note=note,
        )
    winner = max(OBVIOUS, key=labels.count)
    question = "What is the most common category of the tickets?"
    corpus.ask("most_common", question, winner, "label", sub_calls=count, note=note)
    rarest = min(OBVIOUS, key=lambda label: (len(senders[label]) < 2, len(senders[label])))
    corpus.ask(
        "pairs",
        f"List all pairs of customers where both have a ticket about {rarest}.",
        [f"({a}, {b})" for a, b in combinations(sorted(senders[rarest]), 2)],
        "list",
        sub_calls=count,
        note=note,
    )
    held = sum("invoice" in text.lower() for text in corpus.files.values())
    corpus.ask("count_text", "How many tickets mention invoice?", held, "number", sub_calls=0)
    corpus.ask("count", "How many tickets are there?", count, "number", sub_calls=0)


def _ticket(
    rng: random.Random,
    ident: str,
    customer: str,
    wording: str,
    fields: tuple[str, ...],
    neutral: tuple[str, ...],
) -> str:
    filler: dict[str, Any] = {
        "n": rng.randint(100, 9999),
        "date": day(rng, 2026),
        "eur": f"EUR {rng.randint(20, 4000)}.{rng.randint(0, 99):02}",
        "brl": f"R$ {rng.randint(20, 4000)},{rng.randint(0, 99):02}",
    }
    subject, body = (part.format(**filler) for part in wording.split("|"))
    more = rng.sample(neutral, 2)
    closing = " ".join(s.format(n=rng.randint(3, 90)) for s in more if s)
    head = "\n".join(
        f"{f}: {v}" for f, v in zip(fields, (ident, day(rng, 2026), customer, subject), strict=True)
    )
    return f"{head}\n\n{body} {closing}".rstrip() + "\n"


def pt_chamados(seed: int, count: int = 60) -> Corpus:
    """Portuguese tickets with obvious wording."""
    rng = rng_for(seed, "pt_chamados")
    labels = labels_with_one_winner(rng, list(PORTUGUESE), count)
    corpus = Corpus("pt_chamados", {})
    for number, label in enumerate(labels):
        wording = rng.choice(PORTUGUESE[label])
        customer = f"C-{rng.randint(1, 30):04}"
        fields = ("id", "data", "cliente", "assunto")
        text = _ticket(rng, f"CH-{number + 1:04}", customer, wording, fields, PORTUGUESE_NEUTRAL)
        corpus.files[f"chamado_{number + 1:04}.txt"] = text
    for label in PORTUGUESE:
        question = f"Quantos chamados são sobre {label}?"
        corpus.ask("count_label", question, labels.count(label), "number", sub_calls=count, language="pt")
    winner = max(PORTUGUESE, key=labels.count)
    question = "Qual é a categoria mais comum dos chamados?"
    corpus.ask("most_common", question, winner, "label", sub_calls=count, language="pt")
    held = sum("fatura" in text.lower() for text in corpus.files.values())
    corpus.ask("count_text", "Quantos chamados mencionam fatura?", held, "number", sub_calls=0, language="pt")
    return corpus
