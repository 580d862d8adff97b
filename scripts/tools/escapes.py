"""Ways out of a build that runs other people's code: a build script of cargo and a lifecycle script of npm try what such
code should not be able to do, as judged calls of an enforced session. The outside must be as before.

    escapes.py INTERLOCK KEPT BASE

BASE as for `walk.py`. Each attempt leaves a mark that only its success can leave. The same code is run without Interlock
first: an attempt that does not work there would prove nothing.
"""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
import time

from walk import Ground

# One program for both: build scripts run it, and it tells what worked, one name in a line.
ATTEMPTS = r'''
import os, socket, subprocess, sys

out, user, project, port, mark = sys.argv[1:6]
worked = []


def attempt(name):
    def run(body):
        try:
            body()
            worked.append(name)
        except Exception:
            pass
    return run


def put(path, text="escaped\n"):
    with open(path, "a") as file:
        file.write(text)


def read(path):
    with open(path) as file:
        assert file.read().startswith("secret")


def connect(kind, where):
    with socket.socket(kind, socket.SOCK_STREAM) as end:
        end.settimeout(3)
        end.connect(where)


def replace_directory(path):
    os.rename(path, path + ".old")
    os.mkdir(path)
    put(os.path.join(path, "escaped"))


@attempt("write in the home directory")
def _():
    put(user + "/written")


@attempt("write beside the project")
def _():
    put(os.path.dirname(project) + "/beside")


@attempt("write a start file")
def _():
    put(user + "/.profile")


@attempt("write among the user's programs")
def _():
    put(user + "/.cargo/bin/cargo-escaped")


@attempt("read a key")
def _():
    read(user + "/.ssh/id_rsa")


@attempt("read the project's .env")
def _():
    read(project + "/.env")


@attempt("connect to a port of the machine")
def _():
    connect(socket.AF_INET, ("127.0.0.1", int(port)))


@attempt("connect to a socket in the home directory")
def _():
    connect(socket.AF_UNIX, user + "/agent.sock")


@attempt("connect to an abstract socket")
def _():
    connect(socket.AF_UNIX, "\0" + mark)


@attempt("write a hook of git")
def _():
    put(project + "/.git/hooks/post-checkout", "#!/bin/sh\n")


@attempt("replace the hooks of git")
def _():
    replace_directory(project + "/.git/hooks")


@attempt("write settings of the host")
def _():
    put(project + "/.claude/settings.json")


@attempt("replace the settings of the host")
def _():
    replace_directory(project + "/.claude")


@attempt("signal a process outside")
def _():
    with open(user + "/outside.pid") as file:
        os.kill(int(file.read()), 0)


# Whether it outlives the call is seen from outside.
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", mark], start_new_session=True,
                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
with open(out, "w") as file:
    file.write("".join(name + "\n" for name in worked))
'''

CARGO = {
    "Cargo.toml": '[package]\nname = "way"\nversion = "0.1.0"\nedition = "2021"\nbuild = "build.rs"\n\n[workspace]\n',
    "src/lib.rs": "//! Nothing.\n",
    "build.rs": 'fn main() {\n    let status = std::process::Command::new("sh").arg("try.sh").status();\n'
                '    assert!(status.unwrap().success());\n}\n',
}
NPM = {
    "package.json": '{"name": "way", "version": "1.0.0", "scripts": {"preinstall": "sh try.sh", "test": "sh try.sh"}}\n',
}
# The project, and a line that runs its code, in whatever profile the ruling chooses.
WAYS = [
    ("cargo", CARGO, "cargo build --offline"),
    ("cargo", CARGO, "cargo test --offline"),
    ("npm", NPM, "npm install --offline --no-audit --no-fund"),
    ("npm", NPM, "npm test"),
    ("npm", NPM, "node -e \"require('child_process').execSync('sh try.sh')\""),
]


class Outside:
    """What nobody should reach: listeners, a process, files. It remembers how everything was."""

    def __init__(self, ground):
        self.user = ground.user
        self.heard = []
        (self.user / ".ssh").mkdir(mode=0o700)
        (self.user / ".ssh" / "id_rsa").write_text("secret\n")
        (self.user / ".cargo" / "bin").mkdir(parents=True, exist_ok=True)
        self.mark = f"escape-{os.getpid()}"
        tcp = socket.create_server(("127.0.0.1", 0))
        self.port = tcp.getsockname()[1]
        path, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        # A long path is no address: from within the directory it is short.
        here = os.getcwd()
        os.chdir(self.user)
        path.bind("agent.sock")
        os.chdir(here)
        abstract.bind("\0" + self.mark)
        for name, listener in (("tcp", tcp), ("path", path), ("abstract", abstract)):
            listener.listen()
            threading.Thread(target=self.listen, args=(name, listener), daemon=True).start()
        self.process = subprocess.Popen(["sleep", "3600"])
        (self.user / "outside.pid").write_text(str(self.process.pid))

    def listen(self, name, listener):
        while True:
            listener.accept()[0].close()
            self.heard.append(name)

    def left(self):
        """Processes that bear the mark, by their numbers."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and self.mark.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                pass
        return found

    def end_left(self):
        for process in self.left():
            os.kill(process, 9)

    def files(self, project):
        """Everything outside of the project, and what in it must stay; of caches and our own files, nothing."""
        kept = {}
        passing = {".interlock", ".cache", ".npm", ".tools", "work"}
        for top in self.user.iterdir():
            if top.name not in passing:
                for path in [top, *top.rglob("*")]:
                    if path.is_file() and "registry" not in path.parts and path.name not in CARGO_S_OWN:
                        kept[str(path)] = path.read_bytes()
        for top in (project / ".git", project / ".claude", project / ".env"):
            for path in [top, *top.rglob("*")]:
                kept[str(path)] = path.read_bytes() if path.is_file() else None
        for path in project.parent.iterdir():
            kept[str(path)] = None
        return kept


# What cargo notes for itself, when it is run without Interlock.
CARGO_S_OWN = {".package-cache", ".package-cache-mutate", ".global-cache", ".crates.toml", ".crates2.json"}


def project_of(ground, name, files, outside, number):
    project = ground.user / "work" / f"{name}-{number}"
    shutil.rmtree(project, ignore_errors=True)
    for path, text in files.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(text)
    (project / "try.py").write_text(ATTEMPTS)
    words = ["worked.txt", ground.user, project, outside.port, outside.mark]
    (project / "try.sh").write_text(f"exec python3 try.py {' '.join(map(str, words))}\n")
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").write_text("{}\n")
    subprocess.run(["git", "init", "-q", str(project)], check=True, env=ground.environment)
    (project / ".git" / "hooks").mkdir(exist_ok=True)
    subprocess.run(["git", "add", "-A"], cwd=project, check=True, env=ground.environment)
    (project / ".env").write_text("secret\n")
    return project


def told(project):
    file = project / "worked.txt"
    return file.read_text().splitlines() if file.exists() else None


def clean(ground, outside):
    """Takes away what the attempts left that were let."""
    outside.end_left()
    for path in (ground.user / "written", ground.user / "work" / "beside", ground.user / ".cargo/bin/cargo-escaped"):
        path.unlink(missing_ok=True)
    (ground.user / ".profile").write_text("# nothing\n")


def tried(ground, outside, number, way):
    """What went wrong with one way, in words."""
    name, files, line = way
    project = project_of(ground, name, files, outside, number)
    code, said = ground.plain(project, line)
    all_of_them = ATTEMPTS.count("@attempt(")
    worked = told(project) or []
    wrong = []
    if len(worked) != all_of_them or not outside.left():
        wrong.append(f"without Interlock only {len(worked)} of {all_of_them} worked (exit {code}): {worked}\n{said[-500:]}")
    clean(ground, outside)
    project = project_of(ground, name, files, outside, number)
    ground.enforce(project)
    time.sleep(0.2)
    outside.heard.clear()
    before = outside.files(project)
    code, said = ground.judged(project, line)
    worked = told(project)
    if worked is None:
        wrong.append(f"the attempts did not run (exit {code}): {said[-500:]}")
    wrong += [f"worked: {one}" for one in worked or []]
    wrong += [f"somebody reached the outside: {one}" for one in outside.heard]
    after = outside.files(project)
    wrong += [f"changed: {path}" for path in sorted(before.keys() | after.keys())
              if before.get(path, 0) != after.get(path, 0)]
    if outside.left():
        wrong.append("a process was left behind")
        outside.end_left()
    return wrong


def main():
    program, kept, base = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    ground = Ground(program, kept, base, with_python=False)
    outside = Outside(ground)
    failed = 0
    try:
        for number, way in enumerate(WAYS):
            wrong = tried(ground, outside, number, way)
            print(f"{'ok  ' if not wrong else 'FAIL'} ways out of `{way[2]}`", flush=True)
            for one in wrong:
                print(f"     {one}", flush=True)
            failed += bool(wrong)
    finally:
        outside.process.kill()
        ground.home.stop()
    sys.exit(1 if failed else 0)


main()
