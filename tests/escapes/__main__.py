"""`python -m tests.escapes`: run the attempts and print the table; exit code 1 when one got through."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.escapes.attempts import ATTEMPTS, BY_ID, LEVELS
from tests.escapes.players import USERS, cannot_play
from tests.escapes.table import failures, markdown, run, text


def main() -> int:
    """Parse, run, print."""
    parser = argparse.ArgumentParser("python -m tests.escapes", description=__doc__)
    parser.add_argument("--levels", default=",".join(LEVELS), help="default: all of %(default)s")
    parser.add_argument("--users", default=",".join(USERS), help="default: %(default)s")
    parser.add_argument("--only", default="", help="ids, for example E05,E17; default: all")
    parser.add_argument("--docs", type=Path, help="rewrite the table in this Markdown file")
    parser.add_argument("--jobs", type=int, default=2, help="stages at the same time; default: %(default)s")
    chosen = parser.parse_args()
    levels, users = chosen.levels.split(","), chosen.users.split(",")
    names = set(filter(None, chosen.only.split(",")))
    unknown = sorted((set(levels) - set(LEVELS)) | (set(users) - set(USERS)) | (names - set(BY_ID)))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}")
    for user in list(users):
        if why := cannot_play(user):
            print(f"not run as {user}: {why}")
            users.remove(user)
    attempts = [BY_ID[name] for name in chosen.only.split(",")] if chosen.only else list(ATTEMPTS)
    results = run(attempts, levels, users, lambda line: print(line, flush=True), chosen.jobs)
    print(text(results, attempts, levels, users))
    not_run = {result.not_run for result in results.values() if result.not_run}
    for why in sorted(not_run):
        print(f"not run: {why}")
    wrong = failures(results)
    for result in wrong:
        print(f"{result.attempt.id} {result.level} {result.user}: {result.word}: {result.why}")
    if chosen.docs:
        write(chosen.docs, markdown(results, attempts, levels, users))
    return 1 if wrong else 0


def write(page: Path, table: str) -> None:
    """Put the table between the two marks of the page."""
    begin, end = "<!-- table: python3 bootstrap.py escapes -->", "<!-- end of the table -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    page.write_text(f"{before}{begin}\n\n{table}\n\n{end}{rest.partition(end)[2]}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
