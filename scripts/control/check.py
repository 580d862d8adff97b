"""Uses the control tools with the Python client of MCP, in every era it speaks.

Usage: check.py PATH_OF_INTERLOCK HOME, where no daemon runs in HOME
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


async def check(mode: str, version: str, program: str, home: str) -> None:
    arguments = ["gateway", "--control-only", "--host", "control-test", "--home", home]
    server = stdio_client(StdioServerParameters(command=program, args=arguments))
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
        no_answer(await client.call_tool("interlock_get_state"))
        no_answer(await client.call_tool("interlock_transition", {"event": "e", "data": {"a": 1}, "expected_revision": 0}))
        wrong = await client.call_tool("interlock_transition", {"event": "e", "extra": 1})
        assert wrong.is_error and wrong.structured_content["code"] == "INTERLOCK-REQUEST-002", wrong
        try:
            await client.call_tool("interlock_stop")
        except MCPError as error:
            assert error.code == -32602, error
        else:
            raise AssertionError("an unknown tool was called")
        # Two at once: answers find whoever asked.
        results = await asyncio.gather(*(client.call_tool("interlock_get_state") for _ in range(8)))
        for result in results:
            no_answer(result)
    print(f"mcp (Python), {mode}: {version}")


for mode, version in MODES.items():
    asyncio.run(asyncio.wait_for(check(mode, version, *sys.argv[1:3]), 60))
