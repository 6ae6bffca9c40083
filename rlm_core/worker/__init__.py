"""What runs inside the sandbox: one process per (child) run that executes cells and speaks frames.

Only the standard library and the light modules of `rlm_core` are imported here, nothing heavy before a cell
asks. What the worker says is never believed about cost, time or counts; it is recorded "as reported by the
worker".
"""
