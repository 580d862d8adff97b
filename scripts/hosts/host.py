"""What all hosts do alike: start the hook, understand its answer, run the tool or not, tell the hook how it ended.

A stand-in runs allowed calls for real, in the project's directory. What it makes of a hook's exit code, output, silence
or absence is the host's documented behaviour, and stands in the host's own file.
"""

import itertools
import json
import os
import shlex
import subprocess
from dataclasses import dataclass


@dataclass
class Heard:
    """What a hook left: `code` is none if it could not be started or did not end in time."""

    code: int | None
    output: str = ""
    errors: str = ""

    def json(self):
        """The output as an object; none if it is nothing of the kind."""
        try:
            value = json.loads(self.output)
        except ValueError:
            return None
        return value if isinstance(value, dict) else None


@dataclass
class Ran:
    """How a call went. A refused one has a reason and nothing else."""

    ran: bool
    reason: str = ""
    output: str = ""
    code: int | None = None


class HookFailed(Exception):
    """The hook said nothing that this host understands."""


class Host:
    name = ""
    # Whether the settings that are installed make this host refuse when the hook fails.
    refuses_on_failure = False
    # Whether it refuses when the hook's program is not there, whatever it does after another failure.
    refuses_without_program = False
    # Whether the hook's command is a line for a shell, or a program with arguments.
    through_shell = True
    # Whether calls of subagents are told apart.
    tells_subagents = True

    def __init__(self, home, project, gateway):
        self.home = home
        self.project = project
        self.gateway = gateway
        self.session = "session-1"
        self.subagent = None
        self.deadline_ms = None
        # Set when the hook keeps the control tools from the agent, so that the rest can be looked at all the same.
        self.controls_past_hook = False
        self.timeout = 900  # For what hangs alone.
        self.program = home.program
        self.ids = itertools.count(1)
        # The last thing that a hook had for the agent to read.
        self.told = ""

    # What the checks use.

    def shell(self, command):
        return self.use("shell", {"command": command}, lambda: self._shell(command))

    def read(self, path):
        return self.use("read", {"path": path}, lambda: (self._text(path), 0))

    def write(self, path, text):
        return self.use("write", {"path": path, "text": text}, lambda: self._write(path, text))

    def edit(self, path, old, new):
        return self.use("edit", {"path": path, "old": old, "new": new}, lambda: self._edit(path, old, new))

    def unlisted(self):
        """A tool of some server that nobody named."""
        return self.use("mcp", {"server": "notes", "tool": "add", "arguments": {"text": "x"}}, lambda: ("added", 0))

    def control(self, tool, **arguments):
        """A control tool: first the hook, as for any tool, then the server."""
        call = {"server": "interlock", "tool": "interlock_" + tool, "arguments": arguments}
        answers = []

        def perform():
            answers.append(self.gateway.call("interlock_" + tool, arguments))
            return json.dumps(answers[0]), 0

        if self.controls_past_hook:
            perform()
            return answers[0]
        went = self.use("mcp", call, perform)
        return answers[0] if answers else {"refused": went.reason}

    def state(self):
        return self.control("get_state")

    def transition(self, event, **more):
        return self.control("transition", event=event, **more)

    def start(self, source="startup"):
        raise NotImplementedError

    def prompt(self, text):
        raise NotImplementedError

    def use(self, kind, call, perform):
        """One call of a tool from its first event to its last."""
        raise NotImplementedError

    # What the hosts use.

    def hook(self, event):
        words = [self.program, "hook", self.name, "--home", self.home.path]
        if self.deadline_ms is not None:
            words += ["--deadline-ms", str(self.deadline_ms)]
        line = ["/bin/sh", "-c", " ".join(map(shlex.quote, words))] if self.through_shell else words
        try:
            done = subprocess.run(
                line, input=json.dumps(event), capture_output=True, text=True, cwd=self.project,
                env=self.home.environment, timeout=self.timeout, check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return Heard(None)
        return Heard(done.returncode, done.stdout, done.stderr)

    def refusal(self, heard):
        """The reason for which this host refuses a call, or none. Raises what the host takes for a failed hook."""
        raise NotImplementedError

    def refused(self, event):
        """The same, with the host's way of taking a failed hook."""
        try:
            return self.refusal(self.hook(event))
        except HookFailed as failed:
            return f"the hook failed: {failed}" if self.refuses_on_failure else None

    def listen(self, heard):
        """Keeps what a hook adds to what the agent reads."""
        answer = heard.json() or {}
        inner = answer.get("hookSpecificOutput") or {}
        self.told = inner.get("additionalContext") or answer.get("additional_context") or ""
        return heard

    def next_id(self):
        return f"{self.session}-{next(self.ids)}"

    def _shell(self, command):
        done = subprocess.run(
            ["/bin/bash", "-c", command], capture_output=True, text=True, cwd=self.project, env=self.home.environment,
            timeout=900, check=False,
        )
        return done.stdout + done.stderr, done.returncode

    def _text(self, path):
        with open(os.path.join(self.project, path), encoding="utf-8") as file:
            return file.read()

    def _write(self, path, text):
        with open(os.path.join(self.project, path), "w", encoding="utf-8") as file:
            file.write(text)
        return "written", 0

    def _edit(self, path, old, new):
        return self._write(path, self._text(path).replace(old, new, 1))
