"""Every case of conformance/ through the Python package."""

from __future__ import annotations

import hashlib
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, canonical

from interlock import AgentStateGuard

OPEN_SCHEMA = {"type": "object", "properties": {}, "additionalProperties": True}


def load() -> list[Any]:
    top = REPOSITORY / "conformance"
    cases = []
    for path in sorted(top.rglob("*")):
        # The cases of the action gate, of rate limits, tool calls, workflows, MCP and verifiers are not for this package.
        elsewhere = ("gate", "rate", "calls", "workflow", "mcp-control", "math", "sql", "shell")
        if path.is_dir() or path.name == "README.md" or path.relative_to(top).parts[0] in elsewhere:
            continue
        assert path.suffix == ".toml", f"{path} is read by nobody"
        for case in tomllib.loads(path.read_text())["case"]:
            cases.append(pytest.param(case, id=f"{path.relative_to(top)}: {case['name']}"))
    assert len(cases) > 300
    return cases


class NotAPythonValue(Exception):
    """The case gives JSON that no Python object can stand for."""


def python_value(text: str) -> Any:
    """JSON as Python objects, numbers exact."""
    import json

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in members}) != len(members):
            raise NotAPythonValue
        return dict(members)

    def literal(text: str) -> Any:
        return Decimal(text)

    try:
        return json.loads(text, parse_float=literal, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise NotAPythonValue from error


def proposed(case: dict[str, Any]) -> str:
    if "proposed" in case:
        return str(case["proposed"])
    if "proposed_hex" in case:
        # What is not UTF-8 arrives in Python as lone surrogates.
        return bytes.fromhex(case["proposed_hex"]).decode("utf-8", "surrogateescape")
    repeat = case["proposed_repeat"]
    return str(repeat["before"] + repeat["unit"] * repeat["count"] + repeat["after"])


def place(commit: dict[str, Any], scratch: Path) -> tuple[str, list[str]]:
    root, outside = scratch / "root", scratch / "outside"
    root.mkdir()
    outside.mkdir()

    def fill(text: str) -> str:
        return text.replace("{root}", str(root)).replace("{outside}", str(outside))

    for directory in commit.get("directories", []):
        (root / directory).mkdir(parents=True)
    for name, contents in commit.get("files", {}).items():
        (root / name).write_text(contents)
    for name, to in commit.get("links", {}).items():
        (root / name).symlink_to(fill(to))
    return fill(commit["target"]), [fill(path) for path in commit.get("roots", ["{root}"])]


def read(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError):
        return None


@pytest.mark.parametrize("case", load())
def test_case(case: dict[str, Any], tmp_path: Path) -> None:
    expect = case["expect"]
    target, roots = place(case["commit"], tmp_path) if "commit" in case else (None, None)
    try:
        schema = python_value(case["schema"]) if "schema" in case else OPEN_SCHEMA
        rules = python_value(case["rules"]) if "rules" in case else None
    except NotAPythonValue:
        assert "error" in expect, "only a configuration that is refused may be impossible in Python"
        return
    if "error" in expect:
        with pytest.raises(ValueError) as raised:
            AgentStateGuard(schema, rules, roots)
        assert expect["error"] in str(raised.value)
        return
    guard = AgentStateGuard(schema, rules, roots)
    before = read(target) if target else None
    if target is not None:
        answer = guard.verify_transition_and_commit_state(case["current"], proposed(case), target)
    elif "current" in case:
        answer = guard.verify_state_transition(case["current"], proposed(case))
    else:
        answer = guard.verify_state_payload(proposed(case))
    check(case, answer)
    if target is not None:
        assert read(target) == (expect["file"].encode() if "file" in expect else before)


def check(case: dict[str, Any], answer: dict[str, Any]) -> None:
    expect = case["expect"]
    assert answer["status"] == expect["status"], answer.get("message")
    if answer["status"] == "BLOCKED":
        assert list(answer) == ["verified", "status", "error_code", "message"]
        assert answer["verified"] is False
        assert answer["error_code"] == expect["code"], answer["message"]
        assert answer["message"].startswith("Blocked: ")
        assert expect.get("message", "") in answer["message"]
        assert expect.get("at", "") in answer["message"]
        return
    assert answer["verified"] is True
    keys = {"verified", "status", "proof", "proof_ref", "developer_fields", "normalized_state"}
    keys |= {"normalized_previous_state"} if "current" in case else set()
    keys |= {"transition_proof_ref", "committed_path", "committed_bytes"} if "commit" in case else set()
    assert set(answer) == keys
    if len(proposed(case)) > 2_000_000:
        return
    text = canonical(answer["normalized_state"])
    assert text == expect.get("canonical", text)
    previous = canonical(answer["normalized_previous_state"]) if "current" in case else None
    if "commit" in case:
        proven = text
        assert answer["committed_bytes"] == len(text)
    elif previous is not None:
        proven = f'{{"normalized_previous_state":{previous},"normalized_state":{text}}}'
    else:
        proven = f'{{"normalized_state":{text}}}'
    assert answer["proof_ref"] == "sha256:" + hashlib.sha256(proven.encode()).hexdigest()
    assert answer["proof_ref"] == expect.get("proof_ref", answer["proof_ref"])
