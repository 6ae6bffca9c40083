"""Against the worker's own code and the protocol with the engine."""

from __future__ import annotations

from typing import Any, Final

from tests.escapes.attempts.model import Attempt, blocked, contained

_TO_ALL: Final = """
import os, struct
def to_all(data):
    for number in range(3, 40):
        try:
            os.write(number, data)
        except OSError:
            pass
"""


def _frames(id: str, title: str, code: str, **more: Any) -> Attempt:
    return contained(id, title, _TO_ALL + code, **more)


ATTEMPTS: Final[tuple[Attempt, ...]] = (
    contained("E82", "llm_query deleted", "del llm_query", state="keep"),
    contained(
        "E83",
        "llm_query and builtins replaced or deleted",
        """
        import builtins
        llm_query = None
        builtins.print = builtins.len = builtins.open = None
        del builtins.Exception, builtins.BaseException, builtins.type
        """,
        state="keep",
    ),
    contained("E84", "no builtins at all", "__builtins__ = {}", state="keep"),
    contained(
        "E85",
        "standard output replaced by an object that ends the program",
        """
        import sys
        class Out:
            def write(self, text): raise SystemExit
        sys.stdout = sys.stderr = Out()
        sys.__stdout__ = None
        """,
        state="keep",
    ),
    contained(
        "E86",
        "a value that ends the program when it is looked at",
        """
        class Value:
            def __repr__(self): raise SystemExit
            def __len__(self): raise KeyboardInterrupt
            def __bool__(self): raise MemoryError
        value = Value()
        value
        """,
        state="keep",
    ),
    contained(
        "E87",
        "the functions of the standard library that frames are written with",
        """
        import json, os, struct
        json.dumps = json.loads = os.write = os.read = struct.pack = lambda *a, **k: 1 / 0
        """,
    ),
    contained(
        "E88",
        "the names of the worker's own modules",
        """
        import sys
        frame = sys._getframe()
        while frame.f_back:
            frame = frame.f_back
            frame.f_globals.clear()
        """,
    ),
    _frames("E89", "bytes that are no frame, on every descriptor", "to_all(b'\\xff' * 64)"),
    _frames("E90", "a frame that announces 4 GB", "to_all(struct.pack('<I', 0xfffffff0))"),
    _frames(
        "E91",
        "a frame that never ends",
        "import time\nto_all(struct.pack('<I', 100) + b'x')\ntime.sleep(30)",
        seconds=1,
        heavy=True,
    ),
    _frames(
        "E92",
        "a pickle where a frame belongs, with a command inside",
        """
import pickle
class Command:
    def __reduce__(self): return os.system, (f'touch {CANARIES}/by_pickle',)
data = pickle.dumps(Command())
to_all(struct.pack('<I', len(data)) + data)
""",
    ),
    _frames("E93", "JSON nested 200,000 deep", "to_all(struct.pack('<I', 200_000) + b'[' * 200_000)"),
    _frames(
        "E94",
        "a forged report on this cell, of another form",
        """
import json
data = json.dumps({'t': 'done', 'n': CELL, 'stdout': {'a': 1}, 'chars': 0, 'vars': []}).encode()
to_all(struct.pack('<I', len(data)) + data)
""",
    ),
    blocked(
        "E95",
        "a forged call for what the engine does not offer",
        "engine",
        """
        channel = llm_query.__self__._channel
        slot = {'p': ['RLMSCOPE_MARK']}
        reply = channel.ask(lambda call: [
            {'t': 'open', 'id': call, 'op': 'environment', 'n': 1, 'batch': False, 'line': 0},
            {'t': 'items', 'id': call, 'items': [slot]},
            {'t': 'close', 'id': call},
        ])
        print('ESCAPED', reply)
        """,
        state="any",
        fresh=True,
        shown="no",
        why="the engine offers no such call at any level; it ends a worker that asks",
    ),
    contained(
        "E96",
        "a prompt of 100 MB, and one that is no text",
        """
        print(type(llm_query('x' * (100 << 20))).__name__)
        try:
            llm_query(object())
        except TypeError as error:
            print(error)
        """,
        state="keep",
        fresh=True,
        seconds=20,
        heavy=True,
    ),
    contained(
        "E97", "20,000 calls in a loop", "for _ in range(20_000): llm_query('a')", seconds=60, heavy=True
    ),
    contained("E98", "a batch of 100,000 prompts", "llm_batch(['a'] * 100_000)", state="keep"),
    contained(
        "E99",
        "the replies for others, read away",
        """
        import os
        for number in range(3, 20):
            try:
                os.set_blocking(number, False)
                print(os.read(number, 10))
            except OSError:
                pass
        """,
    ),
)
