"""What a fragment drew reaches the browser as a whole, or not at all."""

from __future__ import annotations

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import app_session
from streamlit.runtime.forward_msg_cache import create_reference_msg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

from ui.web import message_queue
from ui.web.message_queue import WholeQueue

FRAGMENT = "f"


def element(place: int, words: str, fragment: str = FRAGMENT) -> ForwardMsg:
    """A text that a fragment drew."""
    message = ForwardMsg()
    message.metadata.delta_path.extend([0, place])
    message.delta.fragment_id = fragment
    message.delta.new_element.text.body = words
    return message


def drawn() -> list[ForwardMsg]:
    """A text, and a large element that the browser has already, so that it is only referred to."""
    large = element(1, "large")
    large.hash = "abc"
    return [element(0, "small"), create_reference_msg(large)]


def waiting(queue: ForwardMsgQueue) -> list[ForwardMsg]:
    for message in drawn():
        queue.enqueue(message)
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=[FRAGMENT])  # it runs again
    queue.enqueue(element(0, "again"))
    return queue.flush()


def test_what_a_fragment_drew_stays_whole_when_it_runs_again_before_that_was_sent() -> None:
    assert waiting(WholeQueue()) == [*drawn(), element(0, "again")]


def test_streamlit_sends_references_alone_so_the_queue_of_ours_is_needed() -> None:
    assert waiting(ForwardMsgQueue()) == [drawn()[1], element(0, "again")]


def test_a_run_of_the_whole_page_drops_what_was_not_sent() -> None:
    queue = WholeQueue()
    for message in drawn():
        queue.enqueue(message)
    queue.clear(retain_lifecycle_msgs=True)
    assert queue.is_empty()


def test_sessions_have_that_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_session, "ForwardMsgQueue", ForwardMsgQueue)  # as it was, afterwards
    message_queue.install()
    assert "ForwardMsgQueue" in app_session.AppSession.__init__.__code__.co_names
    assert vars(app_session)["ForwardMsgQueue"] is WholeQueue
