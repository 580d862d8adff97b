"""Just enough of PostgreSQL's protocol: a text goes out as it is, rows come back as texts."""

import socket
import struct


class Refused(Exception):
    """The server answered an error."""


class Postgres:
    def __init__(self, path, user="tester", database="postgres"):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        for _ in range(100):
            try:
                self.socket.connect(path)
                break
            except ConnectionRefusedError:
                continue
        self.stream = self.socket.makefile("rb")
        start = struct.pack("!i", 196608) + f"user\0{user}\0database\0{database}\0\0".encode()
        self.socket.sendall(struct.pack("!i", len(start) + 4) + start)
        self._until_ready()

    def _until_ready(self):
        rows, error = [], None
        while True:
            kind = self.stream.read(1)
            if not kind:
                raise SystemExit("the server closed the connection")
            (length,) = struct.unpack("!i", self.stream.read(4))
            body = self.stream.read(length - 4)
            if kind == b"D":
                rows.append(self._row(body))
            elif kind == b"E":
                fields = dict((part[:1], part[1:].decode(errors="replace")) for part in body.split(b"\0") if part)
                error = f"{fields.get(b'C')} {fields.get(b'M')}"
            elif kind == b"G":
                # COPY FROM STDIN waits for data: there is none.
                self.socket.sendall(b"f" + struct.pack("!i", 9) + b"none\0")
            elif kind == b"Z":
                if error:
                    raise Refused(error)
                return rows

    @staticmethod
    def _row(body):
        (count,) = struct.unpack("!h", body[:2])
        at, row = 2, []
        for _ in range(count):
            (length,) = struct.unpack("!i", body[at : at + 4])
            at += 4
            if length < 0:
                row.append(None)
            else:
                row.append(body[at : at + length].decode(errors="replace"))
                at += length
        return row

    def query(self, text):
        body = text.encode() + b"\0"
        self.socket.sendall(b"Q" + struct.pack("!i", len(body) + 4) + body)
        return self._until_ready()
