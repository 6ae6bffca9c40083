"""What pages that run in this process (AppTest) share: the app's options, and one look for components."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def _pages_of_the_app() -> Iterator[None]:
    """Streamlit as the app sets it up; which components are installed is looked up once.

    Every AppTest reads the metadata of all installed packages, which takes five times as long as a page.
    """
    from streamlit import config
    from streamlit.components.v2 import manifest_scanner

    with pytest.MonkeyPatch.context() as patch:
        known = functools.cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", known)
        config.set_option("runner.magicEnabled", False)
        yield
