"""Lets each real host work under a daemon of its own, with a model that follows a script, and checks what took effect,
what the model was told, and what is on record.

Usage: walk.py PROGRAM DIRECTORY-OF-THE-HOSTS'-PROGRAMS SCRATCH-DIRECTORY [HOST…]
       walk.py --with-loopback COMMAND [ARGUMENT…]
"""

import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hosts"))

from hosts import HOSTS
from interlock import Home
from model import Model
from templates import FILES, WALKS, approve_all, template

WORKFLOW = {
    "id": "walk",
    "initial": "planning",
    "states": {
        "planning": {
            "allowed_tools": ["Read", "Grep", "Glob", "Bash"],
            "instructions": "Understand the sum first. Change nothing yet.",
            "on": {"READY": "implementing"},
        },
        "implementing": {
            "allowed_tools": ["Read", "Edit", "Write", "Bash"],
            "instructions": "Mend the sum now.",
            "on": {"DONE": "completed"},
        },
        "completed": {"type": "final"},
    },
}


# How a hook's program can fail: what it is then, as a shell's script.
FAILURES = (
    ("is not there", None),
    ("ends with 1", "echo trouble >&2\nexit 1\n"),
    ("ends with 3 and words", "echo trouble >&2\nexit 3\n"),
    ("ends with 3 and says nothing", "exit 3\n"),
    ("is killed", "kill -9 $$\n"),
    ("prints no JSON", "echo trouble\n"),
    ("prints JSON of another shape", """echo '{"decision": 5}'\n"""),
)


# Those of Codex, and whether a command may write in the project there.
SANDBOXES = (("workspace-write", True), ("read-only", False), ("danger-full-access", True))


class Checks:
    """One line per check; whoever runs this sees from the number of failures how it ended."""

    def __init__(self):
        self.host = ""
        self.done = 0
        self.failures = 0

    def that(self, holds, text, got=""):
        self.done += 1
        self.failures += not holds
        print(f"{'ok      ' if holds else 'FAILED  '}{self.host}: {text}{'' if holds else f'; got {got}'}", flush=True)


class Walk:
    """One host, from its installation to the audit."""

    def __init__(self, kind, program, programs, scratch, checks):
        directory = os.path.join(scratch, kind.name)
        user, project = os.path.join(directory, "user"), os.path.join(directory, "project")
        os.makedirs(user)
        os.makedirs(project)
        os.makedirs(os.path.join(directory, "bin"))
        # A binary of its own: the entries that are installed name it, and one step takes it away.
        self.binary = shutil.copy(program, os.path.join(directory, "bin", "interlock"))
        shutil.copy(f"{program}-shell", os.path.join(directory, "bin", "interlock-shell"))
        self.home = Home(self.binary, os.path.join(directory, "home"))
        self.home.environment |= {"HOME": user, "INTERLOCK_HOME": self.home.path}
        self.model = Model()
        self.host = kind(programs, user, project, self.model)
        self.check = checks
        checks.host = kind.name
        files = {"sums.py": "def add(a, b):\n    return a - b\n", ".env": "TOKEN=1\n"}
        for name, text in files.items():
            self.put(name, text)
        self.build()
        subprocess.run(["git", "init", "-q", project], check=True)

    def put(self, name, text):
        with open(self.host.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def text(self, name):
        with open(self.host.path(name), encoding="utf-8") as file:
            return file.read()

    def exists(self, name):
        return os.path.exists(self.host.path(name))

    def build(self):
        """Something to lose."""
        os.makedirs(self.host.path("build"), exist_ok=True)
        self.put("build/kept.txt", "kept\n")

    def run(self):
        """The only run there is: one host in one project."""
        return self.home.operator("GET", "/runs")[1]["runs"][0]

    def record(self):
        """What was ruled in this project so far, the latest first."""
        code, text = self.home.run("activity", "--json", "--limit", "200")
        return json.loads(text)["activities"] if code == 0 else []

    def on_record(self, before, *expected):
        new = self.record()
        new = [(one["decision"], one["enforced"]) for one in new[:len(new) - before]][::-1]
        self.check.that(new == list(expected), f"on record: {[decision for decision, _ in expected]}", new)

    def cli(self, *arguments):
        code, text = self.home.run(*arguments, "--project", self.host.project)
        self.check.that(code == 0, "interlock " + " ".join(arguments[:2]), text)

    def install(self):
        code, text = self.home.run("install", self.host.name, "--yes")
        self.check.that(code == 0, "the hooks and the server are installed", text)
        self.host.settings()

    def observe(self):
        host = self.host
        talk = host.talk([host.shell("rm -r build")])
        self.check.that(talk.code == 0, "the host runs without a network", talk)
        self.check.that("Interlock observes" in talk.first(), "the model reads that it is observed", talk.first())
        self.check.that(not self.exists("build"), "observed, `rm -r` runs", talk)
        self.on_record(0, ("APPROVED" if host.holds else "DENIED", False))

    def subagent(self):
        """Observed, because the base policy would have a person asked before a subagent is started."""
        host, before = self.host, len(self.record())
        main, sub = host.with_subagent()
        talk = host.talk(main, sub)
        made, run = len(self.record()) - before, self.run()
        self.check.that(made == len(main) + len(sub), "the calls of a subagent are on record too", (made, talk))
        self.check.that(not run.get("frozen"), "and nothing freezes the run", run)

    def enforce(self):
        host = self.host
        self.build()
        self.cli("enforce")
        # Where every line is held, what is deleted in the project is kept; what lies elsewhere is not.
        lost = "/srv/treasure" if host.holds else "build"
        before = len(self.record())
        talk = host.talk([
            host.shell(f"rm -r {lost}"), host.write("made.txt", "made\n"), host.shell("ls"), host.read("sums.py"),
        ])
        self.check.that(self.exists("build/kept.txt"), f"enforced, `rm -r {lost}` takes no effect", talk)
        self.check.that("QWED-AGENT-TRUST-001" in talk.result(0), "and the model reads why", talk.result(0))
        self.check.that(self.exists("made.txt") and self.text("made.txt") == "made\n", "a file is written", talk)
        self.check.that("made.txt" in talk.result(2), "`ls` runs and the model reads its output", talk)
        self.check.that("return a - b" in talk.result(3), "a file is read", talk)
        self.on_record(before, ("DENIED", True), ("APPROVED", True), ("APPROVED", True), ("APPROVED", True))

    def undo(self):
        """What a held line deletes comes back."""
        host = self.host
        if not host.holds:
            return
        talk = host.talk([host.shell("rm -r build")])
        self.check.that(not self.exists("build"), "enforced, what is kept is deleted", talk)
        self.check.that("interlock undo" not in talk.result(0), "and the model is told nothing of it", talk.result(0))
        self.cli("undo", "--last", "--yes")
        self.check.that(self.exists("build/kept.txt") and self.text("build/kept.txt") == "kept\n", "and comes back")

    def secret(self):
        host = self.host
        talk = host.talk([host.read(".env")])
        self.check.that(talk.result(0) and "TOKEN=1" not in talk.result(0), "a file with secrets is not read", talk)

    def workflow(self):
        host = self.host
        path = os.path.join(os.path.dirname(self.home.path), "walk.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(WORKFLOW, file)
        self.cli("workflow", "start", path)
        mend = host.edit("sums.py", "    return a - b", "    return a + b")
        script = [host.read("sums.py"), mend, host.shell("head sums.py"), *host.list_in("build")]
        inside = len(script) - 1
        if host.looks_tools_up:
            script.append(host.look_up())
        at = len(script)
        # Looked at while the session lasts: the end of a turn would end them all.
        under_way = []

        def last():
            under_way.append(self.run()["open_calls"])
            return mend

        talk = host.talk(script + [host.control("get_state"), host.control("transition", event="READY"), last])
        first = talk.first()
        self.check.that("Change nothing yet" in first, "the model reads the instructions of its phase", first)
        self.check.that("INTERLOCK-WF-001" in talk.result(1), "an edit is refused in the first phase", talk)
        self.check.that("return a - b" in talk.result(2), "a command that reads runs there", talk)
        self.check.that("kept.txt" in talk.result(inside), "so does one in another directory", talk)
        listed = talk.result(at - 1) if host.looks_tools_up else talk.tools()
        self.check.that("interlock_transition" in listed, "the model is offered the control tools", talk)
        self.check.that("planning" in talk.result(at), "it sees its phase with them", talk)
        self.check.that("implementing" in talk.result(at + 1), "it moves on with them", talk)
        self.check.that("return a + b" in self.text("sums.py"), "in the second phase the edit takes effect", talk)
        run = self.run()
        self.check.that(run["run"]["state"] == "implementing", "the run is in the second phase", run)
        self.check.that(not run.get("frozen"), "and nothing froze it", run)
        self.check.that(under_way == [0], "every call that began was told to have ended", under_way)

    def templates(self):
        """Every shipped workflow reaches its end, by what the runner saw and without an operator's force."""
        host = self.host
        for name, text in FILES.items():
            self.put(name, text)
        os.makedirs(host.path("docs"), exist_ok=True)
        for name, (end, steps) in WALKS.items():
            self.cli("workflow", "start", template(name))
            script = [host.look_up()] if host.looks_tools_up else []
            for step in steps:
                script += self.turns(*step)
            talk = host.talk(script)
            run = self.run()
            reached = run["run"]["state"] == end and not run.get("frozen")
            self.check.that(reached, f"the template `{name}` is walked to `{end}`", (run, talk.everything()))

    def turns(self, kind, *given):
        """The turns of a model for one step of a template."""
        host = self.host
        if kind in ("go", "ask"):
            event, data = given
            call = host.control("transition", event=event, data=data)
            if kind == "go":
                return [call]

            def agreed():
                approve_all(self.home)
                return host.control("get_state")

            return [call, agreed]
        return [getattr(host, kind)(*given)]

    def contained(self):
        """What runs is held to its bound, and says how it ended; a line that lost its ticket does not run where it is held."""
        host, before = self.host, len(self.record())
        outside = os.path.join(os.path.dirname(host.project), "outside.txt")
        with open(host.path("work.sh"), "w", encoding="utf-8") as file:
            file.write(f"echo inside > inside.txt\necho outside > {outside}\nexit 3\n")
        talk = host.talk([host.shell("sh work.sh"), host.shell("cat <<EOF\nit's\nEOF"), *host.list_in("build")])
        self.check.that(self.exists("inside.txt"), "a line of unknown effect runs, and writes in the project", talk)
        self.check.that(not os.path.exists(outside), "and nowhere else", talk)
        self.check.that("it's" in talk.result(1), "a here-document arrives whole", talk)
        self.check.that("kept.txt" in talk.result(2 + len(host.list_in("build")) - 1), "directories are kept", talk)
        decisions = [one["decision"] for one in self.record()[:len(self.record()) - before]]
        self.check.that(set(decisions) == {"APPROVED"}, "nobody was asked about it", decisions)
        self.check.that(not self.run().get("frozen"), "and nothing freezes the run", self.run())

    def sandboxes(self):
        """In each sandbox of Codex, and without one, a line is held and how it ended is seen."""
        host = self.host
        if host.name != "codex":
            return
        outside = os.path.join(os.path.dirname(host.project), "outside.txt")
        for code, (sandbox, writes) in enumerate(SANDBOXES, start=21):
            self.put("work.sh", f"touch {sandbox}\necho outside > {outside}\ncat {self.home.path}/left/*\nexit {code}\n")
            talk = host.talk([host.shell("sh work.sh " + sandbox)], sandbox=sandbox)
            self.check.that(self.exists(sandbox) == writes, f"`{sandbox}`: writing in the project is {writes}", talk)
            self.check.that(not os.path.exists(outside), f"`{sandbox}`: it writes nowhere else", talk)
            self.check.that("secret" not in talk.result(0), f"`{sandbox}`: it cannot read what the runner tells by", talk)
            last = self.run()["run"]["context"]["observed"]["last_command"]
            self.check.that(last["exit_code"] == code, f"`{sandbox}`: how it ended is seen", (last, talk))
            self.check.that(not self.run().get("frozen"), f"`{sandbox}`: and nothing freezes the run", self.run())

    def dead_daemon(self):
        """The hook's own failure is a refusal on every host: it says so with the code that hosts understand."""
        host, aside = self.host, self.home.path + "-aside"

        def without_home():
            self.home.stop()
            os.rename(self.home.path, aside)
            with open(self.home.path, "w", encoding="utf-8") as file:
                file.write("no directory\n")
            return host.shell("rm -r build")

        talk = host.talk([without_home])
        os.remove(self.home.path)
        os.rename(aside, self.home.path)
        self.check.that(self.exists("build/kept.txt"), "without daemon and home the hook refuses", talk)
        self.check.that("nterlock" in talk.result(0), "and the model reads so", talk)
        talk = host.talk([host.shell("ls")])
        self.check.that("sums.py" in talk.result(0), "with them a hook starts the daemon and it goes on", talk)

    def replace_binary(self, script):
        """Puts a shell's script in the place of the hook's program, or nothing."""
        if os.path.exists(self.binary):
            os.remove(self.binary)
        if script is not None:
            with open(self.binary, "w", encoding="utf-8") as file:
                # Only hooks are given something to read.
                file.write('#!/bin/sh\n[ "$1" = hook ] && cat > /dev/null\n' + script)
            os.chmod(self.binary, 0o700)

    def failing_hook(self):
        """In one session the hook's program fails in each way; what should be deleted says how that is taken."""
        host, aside = self.host, self.binary + "-aside"
        shutil.copy(self.binary, aside)

        def turn(name, program):
            def fail():
                self.replace_binary(program)
                return host.shell("rm -r " + name)

            os.makedirs(host.path(name))
            return fail

        ways = [f"way-{number}" for number in range(len(FAILURES))]
        script = [turn(way, program) for way, (_, program) in zip(ways, FAILURES, strict=True)]
        talk = host.talk(script)
        os.rename(aside, self.binary)
        for number, (way, (text, _)) in enumerate(zip(ways, FAILURES, strict=True)):
            ran, refuses = not self.exists(way), text in host.refuses_when
            held = talk.result(number) and ran != refuses
            taken = "refused" if refuses else "run"
            self.check.that(held, f"when the hook's program {text}, the tool is {taken}", talk.result(number))

    def unaccepted(self):
        """Codex runs no hook that nobody accepted, and says nothing about it."""
        if self.host.name == "codex":
            self.build()
            talk = self.host.talk([self.host.shell("rm -r build")], accepted=False)
            self.check.that(not self.exists("build"), "hooks that nobody accepted are not run, and the tool is", talk)

    def audit(self):
        self.home.stop()
        for command, word in (("verify", "SOUND"), ("replay", "SAME")):
            code, text = self.home.run("audit", command, "--data", os.path.join(self.home.path, "data"))
            self.check.that(code == 0 and text.startswith(word), f"audit {command}: {text.splitlines()[0]}", text)

    def end(self):
        self.home.stop()
        self.model.end()


def walk(kind, program, programs, scratch, checks):
    steps = Walk(kind, program, programs, scratch, checks)
    try:
        for step in (
            steps.install, steps.observe, steps.subagent, steps.enforce, steps.undo, steps.contained, steps.secret, steps.workflow,
            steps.sandboxes, steps.dead_daemon, steps.failing_hook, steps.unaccepted, steps.templates, steps.audit,
        ):
            step()
    except Exception as error:  # A step that cannot go on is a failure of this host, and the next one has its turn.
        checks.that(False, f"the walk came to an end in `{step.__name__}`", repr(error))
    finally:
        steps.end()


def loopback_up():
    """In a network namespace of its own nothing is up, not even loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(end, 0x8913, request))[1]
        fcntl.ioctl(end, 0x8914, struct.pack("16sh14x", b"lo", flags | 1))


def main():
    if sys.argv[1] == "--with-loopback":
        loopback_up()
        os.execvp(sys.argv[2], sys.argv[2:])
    program, programs, scratch, *names = sys.argv[1:]
    # An end from outside is an end like any other: the daemons go too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    checks = Checks()
    began = time.monotonic()
    for kind in HOSTS:
        if not names or kind.name in names:
            walk(kind, program, programs, scratch, checks)
    print(f"{checks.done} checks, {checks.failures} failed, {time.monotonic() - began:.0f} s")
    sys.exit(1 if checks.failures else 0)


if __name__ == "__main__":
    main()
