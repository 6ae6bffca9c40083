"""What waits to be sent to a browser, kept whole where Streamlit would keep only a part of it."""

from __future__ import annotations

from streamlit.runtime import app_session
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue


class WholeQueue(ForwardMsgQueue):
    """Sends all that a fragment drew, also when the fragment runs again before that has left.

    Streamlit takes out of its queue what the run before drew, but not the elements that it only refers to
    because the browser has them (`ref_hash`): a reference does not say of which fragment it is. Those arrive
    alone then, at places that are not there, and the page is dead. Nothing is lost by sending the whole.
    """

    def clear(
        self, retain_lifecycle_msgs: bool = False, fragment_ids_this_run: list[str] | None = None
    ) -> None:
        """Empty the queue, as Streamlit does; for a run of fragments only end what it puts together."""
        super().clear(retain_lifecycle_msgs, None if fragment_ids_this_run is None else [])


def install() -> None:
    """Sessions that begin from now on in this process have such a queue."""
    vars(app_session)["ForwardMsgQueue"] = WholeQueue
