"""The documented class, as its users use it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from conftest import REPOSITORY, RULES, SCHEMA

import interlock
from interlock import AgentStateGuard

CURRENT: dict[str, Any] = {"agent_id": "a1", "status": "pending", "step_count": 1, "tasks": [{"id": "task-1", "done": False}]}
PROPOSED = {
    "agent_id": "a1",
    "status": "running",
    "step_count": 2,
    "tasks": [{"id": "task-1", "done": True}, {"id": "task-2", "done": False}],
}


def test_the_three_phases(guard: AgentStateGuard, tmp_path: Path) -> None:
    current, proposed = json.dumps(CURRENT), json.dumps(PROPOSED)
    result = guard.verify_state_payload(current)
    assert result["verified"] is True and result["status"] == "VERIFIED"
    assert list(result["normalized_state"]) == ["agent_id", "status", "step_count", "tasks"]
    assert list(result["normalized_state"]["tasks"][0]) == ["done", "id"]

    result = guard.verify_state_transition(current, proposed)
    assert result["normalized_previous_state"] == CURRENT and result["normalized_state"] == PROPOSED

    target = tmp_path / "agent_a1.json"
    result = guard.verify_transition_and_commit_state(
        current_state_json=current, proposed_state_json=proposed, target_path=str(target)
    )
    assert result["verified"], result
    assert result["committed_path"] == str(target)
    assert result["committed_bytes"] == len(target.read_bytes())
    assert json.loads(target.read_text()) == PROPOSED
    assert result["proof_ref"] != result["transition_proof_ref"]

    again = guard.verify_transition_and_commit_state(current, proposed, str(target))
    assert again["error_code"] == "QWED-AGENT-STATE-107"


def test_numbers_are_exact() -> None:
    guard = AgentStateGuard({"type": "array", "items": {"type": "number"}})
    huge = 10**4000 + 7
    sys.set_int_max_str_digits(640)
    try:
        text = "[7.50, 1e2, -0, -0.0, 12345678901234567890, -98765432109876543210987654321, 1" + "0" * 3999 + "7]"
        state = guard.verify_state_payload(text)["normalized_state"]
    finally:
        sys.set_int_max_str_digits(4300)
    assert state[:2] == [Decimal("7.50"), Decimal("1E+2")]
    assert [str(number) for number in state[:2]] == ["7.50", "1E+2"]
    assert type(state[2]) is int and state[2] == 0
    assert str(state[3]) == "-0.0"
    assert state[4:] == [12345678901234567890, -98765432109876543210987654321, huge]
    assert all(type(number) in (int, Decimal) for number in state)
    printed = guard.verify_state_payload("[1e0, -0e0, 1.5e1, 1.50e1]")["normalized_state"]
    assert [(type(number), str(number)) for number in printed] == [(int, "1"), (int, "0"), (int, "15"), (Decimal, "15.0")]


def test_configuration_is_frozen() -> None:
    schema: dict[str, Any] = json.loads(json.dumps(SCHEMA))
    guard = AgentStateGuard(schema, RULES)
    schema["properties"]["extra"] = {"type": "string"}
    schema["type"] = "string"
    assert guard.verify_state_payload(json.dumps(CURRENT))["verified"]
    for mapping in (guard.required_schema, guard.required_schema["properties"], guard.transition_rules):
        assert isinstance(mapping, MappingProxyType)
        with pytest.raises(TypeError):
            mapping["type"] = "string"  # type: ignore[index]
    assert guard.required_schema["required"] == ("agent_id", "status", "step_count", "tasks")
    assert guard.transition_rules["immutable_paths"] == ("$.agent_id",)
    with pytest.raises(AttributeError):
        guard.required_schema = {}  # type: ignore[misc]
    bare = AgentStateGuard(SCHEMA)
    assert bare.transition_rules["keyed_object_array_paths"] == {} and bare.allowed_commit_roots == ()
    assert bare.verify_state_transition("{}", "{}")["error_code"] == "QWED-AGENT-STATE-104"


def test_constants_and_types() -> None:
    assert interlock.MAX_VALIDATION_DEPTH == 64 == AgentStateGuard.MAX_VALIDATION_DEPTH
    assert isinstance(interlock.__version__, str)
    assert AgentStateGuard(MappingProxyType({"type": "null"})).verify_state_payload("null")["verified"]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((None,), "must be a dictionary"),
        (([],), "must be a dictionary"),
        (("text",), "must be a dictionary"),
        ((object(),), "must be a dictionary"),
        (({},), "must declare a supported type"),
        (({"type": ["string"]},), "must declare a supported type"),
        (({"type": "object"},), "must define properties"),
        (({"type": "object", "properties": {1: {"type": "null"}}},), "must be non-empty strings"),
        (({"type": "object", "properties": {"": {"type": "null"}}},), "must be non-empty strings"),
        (({"type": "number", "minimum": float("nan")},), "cannot be used"),
        (({"type": "number", "minimum": Decimal("Infinity")},), "cannot be used"),
        (({"type": "string", "title": "\ud800"},), "valid Unicode"),
        (({"type": "string", "unknown": 1},), "contains unsupported keys"),
        ((SCHEMA, []), "Transition rules must be a dictionary"),
        ((SCHEMA, {"unknown": []}), "contain unsupported keys"),
        ((SCHEMA, {"immutable_paths": "$.a"}), "must be a list of JSON-style path strings"),
        ((SCHEMA, {"immutable_paths": ["a"]}), "paths must use dot-style JSON paths"),
        ((SCHEMA, {"ordered_enum_paths": {1: ["a", "b"]}}), "paths must use dot-style JSON paths"),
        ((SCHEMA, None, "/tmp"), "must be a list of strings"),
        ((SCHEMA, None, [1]), "must be a list of strings"),
        ((SCHEMA, None, [b"/tmp"]), "must be a list of strings"),
        ((SCHEMA, None, [""]), "must be non-empty strings"),
        ((SCHEMA, None, ["relative"]), "absolute"),
        ((SCHEMA, None, ["/tmp/\0"]), "absolute"),
    ],
)
def test_bad_constructor_arguments_raise_value_error(arguments: tuple[Any, ...], part: str) -> None:
    with pytest.raises(ValueError, match="(?s).*") as raised:
        AgentStateGuard(*arguments)
    assert type(raised.value) is ValueError
    assert part in str(raised.value)


def test_a_configuration_that_contains_itself_is_refused() -> None:
    schema: dict[str, Any] = {"type": "array"}
    schema["items"] = schema
    with pytest.raises(ValueError):
        AgentStateGuard(schema)

    class Odd(dict):  # type: ignore[type-arg]
        def items(self) -> Any:
            raise RuntimeError("no items for you")

    with pytest.raises(ValueError):
        AgentStateGuard(Odd(type="null"))


def test_numbers_that_lie_about_themselves_are_read_for_what_they_are() -> None:
    class Liar(int):
        def __str__(self) -> str:
            return "9999"

        __repr__ = __str__

    guard = AgentStateGuard({"type": "integer", "maximum": Liar(1)})
    assert guard.verify_state_payload("2")["status"] == "BLOCKED"


def test_the_depth_of_a_schema_reaches_beyond_that_of_a_state() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(70):
        schema = {"type": "object", "properties": {"a": schema}}
    guard = AgentStateGuard(schema)
    answer = guard.verify_state_payload('{"a":' * 70 + '"x"' + "}" * 70)
    assert answer["error_code"] == "QWED-AGENT-STATE-103"
    assert "exceeds maximum validation depth (64)" in answer["message"]


def test_the_interpreter_lock_is_released() -> None:
    guard = AgentStateGuard({"type": "array", "items": {"type": "integer"}})
    text = "[" + ",".join(["12345678901234"] * 900_000) + "]"
    order: list[str] = []

    def verify() -> None:
        assert guard.verify_state_payload(text)["verified"]
        order.append("verified")

    before = sys.getswitchinterval()
    # Nobody is asked to give up the lock for a quarter of an hour: whoever runs meanwhile was let in.
    sys.setswitchinterval(1000)
    try:
        thread = threading.Thread(target=verify)
        thread.start()
        order.append("meanwhile")
        thread.join()
    finally:
        sys.setswitchinterval(before)
    assert order == ["meanwhile", "verified"]


def test_one_guard_serves_many_threads(guard: AgentStateGuard, tmp_path: Path) -> None:
    target = str(tmp_path / "shared.json")
    first = json.dumps(CURRENT)
    assert guard.verify_transition_and_commit_state(first, first, target)["verified"]
    wins: list[int] = []

    def write(number: int) -> None:
        proposed = json.dumps({**CURRENT, "step_count": 2, "tasks": CURRENT["tasks"] + [{"id": f"t{number}", "done": True}]})
        if guard.verify_transition_and_commit_state(first, proposed, target)["verified"]:
            wins.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wins) == 1


def test_the_examples_in_the_package_run() -> None:
    import doctest

    results = doctest.testmod(interlock)
    assert results.attempted >= 4 and results.failed == 0


def test_the_shipped_example_runs() -> None:
    output = subprocess.run([sys.executable, REPOSITORY / "examples/state/verify.py"], capture_output=True, text=True)
    assert output.stdout.splitlines()[0].startswith("finished: VERIFIED sha256:"), output
    assert "reopened: BLOCKED Blocked: $.tasks[0].done regressed from True to False" in output.stdout
