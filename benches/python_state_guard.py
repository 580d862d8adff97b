"""What the state guard costs from Python: ratios to json.loads and to the qwed package, within one run.

    benches/python            makes the environments and runs this in them

The two versions of qwed cannot live in one interpreter, so each runs as a child process that answers requests on a
pipe; rounds are interleaved, and the least time of each contender counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import limits

SCHEMA = {
    "type": "object",
    "properties": {
        "agent_id": {"type": "string"},
        "status": {"type": "string", "enum": ["pending", "running", "completed"]},
        "step_count": {"type": "integer"},
        "tasks": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "done": {"type": "boolean"}},
                "required": ["id", "done"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["agent_id", "status", "step_count", "tasks"],
    "additionalProperties": False,
}
RULES = {
    "immutable_paths": ["$.agent_id"],
    "monotonic_integer_paths": ["$.step_count"],
    "ordered_enum_paths": {"$.status": ["pending", "running", "completed"]},
    "keyed_object_array_paths": {"$.tasks": {"key": "id", "monotonic_boolean_fields": ["done"], "allow_new_items": True}},
}
SIZES = [("132 B", 132), ("10 KB", 10_000), ("1 MB", 1_000_000)]
ROUNDS = 30


def task_list(size: int, step: int) -> str:
    tasks: list[dict[str, object]] = []
    length = 0
    while len(tasks) < 2 or length < size - 70:
        number = len(tasks) + 1
        tasks.append({"id": f"task-{number}", "done": number % (4 // step) == 0})
        length += 2 + len(json.dumps(tasks[-1]))
    return json.dumps({"agent_id": "a1", "status": "running", "step_count": step, "tasks": tasks})


def contenders(kind: str) -> dict[str, object]:
    if kind == "json":
        return {"payload": lambda current, proposed: json.loads(proposed),
                "transition": lambda current, proposed: (json.loads(current), json.loads(proposed))}
    if kind == "interlock":
        from interlock import AgentStateGuard
    else:
        from qwed_new.guards.agent_state_guard import AgentStateGuard
    guard = AgentStateGuard(SCHEMA, RULES)
    for current, proposed in [(task_list(132, 1), task_list(132, 2))]:
        assert guard.verify_state_payload(proposed)["verified"]
        assert guard.verify_state_transition(current, proposed)["verified"]
    return {"payload": lambda current, proposed: guard.verify_state_payload(proposed),
            "transition": guard.verify_state_transition}


def serve(kind: str) -> None:
    """A child: reads `measure size count`, answers with seconds per call."""
    runs = contenders(kind)
    texts = {size: (task_list(size, 1), task_list(size, 2)) for _, size in SIZES}
    for line in sys.stdin:
        measure, size, count = line.split()
        run, (current, proposed) = runs[measure], texts[int(size)]
        start = time.perf_counter()
        for _ in range(int(count)):
            run(current, proposed)  # type: ignore[operator]
        print((time.perf_counter() - start) / int(count), flush=True)


class Child:
    def __init__(self, python: str, kind: str) -> None:
        environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
        self.process = subprocess.Popen([python, __file__, "--serve", kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env=environment)

    def time(self, measure: str, size: int, count: int) -> float:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{measure} {size} {count}\n")
        self.process.stdin.flush()
        while True:
            line = self.process.stdout.readline()
            try:
                return float(line)
            except ValueError:
                assert line, "a child died"


def main(python: str, python_old: str, python_new: str) -> None:
    children = {"json.loads": Child(python, "json"), "interlock": Child(python, "interlock"),
                "qwed 5.1.2": Child(python_old, "qwed"), "qwed, newest": Child(python_new, "qwed")}
    print("| size | measure | json.loads | interlock | of json.loads | qwed 5.1.2 | qwed newest |")
    kept = True
    print("|---|---|---|---|---|---|---|")
    for name, size in SIZES:
        for measure in ("payload", "transition"):
            best = {contender: float("inf") for contender in children}
            for child in children.values():
                child.time(measure, size, 3)
            counts = {contender: max(1, min(5000, int(0.02 / max(child.time(measure, size, 3), 1e-9))))
                      for contender, child in children.items()}
            for _ in range(ROUNDS):
                for contender, child in children.items():
                    best[contender] = min(best[contender], child.time(measure, size, counts[contender]))
            ours = best["interlock"]
            print(f"| {name} | {measure} | {best['json.loads'] * 1e6:.1f} µs | {ours * 1e6:.1f} µs | {ours / best['json.loads']:.2f}x "
                  f"| {best['qwed 5.1.2'] / ours:.1f}x | {best['qwed, newest'] / ours:.1f}x |", flush=True)
            for limit, figure in (("python-loads", ours / best["json.loads"]), ("python-qwed-5", best["qwed 5.1.2"] / ours),
                                  ("python-qwed-newest", best["qwed, newest"] / ours)):
                kept = limits.judge(limit, figure) and kept
    for child in children.values():
        child.process.kill()
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2])
    else:
        main(*sys.argv[1:4])
