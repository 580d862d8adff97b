"""The side of Interlock: its home, the daemon that hooks start, the operator's calls, and the gateway an agent uses."""

import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import time


class _Socket(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("interlock", timeout=900)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Home:
    """A home of its own. Hooks start the daemon by themselves; whoever ends the test ends it by its process id."""

    def __init__(self, program, path):
        self.program = program
        self.path = path
        self.socket = os.path.join(path, "run", "interlock.sock")
        # Every daemon that was ever seen here, so that none is left when its socket is not.
        self.seen = set()
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("INTERLOCK_", "LD_"))
        }

    def daemon(self):
        """The process that listens, as the kernel tells it; none if nobody does."""
        try:
            with socket.socket(socket.AF_UNIX) as end:
                end.connect(self.socket)
                process = struct.unpack("3i", end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
                self.seen.add(process)
                return process
        except OSError:
            return None

    def stop(self, how=signal.SIGTERM):
        """Ends the daemon, and returns only when it is gone."""
        self.daemon()
        for process in sorted(self.seen):
            if self._is_ours(process):
                os.kill(process, signal.SIGCONT)
                os.kill(process, how)
                self._wait(process)
        self.seen.clear()

    def _is_ours(self, process):
        """Whether a process is still the daemon of this home: its number may be another's by now."""
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                return self.path.encode() in file.read().split(b"\0")
        except OSError:
            return False

    def _wait(self, process):
        for _ in range(18_000):
            if not self._is_ours(process):
                return
            time.sleep(0.05)
        os.kill(process, signal.SIGKILL)
        raise AssertionError("the daemon did not end within 15 minutes")

    def operator(self, method, path, body=None):
        """A call with the operator's key: status and body."""
        with open(os.path.join(self.path, "operator.key"), encoding="utf-8") as file:
            key = file.read().strip()
        connection = _Socket(self.socket)
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Authorization": "Bearer " + key})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")

    def run(self, *arguments):
        done = subprocess.run(
            [self.program, *arguments], capture_output=True, text=True, env=self.environment, timeout=900, check=False
        )
        return done.returncode, done.stdout + done.stderr


class Gateway:
    """The server of the control tools, as a host starts it: a child that speaks MCP on its standard streams."""

    def __init__(self, home, host, project):
        self.process = subprocess.Popen(
            [home.program, "gateway", "--control-only", "--host", host, "--home", home.path, "--project", project],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=home.environment,
        )
        self.last = 0
        client = {"name": "stand-in", "version": "1"}
        self._ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool, arguments):
        return self._ask("tools/call", {"name": tool, "arguments": arguments})["structuredContent"]

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=900)
        self.process.stdout.close()

    def _send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def _ask(self, method, params):
        self.last += 1
        self._send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        return json.loads(self.process.stdout.readline())["result"]
