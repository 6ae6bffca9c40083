"""`python -m ui` is the `rlmscope` command."""

from __future__ import annotations

from ui.cli import main

if __name__ == "__main__":
    main()
