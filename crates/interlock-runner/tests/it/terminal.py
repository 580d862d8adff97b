"""Drives an interactive shell on a terminal: terminal.py RUNNER BOUND. Prints what each case came to."""

import os
import pty
import select
import sys
import time

RUNNER, BOUND = sys.argv[1:]


class Terminal:
    def __init__(self):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["PS1"] = "$ "
            os.environ["RUN"], os.environ["BOUND"] = RUNNER, BOUND
            os.execv("/bin/bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
        self.seen = ""
        self.send("stty -echo; echo ready-$((1 + 1))")
        self.until("ready-2")

    def send(self, line):
        os.write(self.fd, line.encode() + b"\n")

    def key(self, key):
        os.write(self.fd, key)

    def until(self, text, seconds=60):
        end = time.monotonic() + seconds
        while text not in self.seen:
            if time.monotonic() > end:
                sys.exit(f"waited for {text!r}, saw {self.seen!r}")
            if select.select([self.fd], [], [], 0.2)[0]:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
        before, _, self.seen = self.seen.partition(text)
        return before


def command(wrap, script):
    return f"$RUN \"$BOUND\" bash -c '{script}'" if wrap else f"bash -c '{script}'"


def cases(wrap):
    t = Terminal()
    t.send(command(wrap, 'trap "echo caught; exit 3" INT; echo go; sleep 60 & wait'))
    t.until("go")
    t.key(b"\x03")
    t.until("caught")
    t.until("$ ")
    t.send("echo code=$?")
    t.until("code=3")
    print("interrupt with a trap")

    t.send(command(wrap, "echo go; sleep 60"))
    t.until("go")
    t.key(b"\x03")
    t.until("$ ")
    t.send("echo code=$?")
    t.until("code=130")
    print("interrupt")

    # A shell ignores this one until it has become something else.
    t.send(command(wrap, 'exec /usr/bin/python3 -uc "print(chr(103) + chr(111)); import time; time.sleep(60)"'))
    t.until("go")
    t.key(b"\x1c")
    t.until("$ ")
    t.send("echo code=$?")
    t.until("code=131")
    print("quit")

    t.send(command(wrap, "echo go; read line; echo got $line"))
    t.until("go")
    t.key(b"\x1a")
    t.until("Stopped")
    t.until("$ ")
    t.send("fg")
    time.sleep(0.3)
    t.send("hello")
    t.until("got hello")
    t.until("$ ")
    t.send("echo code=$?")
    t.until("code=0")
    print("stop and go on")

    # As editors do: they catch the key and stop themselves and their group.
    t.send(command(wrap, "echo go; kill -STOP $$; echo again"))
    t.until("go")
    t.until("Stopped")
    t.until("$ ")
    t.send("fg")
    t.until("again")
    print("stops itself")

    t.send(command(wrap, "tty > /dev/null && stty size && test -t 0 && test -t 1 && echo terminal"))
    t.until("terminal")
    print("terminal")

    t.send(command(wrap, "bash --norc -i -c \"sleep 0.1; jobs; echo inner\""))
    t.until("inner")
    print("interactive shell inside")

    t.send(command(wrap, "echo to the terminal > /dev/tty"))
    t.until("to the terminal")
    print("/dev/tty")
    t.send("exit")


cases(False)
cases(True)
