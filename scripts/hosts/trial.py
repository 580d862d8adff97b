"""Single events of Claude Code against a daemon of its own, for attempts that no well-behaved host would make.

    >>> t = Trial("target/debug/interlock", "/tmp/trial"); p = t.project(); p.bash("rm -rf x").code
    2
"""

import itertools
import json
import os
import shutil
import subprocess

from host import Heard
from interlock import Home

READING = {
    "id": "reading",
    "initial": "reading",
    "states": {
        "reading": {"allowed_tools": ["Read", "Bash"], "on": {"GO": "writing"}},
        "writing": {"allowed_tools": ["Read", "Edit", "Write", "Bash"], "on": {"BACK": "reading", "END": "ended"}},
        "ended": {"type": "final"},
    },
    "after_final": "closed",
}


class Trial:
    def __init__(self, program, directory):
        self.directory = directory
        self.home = Home(os.path.abspath(program), os.path.join(directory, "home"))
        self.home.stop()
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        self.numbers = itertools.count(1)

    def project(self, workflow=None):
        """A project of its own, enforced. Each attempt gets one, because refusals lower the trust in an agent."""
        return Project(self, os.path.join(self.directory, f"p{next(self.numbers)}"), workflow)

    def end(self):
        self.home.stop()


class Project:
    def __init__(self, trial, path, workflow):
        self.home = trial.home
        self.path = path
        self.session = os.path.basename(path)
        self.numbers = itertools.count(1)
        self.last = ""
        os.makedirs(path)
        subprocess.run(["git", "init", "-q", path], check=True)
        for name in ("a.py", "b.txt"):
            self.put(name, "x = 1\n")
        self.event("SessionStart", source="startup")
        start = {"host": "claude-code", "project": path}
        status, answer = self.home.operator("POST", "/runs", start | ({"workflow": workflow} if workflow else {}))
        assert status == 201, answer
        self.agent = answer["agent_id"]
        self.home.operator("POST", f"/agents/{self.agent}/enforce", {})

    def event(self, name, host="claude-code", **fields):
        event = {
            "session_id": self.session, "transcript_path": "/dev/null", "cwd": self.path,
            "permission_mode": "default", "hook_event_name": name,
        }
        return self.send(json.dumps(event | fields), host)

    def send(self, text, host="claude-code"):
        done = subprocess.run(
            [self.home.program, "hook", host, "--home", self.home.path], input=text, capture_output=True, text=True,
            env=self.home.environment, timeout=900, check=False,
        )
        return Heard(done.returncode, done.stdout, done.stderr.strip())

    def before(self, tool, given, **fields):
        self.last = f"{self.session}-{next(self.numbers)}"
        return self.event("PreToolUse", **{"tool_name": tool, "tool_input": given, "tool_use_id": self.last, **fields})

    def after(self, tool, given, response=None, **fields):
        response = {"stdout": self.last, "stderr": "", "interrupted": False} if response is None else response
        same = {"tool_name": tool, "tool_input": given, "tool_use_id": self.last, "tool_response": response}
        return self.event("PostToolUse", **{**same, **fields})

    def bash(self, command, **fields):
        return self.before("Bash", {"command": command}, **fields)

    def write(self, path, text="x\n", **fields):
        return self.before("Write", {"file_path": os.path.join(self.path, path), "content": text}, **fields)

    def do(self, command):
        """Runs a command for real if it may run, and tells that it ended."""
        heard = self.bash(command)
        if heard.code == 0:
            subprocess.run(["/bin/bash", "-c", command], cwd=self.path, capture_output=True, timeout=900, check=False)
            self.after("Bash", {"command": command})
        return heard

    def allow(self, command):
        return self.home.operator("POST", f"/runs/{self.agent}/allow", {"command": command})

    def approve(self, heard):
        approval = heard.errors.split("approvals approve ", 1)[1].split("`", 1)[0]
        return self.home.operator("POST", f"/approvals/{approval}/approve", {})

    def run(self):
        return self.home.operator("GET", f"/runs/{self.agent}")[1]["run"]

    def fact(self, name):
        return self.run()["context"]["observed"].get(name)

    def put(self, name, text):
        with open(os.path.join(self.path, name), "w", encoding="utf-8") as file:
            file.write(text)

    def has(self, name):
        return os.path.exists(os.path.join(self.path, name))
