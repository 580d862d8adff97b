"""What the tests share: the guard of the documentation and a canonical writer that shares no code with ours."""

from __future__ import annotations

import unicodedata
from decimal import Decimal
from pathlib import Path

import pytest

from interlock import AgentStateGuard

REPOSITORY = Path(__file__).resolve().parents[3]

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
    "keyed_object_array_paths": {
        "$.tasks": {"key": "id", "monotonic_boolean_fields": ["done"], "allow_new_items": True}
    },
}


@pytest.fixture
def guard(tmp_path: Path) -> AgentStateGuard:
    return AgentStateGuard(SCHEMA, RULES, [str(tmp_path)])


def canonical(value: object) -> str:
    """The canonical text of a decision's state, written from the documentation alone."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return format(value, "d") if abs(value) < 10**600 else long_integer(value)
    if isinstance(value, Decimal):
        text = str(value)
        return "0" if text == "-0" else text
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    assert type(value) is dict
    names = {unicodedata.normalize("NFC", key): item for key, item in value.items()}
    return "{" + ",".join(f"{quoted(key)}:{canonical(names[key])}" for key in sorted(names)) + "}"


def long_integer(value: int) -> str:
    """All digits, in parts that Python is willing to print."""
    sign, value, parts = ("-" if value < 0 else ""), abs(value), []
    while value:
        value, part = divmod(value, 10**500)
        parts.append(f"{part:0500d}")
    return sign + "".join(reversed(parts)).lstrip("0")


def quoted(text: str) -> str:
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    out = []
    for character in unicodedata.normalize("NFC", text):
        if character in short:
            out.append(short[character])
        elif " " <= character <= "~":
            out.append(character)
        else:
            units = character.encode("utf-16-be")
            out.extend(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
    return '"' + "".join(out) + '"'
