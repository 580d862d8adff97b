"""The shipped workflows, each walked to its end: what an agent does in every phase, in words that any host has.

A step is `("read", path)`, `("write", path, text)`, `("edit", path, old, new)`, `("shell", line)`, `("go", event, data)`, or
`("ask", event, data)` for a transition that a person has to agree to.
"""

import os

DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../crates/interlock-workflow/src/templates")

# What the projects hold in which the templates are walked. Every target leaves a trace, so that it is seen to have run.
FILES = {
    "sums.py": "def add(a, b):\n    return a - b\n",
    "Makefile": (
        "test:\n\t@grep -q 'return a + b' sums.py\n"
        "lint:\n\t@grep -q def sums.py\n"
        "health:\n\t@test -e rolled-back\n"
        "rollback:\n\t@touch rolled-back\n"
        "migrate-copy:\n\t@cp migration.sql copied\n"
        "migrate:\n\t@cp migration.sql applied\n"
        "migrate-check:\n\t@cmp -s copied applied\n"
    ),
}
MEND = ("edit", "sums.py", "    return a - b", "    return a + b")

# In the order in which one project can go through them: the bug is mended first.
WALKS = {
    "bugfix": ("completed", [
        ("read", "sums.py"), ("go", "UNDERSTOOD", {"cause": "sums.py, line 2"}),
        ("write", "test_sums.py", "import sums\nassert sums.add(1, 2) == 3\n"), ("shell", "make test"),
        ("go", "REPRODUCED", {}), MEND, ("shell", "make test"), ("go", "FIXED", {}),
    ]),
    "feature": ("completed", [
        ("read", "sums.py"), ("ask", "PLANNED", {"plan": "a file more"}), ("write", "feature.py", "import sums\n"),
        ("go", "BUILT", {}), ("shell", "make test"), ("shell", "make lint"), ("go", "VERIFIED", {}),
    ]),
    "incident": ("resolved", [
        ("shell", "make health"), ("ask", "HYPOTHESIS", {"hypothesis": "the last version"}), ("shell", "make rollback"),
        ("shell", "make health"), ("go", "MITIGATED", {}), ("write", "docs/incident.md", "It was rolled back.\n"),
        ("go", "REPORTED", {}),
    ]),
    "migration": ("completed", [
        ("read", "sums.py"), ("go", "PLANNED", {"rollback": "remove it"}), ("write", "migration.sql", "select 1;\n"),
        ("shell", "make migrate-copy"), ("ask", "REHEARSED", {}), ("shell", "make migrate"), ("go", "APPLIED", {}),
        ("shell", "make migrate-check"), ("go", "CHECKED", {}),
    ]),
    "research": ("completed", [
        ("go", "FRAMED", {"question": "why"}), ("go", "GATHERED", {"sources": 3}), ("write", "report.md", "Because.\n"),
        ("go", "WRITTEN", {}), ("go", "CHECKED", {"unsupported_claims": 0}),
    ]),
    "review": ("approved", [
        ("shell", "git status"), ("go", "SCOPED", {"scope": "sums.py"}), ("read", "sums.py"),
        ("go", "READ", {"findings": 0}), ("shell", "make test"), ("go", "REPORT", {}),
    ]),
}


def template(name):
    return os.path.abspath(os.path.join(DIRECTORY, name + ".yaml"))


def approve_all(home):
    """A person agrees to whatever waits; how many that was."""
    _, answer = home.operator("GET", "/approvals?status=pending")
    waiting = [one["approval_id"] for one in answer["approvals"]]
    for approval in waiting:
        home.operator("POST", f"/approvals/{approval}/approve", {})
    return len(waiting)
