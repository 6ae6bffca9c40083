"""What people use: the command line and the app. No SQL and no engine logic lives here.

Kept empty of imports, so that `rlmscope --help` costs no more than click.
"""

INTERRUPTED = 130  # exit code after Ctrl-C outside of a run, as of every program: 128 + SIGINT
