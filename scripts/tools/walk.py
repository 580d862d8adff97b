"""Runs every line of `lines.toml` twice, each time in fresh copies: by bash as Claude Code hands it over, and as a judged
call of an enforced session through hook and shell prefix. How both ended is compared.

    walk.py INTERLOCK KEPT BASE [--root] [NAME…]

BASE is an own directory outside of temporary files; everything is made beneath it, and whoever made it takes it away.
"""

import itertools
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib

from interlock import Home

HERE = pathlib.Path(__file__).resolve().parent
LEAST_PERCENT = 97
LINE_SECONDS_MAX = 300


class Ground:
    """A user's home directory, with Interlock set up in it as a person would."""

    def __init__(self, program, kept, base, with_python=True):
        self.kept, self.base = kept, base
        self.user = base / "user"
        self.numbers = itertools.count(1)
        (self.user / ".claude").mkdir(parents=True)
        (self.user / ".profile").write_text("# nothing\n")
        (self.user / ".gitconfig").write_text("[user]\n\tname = Test\n\temail = test@example.org\n")
        if (kept / "cargo").exists():
            shutil.copytree(kept / "cargo", self.user / ".cargo", symlinks=True)
        self.home = Home(program, str(self.user / ".interlock"))
        path = os.environ["PATH"]
        self.environment = {
            "HOME": str(self.user), "PATH": f"{self.user}/.tools/bin:{path}", "SHELL": "/bin/bash", "LANG": "C.UTF-8",
            "TERM": "dumb", "USER": "test", "CLAUDECODE": "1", "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        self.home.environment = self.environment
        self.prefix = f"{self.home.path}/bin/interlock-shell"
        if with_python:
            self.python()

    def python(self):
        """The packages that tests need, installed where people keep such things."""
        run = lambda *words: subprocess.run(words, check=True, env=self.environment, stdout=subprocess.DEVNULL)
        run(sys.executable, "-m", "venv", str(self.user / ".tools"))
        wheels = sorted(str(wheel) for wheel in (self.kept / "wheels").glob("*.whl"))
        run(str(self.user / ".tools/bin/python"), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", *wheels)

    def project(self, name, place=None):
        """A fresh copy of a package; always at the same path, because tools write paths down."""
        project = self.user / "work" / (place or name)
        shutil.rmtree(project, ignore_errors=True)
        project.parent.mkdir(exist_ok=True)
        subprocess.run(["cp", "-a", "--no-preserve=ownership", str(self.kept / "clean" / name), str(project)], check=True)
        return project

    def enforce(self, project):
        for command in (["init", "--yes"], ["enforce"]):
            done = subprocess.run([self.home.program, *command], cwd=project, env=self.environment,
                                  capture_output=True, text=True, check=False)
            if done.returncode not in (0, 1):
                sys.exit(f"interlock {' '.join(command)}: {done.stdout}{done.stderr}")
        self.home.daemon()

    def handed(self, line):
        """What Claude Code executes for a line, and the file by which it learns the directory."""
        file = f"/tmp/claude-{os.getpid():x}{next(self.numbers):x}-cwd"
        return f"eval {shlex.quote(line)} < /dev/null && pwd -P >| {file}", file

    def plain(self, project, line):
        text, file = self.handed(line)
        # Temporary files of its own, as a session has: others may run this at the same time, as another user.
        own = self.base / "tmp"
        own.mkdir(exist_ok=True)
        return self.ended(["env", f"TMPDIR={own}", "/bin/bash", "-c", text], project, file)

    def judged(self, project, line):
        """How a line ends as a call of a session; in words if it was not let through."""
        rewritten, said = self.asked(project, line)
        if rewritten is None:
            return "not run", said
        text, file = self.handed(rewritten)
        return self.ended([self.prefix, text], project, file)

    def asked(self, project, line):
        """The line with its ticket, as the hook has it; none if it was not let through, and what the hook said."""
        number = next(self.numbers)
        event = {
            "session_id": f"tools-{project.name}", "transcript_path": "/dev/null", "cwd": str(project),
            "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": "Bash",
            "tool_use_id": f"tools-{number}", "tool_input": {"command": line},
        }
        environment = self.environment | {"CLAUDE_CODE_SHELL_PREFIX": self.prefix}
        hook = [self.home.program, "hook", "claude-code", "--home", self.home.path]
        heard = subprocess.run(hook, input=json.dumps(event), capture_output=True, text=True, cwd=project,
                               env=environment, check=False)
        if heard.returncode != 0:
            return None, heard.stderr.strip()
        answer = json.loads(heard.stdout or "{}").get("hookSpecificOutput", {})
        return answer.get("updatedInput", {}).get("command"), heard.stdout.strip()

    def ended(self, words, project, file):
        # As a host does it: a group of its own, output by pipes.
        process = subprocess.Popen(words, cwd=project, env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            output, _ = process.communicate(timeout=LINE_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return "too long", output.decode(errors="replace")
        pathlib.Path(file).unlink(missing_ok=True)
        code = process.returncode
        # A shell says it of a child in this way.
        return (code if code >= 0 else 128 - code), output.decode(errors="replace")


def compared(ground, package):
    """Rows of line, how it ended plainly, how it ended judged, what it said then."""
    lines = [(one, 0) if isinstance(one, str) else one for one in package["lines"]]
    project = ground.project(package["name"])
    plain = []
    for line, code in lines:
        ended, said = ground.plain(project, line)
        # What fails anyway, and is not meant to, tells nothing.
        if ended != code:
            sys.exit(f"{package['name']}: `{line}` ended with {ended} and not {code} without Interlock:\n{said[-1000:]}")
        plain.append(ended)
    project = ground.project(package["name"])
    ground.enforce(project)
    judged = [ground.judged(project, line) for line, _ in lines]
    return [(line, before, *after) for (line, _), before, after in zip(lines, plain, judged)]


def main():
    words = [word for word in sys.argv[1:] if word != "--root"]
    program, kept, base, names = words[0], pathlib.Path(words[1]), pathlib.Path(words[2]), words[3:]
    as_root = "--root" in sys.argv
    listed = tomllib.loads((HERE / "lines.toml").read_text(encoding="utf-8"))["package"]
    listed = [one for one in listed if not as_root or one.get("root")]
    listed = [one for one in listed if not names or one["name"] in names]
    ground = Ground(program, kept, base)
    same = all_lines = 0
    try:
        print(f"{'package':<12} {'lines':>5} {'same':>5} {'s':>6}   as {'root' if as_root else 'an ordinary user'}")
        for package in listed:
            began = time.monotonic()
            rows = compared(ground, package)
            alike = sum(before == after for _, before, after, _ in rows)
            same, all_lines = same + alike, all_lines + len(rows)
            print(f"{package['name']:<12} {len(rows):>5} {alike:>5} {time.monotonic() - began:>6.1f}", flush=True)
            for line, before, after, said in rows:
                if before != after:
                    tail = "\n".join(said.strip().splitlines()[-6:])
                    print(f"  {line}\n    exit {before} without, {after} with Interlock", flush=True)
                    print("      " + tail[-1200:].replace("\n", "\n      "), flush=True)
    finally:
        ground.home.stop()
    percent = 100 * same / max(all_lines, 1)
    print(f"ended alike: {same} of {all_lines} lines ({percent:.1f} %; at least {LEAST_PERCENT} %)")
    sys.exit(0 if percent >= LEAST_PERCENT and all_lines else 1)


if __name__ == "__main__":
    main()
