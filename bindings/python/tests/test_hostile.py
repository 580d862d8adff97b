"""Whatever a method is given, it answers; and what it cannot verify is BLOCKED."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

from conftest import RULES, SCHEMA

from interlock import AgentStateGuard

GOOD = '{"agent_id":"a1","status":"pending","step_count":1,"tasks":[{"done":false,"id":"t"}]}'


class Rude(str):
    """A string that lies about itself."""

    def __len__(self) -> int:
        raise RuntimeError("no length for you")

    def isspace(self) -> bool:
        raise RuntimeError("no answer for you")

    def __str__(self) -> str:
        raise RuntimeError("no text for you")


class RudePath:
    def __fspath__(self) -> str:
        raise KeyboardInterrupt


def assert_blocked(answer: Any, code: str | None = None) -> None:
    assert type(answer) is dict
    assert list(answer) == ["verified", "status", "error_code", "message"]
    assert answer["verified"] is False and answer["status"] == "BLOCKED"
    assert answer["message"].startswith("Blocked: ")
    if code is not None:
        assert answer["error_code"] == f"QWED-AGENT-STATE-{code}", answer


def test_what_is_no_text_is_101(guard: AgentStateGuard) -> None:
    for given in [None, b"{}", bytearray(b"{}"), 1, 1.5, {}, [], object(), Exception, "", " \n\t\u2003\x1c", GOOD.encode()]:
        assert_blocked(guard.verify_state_payload(given), "101")  # type: ignore[arg-type]
        assert_blocked(guard.verify_state_transition(given, GOOD), "105")  # type: ignore[arg-type]
        assert_blocked(guard.verify_state_transition(GOOD, given), "101")  # type: ignore[arg-type]


def test_strings_that_lie_are_read_for_what_they_are(guard: AgentStateGuard) -> None:
    assert guard.verify_state_payload(Rude(GOOD))["verified"]
    assert_blocked(guard.verify_state_payload(Rude("")), "101")


def test_surrogates_are_102(guard: AgentStateGuard) -> None:
    for text in ["\ud800", '{"agent_id": "\udfff"}', '"\\ud800"', GOOD + "\udc80"]:
        assert_blocked(guard.verify_state_payload(text), "102")


def test_gigabytes_are_refused_without_being_read(guard: AgentStateGuard) -> None:
    for text in ["x" * 2**30, "\u20ac" * 2**28]:
        assert_blocked(guard.verify_state_payload(text), "102")
        assert_blocked(guard.verify_state_transition(text, GOOD), "105")
    assert_blocked(guard.verify_state_payload(" " * 2**25), "101")


def test_targets_that_are_no_targets_are_107(guard: AgentStateGuard, tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    (tmp_path / "loop.json").symlink_to("loop.json")
    targets: list[Any] = [
        None, 1, b"/tmp/x.json", "", "x.json", "/tmp/x.json\0", str(tmp_path / "a\0.json"), str(tmp_path / "\ud800.json"),
        str(loop / "x.json"), str(tmp_path / "loop.json"), str(tmp_path / "x.txt"), str(tmp_path), "/" + "x" * 5000 + ".json",
        str(tmp_path / ("n" * 300 + ".json")), RudePath(), object(), str(tmp_path / ".." / "x.json"), "/proc/self/fd/0.json",
    ]
    for target in targets:
        assert_blocked(guard.verify_transition_and_commit_state(GOOD, GOOD, target), "107")
    assert guard.verify_transition_and_commit_state(GOOD, GOOD, tmp_path / "path.json")["verified"]  # type: ignore[arg-type]
    assert sorted(os.listdir(tmp_path)) == ["loop", "loop.json", "path.json"]


def hostile(draw: random.Random) -> Any:
    """Something no honest caller sends."""
    kind = draw.randrange(8)
    if kind == 0:
        return draw.choice([None, True, 0, -1.5, b"", b"{}", [], {}, (), object(), float("nan"), 10**50])
    if kind == 1:
        return "".join(chr(draw.choice([draw.randrange(128), draw.randrange(0x110000)])) for _ in range(draw.randrange(40)))
    if kind == 2:
        return "".join(draw.choice('{}[]",:0123456789eE+-.truefalsnN\\u \t\n') for _ in range(draw.randrange(60)))
    text = list(GOOD)
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(text))
        if kind == 3:
            del text[at]
        elif kind == 4:
            text[at] = chr(draw.randrange(0x3000))
        elif kind == 5:
            text.insert(at, draw.choice(["{", "[", '"', ",", "\\", "\ud83d", "\0", "1e999999999", "NaN", "Infinity"]))
        elif kind == 6:
            text = text[:at] or ["{"]
        else:
            text = text[at:] + text[:at]
    return "".join(text)


def test_a_hundred_thousand_hostile_inputs_never_raise(tmp_path: Path) -> None:
    draw = random.Random(20_261_115)
    guard = AgentStateGuard(SCHEMA, RULES, [str(tmp_path)])
    verified = 0
    for number in range(100_000):
        given = hostile(draw)
        method = number % 4
        if method == 0:
            answer = guard.verify_state_payload(given)
        elif method == 1:
            answer = guard.verify_state_transition(given, GOOD)
        elif method == 2:
            answer = guard.verify_state_transition(GOOD, given)
        else:
            answer = guard.verify_transition_and_commit_state(GOOD, GOOD, hostile(draw))
        if answer["verified"]:
            # Some mutations leave a state as good as before; such an answer must be a whole one.
            assert answer["status"] == "VERIFIED" and "agent_id" in answer["normalized_state"]
            verified += 1
        else:
            assert_blocked(answer)
    assert verified < 3_000
    assert os.listdir(tmp_path) == []
