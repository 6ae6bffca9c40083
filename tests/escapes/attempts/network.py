"""Reaching others: sockets of every kind."""

from __future__ import annotations

from typing import Final

from tests.escapes.attempts.model import Attempt, blocked

ATTEMPTS: Final[tuple[Attempt, ...]] = (
    blocked(
        "E17",
        "a TCP connection to this machine",
        "network",
        """
        import socket
        line = socket.create_connection(('127.0.0.1', PORT), 2)
        print('ESCAPED')
        line.close()
        """,
    ),
    blocked(
        "E18",
        "a datagram to this machine",
        "network",
        """
        import socket
        line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        line.sendto(b'out', ('127.0.0.1', UPORT))
        line.close()
        """,
    ),
    blocked(
        "E19",
        "a name server, asked by the resolver of the C library",
        "network",
        r"""
        import ctypes
        libc = ctypes.CDLL(None)
        libc.__res_init()
        libc.__res_state.restype = ctypes.c_void_p
        # struct __res_state: retrans, retry, options (8 bytes), nscount, then the addresses of the servers
        state = libc.__res_state()
        server = (2).to_bytes(2, 'little') + UPORT.to_bytes(2, 'big') + bytes([127, 0, 0, 1]) + bytes(8)
        ctypes.memmove(state, (1).to_bytes(4, 'little') * 2, 8)
        ctypes.memmove(state + 16, (1).to_bytes(4, 'little') + server, 20)
        answer = ctypes.create_string_buffer(512)
        print(libc.res_query(b'name.invalid', 1, 1, answer, 512))
        """,
    ),
    blocked(
        "E20",
        "an abstract unix socket of the machine",
        "network",
        r"""
        import socket
        line = socket.socket(socket.AF_UNIX)
        line.connect('\0' + ABSTRACT)
        print('ESCAPED')
        line.close()
        """,
    ),
    blocked(
        "E21",
        "a unix socket with a path",
        "network",
        """
        import socket
        line = socket.socket(socket.AF_UNIX)
        line.connect(USOCK)
        print('ESCAPED')
        line.close()
        """,
    ),
    blocked(
        "E22",
        "sockets of rarer kinds: raw, packet, netlink, virtual machines",
        "network",
        """
        import socket
        for family, kind, protocol in ((2, 3, 1), (17, 3, 0), (16, 3, 0), (40, 1, 0)):
            try:
                socket.socket(family, kind, protocol).close()
                print('ESCAPED', family)
            except OSError as error:
                print(error)
        """,
    ),
    blocked(
        "E23",
        "a port of its own that others can connect to",
        "network",
        """
        import socket
        port = socket.socket()
        port.bind(('127.0.0.1', LPORT))
        port.listen(1)
        """,
        fresh=True,
    ),
)
