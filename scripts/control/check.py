"""Uses the control tools with the Python client of MCP, in every era it speaks.

Usage: check.py PATH_OF_INTERLOCK HOME PROJECT no-daemon|daemon
With `daemon` one runs in HOME, and scripts/control/workflow.json was started for claude-code in PROJECT, in its first
phase; each client leaves it there.
"""

import asyncio
import sys

from mcp import MCPError, StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client

NAMES = ["interlock_get_state", "interlock_transition"]
# What is asked for, and what comes of it: the probe finds the modern era, the handshake the newest legacy revision.
MODES = {"auto": "2026-07-28", "2026-07-28": "2026-07-28", "legacy": "2025-11-25"}


def no_answer(result) -> None:
    """A call that could not be decided is an error that the model can read, and says what to do."""
    said = result.content[0].text
    assert result.is_error, said
    assert said.startswith("Not done: the Interlock daemon does not run"), said
    assert "nothing was changed" in said and "interlock doctor" in said, said
    assert result.structured_content["reason"] in said, result.structured_content
    assert "next" in result.structured_content, result.structured_content


async def without_a_daemon(client) -> None:
    no_answer(await client.call_tool("interlock_get_state"))
    no_answer(await client.call_tool("interlock_transition", {"event": "e", "data": {"a": 1}, "expected_revision": 0}))
    # Several at once: answers find whoever asked.
    results = await asyncio.gather(*(client.call_tool("interlock_get_state") for _ in range(8)))
    for result in results:
        no_answer(result)


async def beside_a_daemon(client) -> None:
    """The state is read; what the workflow does not let happen is refused, and moves nothing; the rest is done."""

    async def state(expected: str) -> int:
        result = await client.call_tool("interlock_get_state")
        said = result.structured_content
        assert not result.is_error and said["state"] == expected and said["workflow"] == "control", result
        assert f"`{expected}`" in result.content[0].text, result
        return said["revision"]

    async def ask(event: str, **more):
        result = await client.call_tool("interlock_transition", {"event": event, **more})
        return result.is_error, result.structured_content

    revision = await state("planning")
    for code, event, more in [
        ("INTERLOCK-WF-002", "NOWHERE", {}),
        ("INTERLOCK-WF-002", "DONE", {}),
        ("INTERLOCK-WF-003", "READY", {"data": {"plan": "none"}}),
        ("INTERLOCK-WF-005", "READY", {"data": {"plan": "written"}, "expected_revision": revision + 1}),
    ]:
        refused, said = await ask(event, **more)
        assert refused and said["code"] == code and said["state"] == "planning", (event, more, said)
        assert await state("planning") == revision
    refused, said = await ask("READY", data={"plan": "written"}, expected_revision=revision)
    assert not refused and said["transitioned"] and said["to"] == "building", said
    assert await state("building") == revision + 1
    # Of several at once with one revision exactly one moves it.
    results = await asyncio.gather(*(ask("BACK", expected_revision=revision + 1) for _ in range(8)))
    assert sorted(refused for refused, _ in results) == [False] + [True] * 7, results
    assert await state("planning") == revision + 2


async def check(mode: str, version: str, program: str, home: str, project: str, what: str) -> None:
    arguments = ["gateway", "--control-only", "--host", "claude-code", "--home", home]
    server = stdio_client(StdioServerParameters(command=program, args=arguments, cwd=project))
    async with Client(server, mode=mode) as client:
        assert client.protocol_version == version, client.protocol_version
        if mode != "2026-07-28":  # A pinned client asks nobody.
            assert client.server_info.name == "interlock", client.server_info
            assert "interlock_get_state" in client.instructions, client.instructions
            assert client.server_capabilities.tools is not None
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == NAMES, tools
        assert [tool.annotations.read_only_hint for tool in tools] == [True, False], tools
        assert all(tool.output_schema is None for tool in tools), tools
        await (beside_a_daemon if what == "daemon" else without_a_daemon)(client)
        wrong = await client.call_tool("interlock_transition", {"event": "e", "extra": 1})
        assert wrong.is_error and wrong.structured_content["code"] == "INTERLOCK-REQUEST-002", wrong
        try:
            await client.call_tool("interlock_stop")
        except MCPError as error:
            assert error.code == -32602, error
        else:
            raise AssertionError("an unknown tool was called")
    print(f"mcp (Python), {mode}: {version}, {what}")


for mode, version in MODES.items():
    asyncio.run(check(mode, version, *sys.argv[1:5]))
