// Uses the control tools with the TypeScript clients of MCP: the old one, which knows the legacy era only, and the new
// one in each era.
// Usage: check.mjs PATH_OF_INTERLOCK HOME, where no daemon runs in HOME
import assert from "node:assert/strict";
import { Client as NewClient } from "@modelcontextprotocol/client";
import { StdioClientTransport as NewTransport } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, home] = process.argv.slice(2);
const args = ["gateway", "--control-only", "--host", "control-test", "--home", home];
const us = { name: "control-test", version: "1" };

// A call that could not be decided is an error that the model can read, and says what to do.
const noAnswer = ({ isError, content, structuredContent }) => {
  assert.equal(isError, true);
  assert.match(content[0].text, /^Not done: the Interlock daemon does not run/);
  assert.match(content[0].text, /nothing was changed.*interlock doctor/);
  assert.ok(content[0].text.includes(structuredContent.reason));
};

const check = async (client, transport, title, version) => {
  const faults = [];
  client.onerror = (error) => faults.push(error);
  await client.connect(transport);
  if (version) assert.equal(client.getNegotiatedProtocolVersion(), version);
  assert.equal(client.getServerVersion().name, "interlock");
  assert.match(client.getInstructions(), /interlock_get_state/);
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map(({ name, annotations, outputSchema }) => [name, annotations.readOnlyHint, outputSchema]),
    [
      ["interlock_get_state", true, undefined],
      ["interlock_transition", false, undefined],
    ],
  );
  const call = (name, values) => client.callTool({ name, arguments: values });
  noAnswer(await call("interlock_get_state", {}));
  noAnswer(await call("interlock_transition", { event: "e", data: { a: 1 }, expected_revision: 0 }));
  const wrong = await call("interlock_transition", { event: "e", extra: 1 });
  assert.equal(wrong.isError, true);
  assert.equal(wrong.structuredContent.code, "INTERLOCK-REQUEST-002");
  await assert.rejects(call("interlock_stop", {}), { code: -32602 });
  (await Promise.all(Array.from({ length: 8 }, () => call("interlock_get_state", {})))).forEach(noAnswer);
  await client.close();
  assert.deepEqual(faults, []);
  console.log(title);
};

await check(new OldClient(us), new OldTransport({ command, args }), "@modelcontextprotocol/sdk: initialize");
for (const [mode, version] of [
  ["legacy", "2025-11-25"],
  ["auto", "2026-07-28"],
  [{ pin: "2026-07-28" }, "2026-07-28"],
]) {
  const client = new NewClient(us, { versionNegotiation: { mode } });
  const title = `@modelcontextprotocol/client, ${mode.pin ? "pinned" : mode}: ${version}`;
  await check(client, new NewTransport({ command, args }), title, version);
}
