"""The cells that `demo/root` writes, as text. `@name@` is replaced by a Python literal.

Each cell is ordinary code over the names of the REPL. A cell that finds the answer prints it on lines
`ANSWER:`, `CONFIDENCE:`, `NOTE:` (JSON values), which the root reads back; the last such lines count.
"""

from __future__ import annotations

import re
from typing import Any, Final

EXPLORE: Final = """\
print(len(documents), "documents,", sum(len(d) for d in documents), "characters")
for document in documents[:3]:
    print(document.name, len(document), repr(document[:80]))
"""

# Sets `records`: one per document, or the parts of the only document.
RECORDS: Final = r"""
import re

def records_of(documents):
    # several documents: each is a record; one: JSON lines, table rows, blocks or lines of it
    if len(documents) != 1:
        return [d for d in documents if d.strip()]
    text = documents[0]
    if text.name.lower().endswith((".csv", ".tsv")):
        return [text[m.start():m.end()] for m in re.finditer(r'(?:[^"\n]|"[^"]*")+', text)][1:]
    if not text.lstrip().startswith("{") and len(re.findall(r"\S[ \t]*\n[ \t]*\n\s*\S", text)) > 1:
        blocks = re.finditer(r"\S.*(?:\n[ \t]*\S.*)*", text)
        return [text[m.start():m.end()] for m in blocks]
    return [text[m.start():m.end()] for m in re.finditer(r"[^\n]*\S[^\n]*", text)]

records = records_of(documents)
"""

LABELS: Final = (
    RECORDS
    + """\
labels = @labels@
prompt = (
    "Which one label fits this text best? Reply with the label only; "
    "start with UNSURE: if the wording does not make it plain.\\nLabels: " + ", ".join(labels) + "\\nText:"
)
replies = llm_batch([prompt] * len(records), records)
print(len(records), "records,", sum(not r for r in replies), "failed,", [str(r) for r in replies[:5]])
"""
)

_READ_LABELS: Final = """\
found, unsure, failed, odd = [], 0, 0, 0
for reply in replies:
    label = reply.removeprefix("UNSURE:").strip().lower().rstrip(".") if reply else ""
    failed += not reply
    unsure += bool(reply) and reply.startswith("UNSURE:")
    odd += bool(reply) and label not in labels
    found.append(label if label in labels else None)
remarks = []
if unsure:
    remarks.append(f"{unsure} of {len(records)} @noun@ are worded obliquely")
if failed:
    remarks.append(f"{failed} of {len(records)} sub-calls failed")
if odd:
    remarks.append(f"{odd} of {len(records)} replies name no label")
if @unknown@:
    remarks.append("the demo model knows this label by its own words only")
"""

LABELLED: Final = (
    _READ_LABELS
    + """\
result = [record.name for record, label in zip(records, found) if label in @wanted@]
print(len(result), result[:5], "; ".join(remarks) or "nothing unclear")
"""
)

COUNT_LABEL: Final = (
    "from collections import Counter\n\n"
    + _READ_LABELS
    + """\
counts = Counter(label for label in found if label)
total = sum(counts[label] for label in @wanted@)
if @negated@:
    total = len(records) - total
print(dict(counts))
print("TOTAL:", total, "of", len(records), "|", "; ".join(remarks) or "nothing unclear")
"""
)

COMMON_LABEL: Final = (
    "from collections import Counter\nimport json\n\n"
    + _READ_LABELS
    + """\
counts = Counter(label for label in found if label and label != "other")
most = @pick@(counts.values(), default=0)
winners = [label for label in labels if label in counts and counts[label] == most]
if len(winners) > 1:
    remarks.append("tie")
print(dict(counts))
print("ANSWER:", json.dumps(", ".join(winners) or "none", ensure_ascii=False))
if remarks:
    print("CONFIDENCE:", json.dumps("low"))
    print("NOTE:", json.dumps("low confidence: " + "; ".join(remarks), ensure_ascii=False))
"""
)

PAIRS: Final = (
    "from itertools import combinations\n\n"
    + _READ_LABELS
    + """\
# "customer: C-1" at the start of a line, or "customer": "C-1" anywhere
field = re.compile(r'(?im)(?:^[^\\w\\n]*|")@field@\\w*[ \\t"]*[:=][ \\t"]*([^\\s",;}]+)')
owners = {}
nameless = 0
for record, label in zip(records, found):
    who = field.search(record)
    nameless += who is None
    if who and label in @wanted@:
        owners.setdefault(who[1], set()).add(label)
pairs = [f"({a}, {b})" for a, b in combinations(sorted(owners), 2)]
if nameless:
    remarks.append(f"{nameless} of {len(records)} @noun@ name no @field@")
print(len(owners), "with", @wanted@, "->", len(pairs), "pairs;", "; ".join(remarks) or "nothing unclear")
"""
)

_WANTED: Final = """\
import re

wanted = re.compile(@pattern@@flags@)
"""
COUNT_TEXT: Final = {
    "lines": _WANTED
    + "total = sum(1 for d in documents for line in d.splitlines() if wanted.search(line))\n",
    "times": _WANTED + "total = sum(1 for d in documents for _ in wanted.finditer(d))\n",
    "documents": _WANTED + "total = sum(1 for d in documents if wanted.search(d))\n",
    "records": RECORDS + "wanted = re.compile(@pattern@@flags@)\n"
    "total = sum(1 for record in records if wanted.search(record))\n",
}
COUNT_ALL: Final = {
    "lines": "total = sum(len(d.splitlines()) for d in documents)\n",
    "documents": "total = len(documents)\n",
    "records": RECORDS + "total = len(records)\n",
}
SHOW_TOTAL: Final = 'print("TOTAL:", total)\n'

# Names of the documents that hold a pattern.
HOLDING: Final = (
    _WANTED
    + """\
result = [d.name for d in documents if wanted.search(d)]
print(len(result), result[:5])
"""
)

LIST: Final = """\
# pieces overlap a little, so that no value is cut in two
pieces = [d[i : i + 40_200] for d in documents for i in range(0, len(d), 40_000)]
prompt = (
    "List every @what@ in the text, one per line, nothing else. Reply NONE if there is none.\\n"
    "List: @what@\\nText:"
)
replies = llm_batch([prompt] * len(pieces), pieces)
print(len(pieces), "pieces,", sum(not r for r in replies), "failed,", [str(r)[:80] for r in replies[:3]])
"""

LIST_UNION: Final = """\
values = set()
for reply in replies:
    if reply and reply.strip() != "NONE":
        values.update(line.strip() for line in reply.splitlines() if line.strip())
result = sorted(values)
failed = sum(not r for r in replies)
remarks = [f"{failed} of {len(replies)} sub-calls failed"] if failed else []
print(len(result), "different values;", result[:5], "; ".join(remarks))
"""

FIELD: Final = """\
prompt = (
    'Answer from the text only. Reply as: value | "the sentence it stands in". '
    "Reply NONE if the text does not say; start with UNSURE: if it is not plain.\\n"
    "Question: " + @question@ + "\\nText:"
)
replies = llm_batch([prompt] * len(documents), documents)
print(sum(not r for r in replies), "failed,", [str(r)[:80] for r in replies[:3]])
"""

EXTREME: Final = r"""
import json, re

MONTHS = "jan=ene feb=fev mar apr=abr may=mai jun jul aug=ago sep=set oct=out nov dec=dic=dez".split()
DAYS = {"h": 1 / 24, "d": 1, "w": 7, "s": 7, "m": 30, "q": 91, "t": 91, "y": 365, "a": 365}

def size_of(value):
    # something that sorts: a date as yyyymmdd, a duration in days, else the number
    low = value.lower()
    iso = re.search(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})", low)
    named = re.search(
        r"(\d{1,2})?\D{0,6}\b([a-zç]{3})[a-zç]*\.?(?: de)?(?: (\d{1,2})\w*,)? (?:de )?(\d{4})", low
    )
    plain = re.search(r"(\d{1,2})[./](\d{1,2})[./](\d{4})", low)
    if iso:
        return int(iso[1]) * 10_000 + int(iso[2]) * 100 + int(iso[3])
    if plain:
        return int(plain[3]) * 10_000 + int(plain[2]) * 100 + int(plain[1])
    if named:
        month = next((n for n, names in enumerate(MONTHS, 1) if named[2] in names.split("=")), 0)
        return int(named[4]) * 10_000 + month * 100 + int(named[1] or named[3] or 0)
    number = re.search(r"\d[\d.,]*", low)
    if not number:
        return None
    whole, cents = re.match(r"(.*?)(?:[.,](\d{1,2}))?$", number[0].rstrip(".,")).groups()
    size = float(re.sub(r"[.,]", "", whole) + "." + (cents or "0"))
    unit = re.search(
        r"\b(?:day|week|month|year|hour|quarter|d[ií]a|seman|mes|mês|año|ano|hora|trimestre)", low
    )
    return size * DAYS[unit[0][0]] if unit else size

sizes, silent, failed, unsure, units = {}, 0, 0, 0, set()
for document, reply in zip(documents, replies):
    failed += not reply
    value = reply.removeprefix("UNSURE:").strip().partition(" | ")[0] if reply else ""
    size = size_of(value) if value and not value.startswith("NONE") else None
    if size is None:
        silent += bool(reply)
        continue
    unsure += reply.startswith("UNSURE:")
    units.update(re.findall(r"EUR|USD|GBP|CHF|BRL|MXN|[$€£]", value))
    sizes[document.name] = size, value
best = @pick@((size for size, _ in sizes.values()), default=None)
winners = [name for name, (size, _) in sizes.items() if size == best]
counted = {"documents do not say": silent, "sub-calls failed": failed, "values are unsure": unsure}
remarks = [f"{count} of {len(documents)} {what}" for what, count in counted.items() if count]
if len(units) > 1:
    remarks.append("compared across currencies: " + ", ".join(sorted(units)))
if len(winners) > 1:
    remarks.append("tie")
shown = sizes[winners[0]][1] if winners else ""
print(winners[:5], shown)
print("ANSWER:", json.dumps((shown if @value@ else ", ".join(winners)) or "not found", ensure_ascii=False))
if remarks:
    print("CONFIDENCE:", json.dumps("low"))
    print("NOTE:", json.dumps("low confidence: " + "; ".join(remarks), ensure_ascii=False))
"""

SUMMARISE: Final = """\
pieces = [d[i : i + 60_000] for d in documents for i in range(0, len(d), 60_000)]
names = [d.name for d in documents for i in range(0, len(d), 60_000)]
replies = llm_batch(["Summarise the text in two sentences.\\nText:"] * len(pieces), pieces)
print(len(pieces), "pieces,", sum(not r for r in replies), "failed")
"""

SUMMARY_JOIN: Final = """\
failed = sum(not r for r in replies)
remarks = [f"{failed} of {len(replies)} sub-calls failed"] if failed else []
lines = [f"{name}: {reply}" for name, reply in zip(names, replies) if reply]
result = "\\n".join(lines) or "nothing to summarise"
print(len(result), "characters;", "; ".join(remarks) or "no failure")
"""

FILTER: Final = """\
prompt = (
    "Does this hold for the text? Answer yes or no first, then quote the sentence; "
    "start with UNSURE: if it is not plain.\\nQuestion: " + @predicate@ + "\\nText:"
)
replies = llm_batch([prompt] * len(documents), documents)
print(sum(not r for r in replies), "failed,", [str(r)[:60] for r in replies[:3]])
"""

FILTERED: Final = """\
said = [reply.removeprefix("UNSURE:").strip().lower() if reply else "" for reply in replies]
result = [document.name for document, word in zip(documents, said) if word.startswith("yes")]
total = len(result)
remarks = ["yes and no are decided by shared words only"]
failed = sum(not r for r in replies)
if failed:
    remarks.append(f"{failed} of {len(replies)} sub-calls failed")
unsure = sum(1 for r in replies if r and r.startswith("UNSURE:"))
if unsure:
    remarks.append(f"{unsure} of {len(replies)} replies are unsure")
print(total, result[:5])
"""

# Finds the passages that share most rare words with the question; sets `best` and `absent`.
PASSAGES: Final = r"""
import math, re

terms = @terms@  # the question's words, each with a pattern for its forms
weight = @weight@  # what names the thing counts more than the words around it
STEP = 500  # passages of 1,000 characters that overlap by half
hits = {term: set() for term in terms}
for number, document in enumerate(documents):
    low = document.lower()
    if len(low) != len(document):  # a few letters change length: keep the places right
        low = "".join(c if len(c.lower()) != 1 else c.lower() for c in document)
    title = (document.name + " " + document[:100]).lower()
    for term, pattern in terms.items():
        for match in re.finditer(pattern, low):
            hits[term].add((number, match.start() // STEP))
            hits[term].add((number, max(0, match.start() // STEP - 1)))
        if re.search(pattern, title):
            hits[term].update((number, at) for at in range(len(document) // STEP + 1))
passages = sum(len(d) // STEP + 1 for d in documents)
score = {}
for term, places in hits.items():
    for place in places:
        score[place] = score.get(place, 0) + weight.get(term, 1) * math.log(1 + passages / len(places))
best = []
for number, at in sorted(score, key=lambda place: (-score[place], place)):
    if (number, at - 1) not in best and (number, at + 1) not in best:
        best.append((number, at))
    if len(best) == 8:
        break
absent = [term for term in terms if not hits[term]]
"""

LOOKUP: Final = (
    PASSAGES
    + """\
question = @question@
named = @key@
# a question that names nothing plainly: its rarest word stands for the name, if there are passages enough
rare = sorted((len(hits[t]), t) for t in terms if 0 < len(hits[t]) <= passages / 200)
key = named or (rare[0][1] if rare else "")
prompts, snippets = [], []
for number, at in best:
    document = documents[number]
    head = " ".join(document[:100].split())
    prompts.append(
        'Answer from the text only. Reply as: value | "the sentence it stands in". '
        "Reply NONE if the text does not say; start with UNSURE: if it is not plain.\\n"
        f"Question: {question}\\nKey: {key}\\nDocument: {document.name} | {head}\\nText:"
    )
    snippets.append(document[max(0, at * STEP - 300) : at * STEP + 1_300])
replies = llm_batch(prompts, snippets)
print(len(best), "of", passages, "passages asked; nowhere in the corpus:", absent)
print([str(r)[:100] for r in replies])
"""
)

LOOKUP_BEST: Final = """\
import json

sure, unsure = {}, {}
for reply in replies:  # the best passage comes first
    if reply and not reply.startswith("NONE"):
        plain = " | " in reply and not reply.startswith("UNSURE:")
        value, _, quote = reply.removeprefix("UNSURE:").strip().partition(" | ")
        (sure if plain else unsure).setdefault(value.strip(), quote)
remarks = []
found = sure or unsure
if not sure and unsure:
    remarks.append("no passage says it plainly")
    if len(unsure) > 1 or key != named:
        found = {}
if len(sure) > 1:
    remarks.append(f"{len(sure)} different values were found: " + ", ".join(list(sure)[:4]))
if any(not reply for reply in replies):
    remarks.append(f"{sum(not r for r in replies)} of {len(replies)} sub-calls failed")
if found and absent and not named:
    remarks.append("the corpus never says: " + ", ".join(absent))
value = next(iter(found), "not found")
print("QUOTE:", found.get(value, "")[:300])
print("ANSWER:", json.dumps(value, ensure_ascii=False))
if not found:
    print("NOTE:", json.dumps(f"none of the {len(replies)} closest passages says it", ensure_ascii=False))
if remarks:
    print("CONFIDENCE:", json.dumps("low"))
    print("NOTE:", json.dumps("low confidence: " + "; ".join(remarks), ensure_ascii=False))
"""

CLOSEST: Final = (
    "import json\n"
    + PASSAGES
    + """\
text = "The demo model has no plan for this question."
if best:
    number, at = best[0]
    passage = " ".join(documents[number][at * STEP : at * STEP + 1_000].split())[:400]
    text += f" Closest passage, in {documents[number].name}: {passage}"
print("ANSWER:", json.dumps(text, ensure_ascii=False))
print("CONFIDENCE:", json.dumps("low"))
"""
)

FINISH: Final = """\
if remarks:
    answer["content"] = @name@
    answer["confidence"] = "low"
    answer["note"] = "low confidence: " + "; ".join(remarks)
    answer["ready"] = True
else:
    FINAL_VAR(@quoted@)
"""


def fill(template: str, **values: Any) -> str:
    """The template with each `@name@` replaced by the literal of its value (`Raw` text as it is)."""
    return re.sub(r"@([a-z]+)@", lambda m: _literal(values[m[1]]), template).lstrip("\n")


class Raw(str):
    """Text that goes into a cell as it is."""


def _literal(value: Any) -> str:
    return str(value) if isinstance(value, Raw) else repr(value)
