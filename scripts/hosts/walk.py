"""Lets a stand-in of each host work under a daemon of its own, and checks what ran, what was refused, and what is kept.

Usage: walk.py PROGRAM SCRATCH-DIRECTORY [HOST…]
"""

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from claude_code import ClaudeCode
from codex import Codex
from cursor import Cursor
from gemini import Gemini
from interlock import Gateway, Home
from templates import FILES, WALKS, template

TESTS = "python3 -m unittest -q"
LIMIT = 25
PARALLEL = 100
WORKFLOW = {
    "id": "walk",
    "initial": "planning",
    "facts": {"tests": {"command": TESTS}},
    "guards": {"passed": {"field": "observed.tests", "op": "eq", "value": 0, "source": "observed"}},
    "states": {
        "planning": {
            "allowed_tools": ["Read", "Grep", "Glob", "Bash"],
            "instructions": "Understand the codebase. Do not modify files.",
            "max_iterations": LIMIT,
            "on": {"READY": "implementing", "FAIL": "failed"},
        },
        "implementing": {
            "allowed_tools": ["Read", "Edit", "Write", "Bash"],
            "on": {"TEST": "testing"},
        },
        "testing": {
            "allowed_tools": ["Read", "Bash"],
            "allowed_commands": ["python3 -m unittest *"],
            "on": {
                "DONE": {"target": "completed", "guard": "passed"},
                "BACK": "implementing",
                "REVIEW": {"target": "reviewing", "requires_approval": True, "approval_message": "May it be reviewed?"},
            },
        },
        "reviewing": {"allowed_tools": ["Read", "Edit"], "on": {"BACK": "testing"}},
        "completed": {"type": "final"},
        "failed": {"type": "final"},
    },
}


class Checks:
    """One line per check; whoever runs this sees from the number of failures how it ended."""

    def __init__(self):
        self.host = ""
        self.done = 0
        self.failures = 0

    def that(self, holds, text, got=""):
        self.done += 1
        if holds:
            print(f"ok      {self.host}: {text}", flush=True)
        else:
            self.failures += 1
            print(f"FAILED  {self.host}: {text}; got {got}", flush=True)

    def runs(self, went, text):
        self.that(went.ran, text, went)

    def refused(self, went, text, word=""):
        self.that(not went.ran and word in went.reason, text, went)


def project_in(directory):
    """A repository with a program, a test that fails, and things to lose."""
    os.makedirs(os.path.join(directory, "junk"))
    files = {
        "sums.py": "def add(a, b):\n    return a - b\n",
        "test_sums.py": (
            "import unittest\nimport sums\n\n\nclass Sums(unittest.TestCase):\n"
            "    def test_add(self):\n        self.assertEqual(sums.add(2, 2), 4)\n"
        ),
        "report.py": "import sys\nopen('report-' + sys.argv[1], 'w').write('made')\n",
        "junk/kept.txt": "kept\n",
        ".gitignore": "__pycache__/\n",
    }
    for name, text in files.items():
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write(text)
    subprocess.run(["git", "init", "-q", directory], check=True)


def approval_in(reason):
    found = re.search(r"appr_[0-9a-f]+", reason)
    return found.group(0) if found else None


class Walk:
    """One host from its first session to the audit."""

    def __init__(self, host, checks):
        self.host = host
        self.home = host.home
        self.check = checks
        checks.host = host.name

    def exists(self, name):
        return os.path.exists(os.path.join(self.host.project, name))

    def agent(self):
        return self.home.operator("GET", "/runs")[1]["runs"][0]["agent_id"]

    def observe(self):
        self.host.start()
        self.check.that("observes" in self.host.told, "the session is told that it is only observed", self.host.told)
        went = self.host.shell("rm -r junk")
        self.check.that(went.ran and not self.exists("junk"), "observed, rm runs", went)
        refusals = self.home.operator("GET", f"/runs/{self.agent()}/refusals")[1]["refusals"]
        recorded = [(one["decision"], one["enforced"]) for one in refusals]
        self.check.that(recorded == [("DENIED", False)], "observed, rm is on record as what it is", refusals)

    def enforce(self):
        os.makedirs(os.path.join(self.host.project, "junk"))
        status, _ = self.home.operator("POST", f"/agents/{self.agent()}/enforce", {})
        self.check.that(status == 200, "the operator enforces", status)
        went = self.host.shell("rm -r junk")
        self.check.refused(went, "enforced, rm is refused", "QWED-AGENT-TRUST-001")
        self.check.that(self.exists("junk"), "and what it would have deleted is there")
        self.check.refused(self.host.unlisted(), "a tool that nobody named is refused")
        self.check.runs(self.host.shell("git status"), "reading runs")
        self.check.runs(self.host.write("notes.txt", "one\n"), "a file of the project is written")

    def failing_hook(self):
        """The stand-in's way with a hook that is not there, and the hook's way with a daemon that does not answer."""
        self.host.program = "/nonexistent/interlock"
        went = self.host.shell("ls")
        self.host.program = self.home.program
        if self.host.refuses_on_failure or self.host.refuses_without_program:
            self.check.refused(went, "without the hook's program the host refuses")
        else:
            self.check.runs(went, "without the hook's program the host goes on: it is advisory")
        self.host.deadline_ms = 1000
        daemon = self.home.daemon()
        os.kill(daemon, signal.SIGSTOP)
        # It stands still until there is an answer, so that none of this waits for it.
        went = self.host.shell("ls")
        os.kill(daemon, signal.SIGCONT)
        self.host.deadline_ms = None
        self.check.refused(went, "a daemon that stands still is a refusal, on every host")
        self.check.runs(self.host.shell("ls"), "it goes on when the daemon does")

    def false_alarm(self):
        went = self.host.shell(TESTS)
        self.check.refused(went, "the tests wait for a person, because nobody knows what they do", "TRUST-002")
        allowed = {"command": "python3 -m unittest *", "reason": "the tests of this project"}
        status, _ = self.home.operator("POST", f"/runs/{self.agent()}/allow", allowed)
        self.check.that(status == 201, "the operator allows them", status)
        went = self.host.shell(TESTS)
        self.check.that(went.ran and went.code == 1, "they run, and fail as they should", went)
        self.check.refused(self.host.shell("python3 report.py x"), "another program is still refused")

    def approve(self, reason):
        approval = approval_in(reason)
        status, answer = self.home.operator("POST", f"/approvals/{approval}/approve", {})
        self.check.that(status == 200, "a person approves", (status, answer, reason))

    def approval(self):
        went = self.host.shell("python3 report.py one")
        self.check.refused(went, "a program waits for approval", "appr_")
        self.check.refused(self.host.shell("python3 report.py one"), "asking again is not an approval", "appr_")
        self.approve(went.reason)
        self.check.refused(self.host.shell("python3 report.py two"), "another call does not redeem it")
        self.check.refused(self.host.shell("python3 report.py one "), "nor does one that differs by a blank")
        self.check.that(not self.exists("report-one") and not self.exists("report-two"), "nothing ran so far")
        self.check.runs(self.host.shell("python3 report.py one"), "the approved call runs")
        self.check.that(self.exists("report-one"), "and did its work")
        self.check.refused(self.host.shell("python3 report.py one"), "once")

    def planning(self):
        start = {"host": self.host.name, "project": self.host.project, "workflow": WORKFLOW}
        status, answer = self.home.operator("POST", "/runs", start)
        self.check.that(status == 201, "the operator starts the workflow", answer)
        self.host.prompt("Mend the sum")
        if self.host.name != "cursor":
            # This host has no words for the agent at a prompt.
            told = self.host.told
            self.check.that("Do not modify files" in told, "the prompt carries the instructions", told)
        state = self.host.state()
        self.check.that(state.get("state") == "planning", "the agent sees its phase", state)
        self.host.controls_past_hook = "refused" in state
        before = self.host._text("sums.py")
        self.check.refused(self.host.edit("sums.py", "a - b", "a + b"), "planning: an edit is refused", "WF-001")
        self.check.refused(self.host.shell("echo 'x = 1' > sums.py"), "planning: a shell write is refused", "SHELL-001")
        self.check.refused(self.host.shell(TESTS), "planning: what was allowed elsewhere is refused", "SHELL-001")
        self.check.refused(self.host.unlisted(), "planning: an unlisted tool is refused", "WF-001")
        self.check.that(self.host._text("sums.py") == before, "planning: the file is as it was")
        self.check.runs(self.host.read("sums.py"), "planning: reading runs")
        answer = self.host.transition("DONE")
        self.check.that(answer.get("code") == "INTERLOCK-WF-002", "planning has no way to the end", answer)

    def second_session(self):
        self.host.session, first = "session-2", self.host.session
        self.host.start()
        went = self.host.edit("sums.py", "a - b", "a + b")
        self.check.refused(went, "a second session is in the same phase", "WF-001")
        self.host.session, self.host.subagent = first, "agent-7"
        self.check.refused(self.host.edit("sums.py", "a - b", "a + b"), "a subagent is in the same phase", "WF-001")
        used = self.host.state().get("iterations")
        self.check.runs(self.host.read("sums.py"), "a subagent reads")
        now = self.host.state().get("iterations")
        self.check.that(now == used + 1, "and is charged to the same run", (used, now))
        if self.host.tells_subagents:
            answer = self.host.transition("READY")
            self.check.that("refused" in answer, "a subagent makes no transition", answer)
        self.host.subagent = None

    def limit(self):
        left = self.host.state()["iterations_left"]
        with ThreadPoolExecutor(PARALLEL) as pool:
            went = list(pool.map(lambda number: self.host.shell(f"echo {number}"), range(PARALLEL)))
        passed = sum(one.ran for one in went)
        self.check.that(passed == left, f"of {PARALLEL} calls at once exactly the {left} that are left run", passed)
        told = [one for one in went if not one.ran and "WF-004" not in one.reason]
        self.check.that(not told, "and the others hear of the limit", told[:2])
        self.check.that(self.host.state()["iterations_left"] == 0, "the counter says so")
        stale = self.host.transition("READY", expected_revision=999)
        self.check.that(stale.get("code") == "INTERLOCK-WF-005", "a stale revision moves nothing", stale)
        answer = self.host.transition("READY", data={"rationale": "a sign is wrong"})
        self.check.that(answer.get("to") == "implementing", "a transition is possible at the limit", answer)

    def restart(self):
        self.check.runs(self.host.write("notes.txt", "two\n"), "implementing: a file is written")
        went = self.host.shell("python3 report.py three")
        self.check.refused(went, "implementing: a program waits for approval", "appr_")
        before, first = self.host.state(), self.home.daemon()
        self.home.stop(signal.SIGKILL)
        self.host.prompt("go on")
        second = self.home.daemon()
        self.check.that(second not in (None, first), "the next hook starts a killed daemon anew", (first, second))
        after = self.host.state()
        self.check.that(after == before, "with the same state, context and counters", (before, after))
        self.approve(went.reason)
        self.check.runs(self.host.shell("python3 report.py three"), "and what waited is approved and runs")

    def testing(self):
        self.check.that(self.host.transition("TEST").get("to") == "testing", "on to testing")
        self.check.refused(self.host.edit("sums.py", "a - b", "a + b"), "testing: an edit is refused", "WF-001")
        answer = self.host.transition("DONE", data={"tests": 0, "observed": {"tests": 0}})
        self.check.that(not answer.get("transitioned"), "testing: a claim about `observed` is refused", answer)
        answer = self.host.transition("DONE", data={"tests": 0})
        self.check.that(answer.get("code") == "INTERLOCK-WF-003", "testing: a claim is no fact", answer)
        went = self.host.shell(TESTS)
        self.check.that(went.ran and went.code == 1, "testing: the tests run and fail", went)
        answer = self.host.transition("DONE")
        self.check.that(answer.get("code") == "INTERLOCK-WF-003", "testing: failed tests do not let it end", answer)
        self.host.transition("BACK")
        went = self.host.edit("sums.py", "    return a - b", "    return a + b")
        self.check.that(went.ran and "a + b" in self.host._text("sums.py"), "implementing: the edit runs", went)
        self.host.transition("TEST")
        self.host.shell(TESTS + " || true")
        answer = self.host.transition("DONE")
        unmet = answer.get("code") == "INTERLOCK-WF-003"
        self.check.that(unmet, "testing: `|| true` is not the declared command", answer)

    def parked(self):
        answer = self.host.transition("REVIEW")
        approval = answer.get("approval_id")
        self.check.that(not answer.get("transitioned") and approval, "a transition waits for a person", answer)
        self.check.runs(self.host.read("sums.py"), "parked: reading runs")
        self.check.refused(self.host.shell(TESTS), "parked: nothing else does")
        self.home.stop()
        self.host.prompt("go on")
        state = self.host.state()
        self.check.that(state.get("pending_approval") == approval, "parked: it still waits after a restart", state)
        status, _ = self.home.operator("POST", f"/approvals/{approval}/approve", {})
        state = self.host.state()
        moved = status == 200 and state["state"] == "reviewing"
        self.check.that(moved, "approved, the transition is made", (status, state))
        self.check.that(self.host.transition("BACK").get("to") == "testing", "and back")

    def end(self):
        went = self.host.shell(TESTS)
        self.check.that(went.ran and went.code == 0, "testing: the tests run and pass", went)
        answer = self.host.transition("DONE")
        # No runner is in its place here, and what a host tells of a command's end is no fact.
        unmet = answer.get("code") == "INTERLOCK-WF-003" and answer.get("unmet") == ["passed"]
        self.check.that(unmet, "without a runner the fact stays unmet, an operator ends it", answer)
        self.check.that("without a runner" in answer.get("reason", ""), "and the agent reads why", answer)
        run = self.host.state()["run_id"]
        forced = {"state": "completed", "reason": "the tests were looked at"}
        status, _ = self.home.operator("POST", f"/runs/{run}/force", forced)
        self.check.that(status == 200, "the operator moves it on", status)
        self.check.that(self.host.state().get("is_final") is True, "the run is at its end")
        self.check.runs(self.host.write("notes.txt", "three\n"), "at the end the phase's limits are lifted")
        self.check.refused(self.host.shell("rm -r junk"), "and the base policy is not", "TRUST-001")
        self.check.that(self.exists("junk/"), "nothing was lost")

    def audit(self):
        self.home.stop()
        for command, word in (("verify", "SOUND"), ("replay", "SAME")):
            code, text = self.home.run("audit", command, "--data", os.path.join(self.home.path, "data"))
            self.check.that(code == 0 and text.startswith(word), f"audit {command}: {text.splitlines()[0]}", text)


def walk(kind, program, scratch, checks):
    directory = os.path.join(scratch, kind.name)
    home, project = Home(program, os.path.join(directory, "home")), os.path.join(directory, "project")
    project_in(project)
    gateway = Gateway(home, kind.name, project)
    steps = Walk(kind(home, project, gateway), checks)
    try:
        for step in (
            steps.observe, steps.enforce, steps.failing_hook, steps.false_alarm, steps.approval, steps.planning,
            steps.second_session, steps.limit, steps.restart, steps.testing, steps.parked, steps.end, steps.audit,
        ):
            step()
    except Exception as error:  # A step that cannot go on is a failure of this host, and the next one has its turn.
        checks.that(False, f"the walk came to an end in `{step.__name__}`", repr(error))
    finally:
        gateway.end()
        home.stop()


def by_hand(host, line):
    """A command line of a host that lets nothing be rewritten: what the refusal says to run instead is run."""
    went = host.shell(line)
    said = re.search(r"run `([^`]*)`, alone", went.reason)
    return host.shell(said.group(1)) if said else went


def templates(kind, program, scratch, checks):
    """Every shipped workflow reaches its end by what the runner saw, without an operator's force."""
    directory = os.path.join(scratch, kind.name + "-templates")
    home, project = Home(program, os.path.join(directory, "home")), os.path.join(directory, "project")
    home.environment["INTERLOCK_HOME"] = home.path
    os.makedirs(os.path.join(project, "docs"))
    for name, text in FILES.items():
        with open(os.path.join(project, name), "w", encoding="utf-8") as file:
            file.write(text)
    subprocess.run(["git", "init", "-q", project], check=True)
    gateway = Gateway(home, kind.name, project)
    host = kind(home, project, gateway)
    checks.host = kind.name
    try:
        host.start()
        agent = home.operator("GET", "/runs")[1]["runs"][0]["agent_id"]
        home.operator("POST", f"/agents/{agent}/enforce", {})
        for name, (end, steps) in WALKS.items():
            code, text = home.run("workflow", "start", template(name), "--project", project)
            checks.that(code == 0, f"the template `{name}` is started", text)
            went = [walk_step(host, *step) for step in steps]
            state = host.state()
            reached = state.get("state") == end and state.get("is_final") is True
            checks.that(reached, f"the template `{name}` is walked to `{end}`", (state, went))
    finally:
        gateway.end()
        home.stop()


def walk_step(host, kind, *given):
    if kind == "shell":
        return by_hand(host, *given)
    if kind in ("read", "write", "edit"):
        return getattr(host, kind)(*given)
    event, data = given
    answer = host.transition(event, data=data)
    if kind == "ask":
        host.home.operator("POST", f"/approvals/{answer['approval_id']}/approve", {})
    return answer


def main():
    program, scratch, *names = sys.argv[1:]
    # An end from outside is an end like any other: the daemons go too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    checks = Checks()
    began = time.monotonic()
    for kind in (ClaudeCode, Codex, Cursor, Gemini):
        if not names or kind.name in names:
            walk(kind, program, scratch, checks)
    # The others are walked for real by scripts/real-hosts-test; of this one there is only the stand-in.
    if not names or Cursor.name in names:
        templates(Cursor, program, scratch, checks)
    print(f"{checks.done} checks, {checks.failures} failed, {time.monotonic() - began:.0f} s")
    sys.exit(1 if checks.failures else 0)


if __name__ == "__main__":
    main()
