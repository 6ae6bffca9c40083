"""`python -m tests.chaos --seed N --kills 200`: kill -9 at random moments, then hold the record against the
witnesses; prints a table, and exits 1 when anything was lost, doubled, untrue or came back.

Killed are: `rlmscope ask` and the run process of the app, which ask a model server on 127.0.0.1; `rlmscope
ingest` and `ingest --rebuild`; the app's list of runs (drawn by Streamlit's test driver, without its HTTP
server), which takes runs in; deletions. Each is a process of its own, forked after the imports, and all work
on one home at the same time. The witnesses are the server's log of requests and a side file per run that
names each sub-call whose end had been recorded.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.campaign import TARGETS, Campaign, surroundings
from tests.chaos.nursery import Nursery
from tests.chaos.verdict import Verdict, judge
from tests.chaos.witness import Witness
from traces.home import Home


def main() -> int:
    """Parse, run, print."""
    parser = argparse.ArgumentParser("python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument(
        "--lanes", type=int, default=3, help="processes at the same time; default: %(default)s"
    )
    parser.add_argument("--max-seconds", type=float, default=900.0, help="default: %(default)s")
    parser.add_argument("--keep", type=Path, help="a folder for home, logs and side files, which stays")
    chosen = parser.parse_args()
    if chosen.keep is not None:
        chosen.keep.mkdir(parents=True, exist_ok=True)
        return report(chosen.seed, chosen.kills, chosen.keep, chosen.lanes, chosen.max_seconds)
    with tempfile.TemporaryDirectory(prefix="rlmscope-chaos-", ignore_cleanup_errors=True) as folder:
        return report(chosen.seed, chosen.kills, Path(folder), chosen.lanes, chosen.max_seconds)


def report(seed: int, kills: int, folder: Path, lanes: int, max_seconds: float) -> int:
    """Run a campaign in a folder and print its table; the exit code comes back."""
    began = time.monotonic()
    campaign, verdict = run(seed, kills, folder, lanes, max_seconds)
    print(f"seed {seed}, {time.monotonic() - began:.0f} s, {surroundings()}")
    print("\n".join(table(campaign, verdict)))
    for sentence in verdict.why[:40]:
        print(sentence)
    return 1 if any(verdict.wrong.values()) else 0


def run(seed: int, kills: int, folder: Path, lanes: int, max_seconds: float) -> tuple[Campaign, Verdict]:
    """Fire and judge. Too few kills in the time there was is a fault like any other."""
    home = Home.resolve(folder / "home")
    with Witness(folder / "server.jsonl") as server, Nursery() as nursery:
        until = time.monotonic() + max_seconds
        campaign = Campaign(home, folder, server, nursery, seed, kills, until)
        campaign.fire(lanes)
        verdict = judge(campaign)
    short = kills - campaign.kills.total()
    verdict.count("kills that there was no time for", ["the time was over"] * max(0, short))
    return campaign, verdict


def table(campaign: Campaign, verdict: Verdict) -> list[str]:
    """Kills by target, then what was seen, then the faults, which must all be 0."""
    lines = [f"{'killed':<14}{'process':>9}{'group':>9}{'had ended before':>19}"]
    for target in TARGETS:
        kills = (campaign.kills[target, "process"], campaign.kills[target, "group"])
        lines.append(f"{target:<14}{kills[0]:>9}{kills[1]:>9}{campaign.early[target]:>19}")
    lines.append(f"{'together':<14}{campaign.kills.total():>18}")
    lines += [f"{number:>8,}  {what}" for what, number in verdict.seen.items()]
    lines.append("must be 0:")
    lines += [f"{number:>8,}  {what}" for what, number in verdict.wrong.items()]
    return lines


if __name__ == "__main__":
    sys.exit(main())
