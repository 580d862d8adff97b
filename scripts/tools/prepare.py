"""Gets the packages of `lines.toml` with the ordinary clients, and what they need, once; later runs take what is kept.

    prepare.py KEPT

In KEPT: `clean/NAME`, a repository for each package with its dependencies in it; `wheels`, for Python; `cargo`, what cargo
keeps in a home directory. Nothing here runs under Interlock.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
GIT = ["git", "-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "init.defaultBranch=main"]
SMALL = {
    "main.c": '#include <stdio.h>\n\nint main(void)\n{\n\tputs("hello");\n\treturn 0;\n}\n',
    "Makefile": "all: main\n\nmain: main.o\n\ntest: all\n\t./main | grep -q hello\n\nfail:\n\tfalse\n\n"
                "clean:\n\trm -f main main.o\n\n.PHONY: all test fail clean\n",
    "README": "A small program.\n\nIt says hello.\n",
    "run.sh": '#!/bin/sh\nexit "${1:-0}"\n',
    "test.mjs": 'import test from "node:test";\n\ntest("nothing", () => {});\n',
    "change.patch": "--- a/README\n+++ b/README\n@@ -1,3 +1,3 @@\n-A small program.\n+A very small program.\n \n"
                    " It says hello.\n",
    ".gitignore": "main\n*.o\n",
}


def run(*command, **more):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout


def from_npm(package, into, scratch):
    spec = f"{package['name']}@{package['version']}"
    run("npm", "pack", "--silent", spec, "--pack-destination", str(scratch), cwd=scratch)
    tarball = scratch / f"{package['name']}-{package['version']}.tgz"
    run("tar", "xzf", str(tarball), "--strip-components=1", "-C", str(into))
    # Only what is listed: what else the package lists for its own development is not needed here.
    run("npm", "pkg", "delete", "devDependencies", cwd=into)
    run("npm", "install", "--no-audit", "--no-fund", "--save-dev", "--save-exact", *package["with"],
        cwd=into)
    (into / ".gitignore").write_text("node_modules\n")


def from_pypi(package, into, scratch):
    spec = f"{package['name']}=={package['version']}"
    run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", package["name"],
        "--dest", str(scratch / "sdists"), spec)
    found = list((scratch / "sdists").glob(f"*{package['name'][1:]}-{package['version']}.tar.gz"))
    run("tar", "xzf", str(found[0]), "--strip-components=1", "-C", str(into))
    (into / ".gitignore").write_text("__pycache__\n*.so\nbuild\ndist\n*.egg-info\n.venv\n")


def from_crates(package, into, scratch, cargo_home):
    spec = package["name"], package["version"]
    environment = dict(os.environ, CARGO_HOME=str(cargo_home))
    asking = scratch / "asking"
    (asking / "src").mkdir(parents=True, exist_ok=True)
    (asking / "src" / "lib.rs").write_text("")
    (asking / "Cargo.toml").write_text(
        f'[package]\nname = "asking"\nversion = "0.0.0"\nedition = "2021"\n\n[dependencies]\n{spec[0]} = "={spec[1]}"\n')
    run("cargo", "fetch", cwd=asking, env=environment)
    found = next((cargo_home / "registry" / "src").glob(f"*/{spec[0]}-{spec[1]}"))
    shutil.copytree(found, into, dirs_exist_ok=True)
    (into / ".cargo-ok").unlink(missing_ok=True)
    run("cargo", "fetch", cwd=into, env=environment)
    (into / ".gitignore").write_text("target\n")


def made_here(into):
    for name, text in SMALL.items():
        (into / name).write_text(text)
    commit(into, "first")
    (into / "README").write_text(SMALL["README"] + "\nAnd nothing else.\n")
    (into / "change.patch").write_text(SMALL["change.patch"])


def commit(into, message):
    run(*GIT, "init", "-q", cwd=into)
    run(*GIT, "add", "-A", cwd=into)
    run(*GIT, "commit", "-q", "-m", message, cwd=into)


def is_kept(kept, name, asked):
    """Whether what was asked for was got already. Lines may change without the packages."""
    stamp = kept / "stamps" / name
    return stamp.exists() and stamp.read_text(encoding="utf-8") == repr(asked)


def keep(kept, name, asked):
    (kept / "stamps").mkdir(exist_ok=True)
    (kept / "stamps" / name).write_text(repr(asked), encoding="utf-8")


def get(package, kept, scratch):
    print(f"getting {package['name']} {package['version']}", flush=True)
    # Not where it will lie: beneath a workspace, cargo would take it for a part of that.
    into = scratch / package["name"]
    into.mkdir()
    if package["from"] == "npm":
        from_npm(package, into, scratch)
    elif package["from"] == "pypi":
        from_pypi(package, into, scratch)
    elif package["from"] == "crates":
        from_crates(package, into, scratch, kept / "cargo")
    else:
        made_here(into)
    commit(into, package["version"])
    shutil.rmtree(kept / "clean" / package["name"], ignore_errors=True)
    shutil.move(into, kept / "clean" / package["name"])


def main():
    kept = pathlib.Path(sys.argv[1]).resolve()
    listed = tomllib.loads((HERE / "lines.toml").read_text(encoding="utf-8"))
    (kept / "clean").mkdir(parents=True, exist_ok=True)
    if not is_kept(kept, "python", listed["python"]):
        shutil.rmtree(kept / "wheels", ignore_errors=True)
        run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest",
            str(kept / "wheels"), *listed["python"])
        keep(kept, "python", listed["python"])
    for package in listed["package"]:
        asked = {key: value for key, value in package.items() if key not in ("lines", "root")}
        if not is_kept(kept, package["name"], asked):
            with tempfile.TemporaryDirectory() as scratch:
                get(package, kept, pathlib.Path(scratch))
            keep(kept, package["name"], asked)


main()
