"""Images through the command line, LiteLLM and a model server on 127.0.0.1: sent, on record, played again."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from tests.support.command import rlmscope
from tests.support.loopback import Loopback, Messages, Reply, Script
from traces.home import Home
from traces.reading import load_run
from traces.span_images import image_file

pytestmark = pytest.mark.full
MODELS = ("--root", "openai/root-model", "--sub", "openai/gpt-3.5-turbo")
CODE = """```python
chart, scan = documents["chart.png"], documents["scan.pdf"]
replies = llm_batch(["colour?"] * 3, images=[chart, scan.page_image(2), None])
FINAL(str([*replies, llm_query("colour?", chart).kind]))
```"""


def root(messages: Messages) -> str:
    """Shows what the opening message says can be shown."""
    assert "images=document.images" in str(messages) and "document.page_image(n)" in str(messages)
    return CODE


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback(Script(root=root, sub=lambda _: Reply("red", usage={"prompt_tokens": 800}))) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "given"
    made.mkdir()
    Image.new("RGB", (80, 60), "red").save(made / "chart.png")
    pages = [Image.new("RGB", (80, 60), colour) for colour in ("green", "blue")]
    pages[0].save(made / "scan.pdf", save_all=True, append_images=pages[1:])
    return made


def shown(body: dict[str, Messages]) -> list[tuple[int, int, int]]:
    """The colour in the middle of each image that a request holds."""
    colours: list[tuple[int, int, int]] = []
    for part in body["messages"][-1]["content"]:
        if isinstance(part, dict) and part["type"] == "image_url":
            data = base64.b64decode(part["image_url"]["url"].partition(",")[2])
            image = Image.open(io.BytesIO(data)).convert("RGB")
            colours.append(image.getpixel((image.width // 2, image.height // 2)))  # type: ignore[arg-type]
    return colours


def test_images_are_sent_recorded_and_played_again_without_a_model(
    server: Loopback, folder: Path, tmp_path: Path
) -> None:
    home, env = (
        tmp_path / "home",
        {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-test-0123456789"},
    )
    said = rlmscope("ask", "Which colour?", folder, *MODELS, "--home", home, env=env)
    assert said["answer"] == "['red', 'red', 'red', 'image']"
    assert any("by LiteLLM's table it takes none" in notice for notice in said["notices"])
    sent = [shown(r["body"]) for r in server.requests if r["body"]["model"] == "gpt-3.5-turbo"]
    (red,), (blue,) = sorted(filter(None, sent), reverse=True)
    assert red == (255, 0, 0) and blue[2] > 200 and len(sent) == 3

    told = rlmscope("show", said["run_id"], "--home", home)
    calls = [span["span_id"] for span in told["spans"] if span["kind"] == "sub_call"]
    detail = rlmscope("span", said["run_id"], calls[1], "--home", home)
    [image] = detail["images"]
    assert (image["name"], image["document"], image["page"]) == ("scan.pdf, page 2", 1, 2)
    stored = image_file(load_run(Home(home), said["run_id"]), image["sha256"])
    assert stored is not None and stored[0] == image["mime"] and len(stored[1]) == image["bytes"]
    assert "Pictures shown to sub-calls: 2." in " ".join(told["coverage"]["unknown"])

    before = len(server.requests)
    again = rlmscope("replay", said["run_id"], "--home", home)
    assert (again["answer"], again["hits"], again["live_calls"]) == (said["answer"], 3, 0)
    assert len(server.requests) == before
