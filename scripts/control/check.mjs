// Uses the control tools with the TypeScript clients of MCP: the old one, which knows the legacy era only, and the new
// one in each era.
// Usage: check.mjs PATH_OF_INTERLOCK HOME PROJECT no-daemon|daemon
// With `daemon` one runs in HOME, and scripts/control/workflow.json was started for claude-code in PROJECT, in its first
// phase; each client leaves it there.
import assert from "node:assert/strict";
import { Client as NewClient } from "@modelcontextprotocol/client";
import { StdioClientTransport as NewTransport } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, home, cwd, what] = process.argv.slice(2);
const args = ["gateway", "--control-only", "--host", "claude-code", "--home", home];
const us = { name: "control-test", version: "1" };

// A call that could not be decided is an error that the model can read, and says what to do.
const noAnswer = ({ isError, content, structuredContent }) => {
  assert.equal(isError, true);
  assert.match(content[0].text, /^Not done: the Interlock daemon does not run/);
  assert.match(content[0].text, /nothing was changed.*interlock doctor/);
  assert.ok(content[0].text.includes(structuredContent.reason));
};

const withoutADaemon = async (call) => {
  noAnswer(await call("interlock_get_state", {}));
  noAnswer(await call("interlock_transition", { event: "e", data: { a: 1 }, expected_revision: 0 }));
  (await Promise.all(Array.from({ length: 8 }, () => call("interlock_get_state", {})))).forEach(noAnswer);
};

// The state is read; what the workflow does not let happen is refused, and moves nothing; the rest is done.
const besideADaemon = async (call) => {
  const state = async (expected) => {
    const { isError, content, structuredContent } = await call("interlock_get_state", {});
    assert.ok(!isError);
    assert.equal(structuredContent.workflow, "control");
    assert.equal(structuredContent.state, expected);
    assert.ok(content[0].text.includes(`\`${expected}\``));
    return structuredContent.revision;
  };
  const ask = (event, more) => call("interlock_transition", { event, ...more });
  const revision = await state("planning");
  for (const [code, event, more] of [
    ["INTERLOCK-WF-002", "NOWHERE", {}],
    ["INTERLOCK-WF-002", "DONE", {}],
    ["INTERLOCK-WF-003", "READY", { data: { plan: "none" } }],
    ["INTERLOCK-WF-005", "READY", { data: { plan: "written" }, expected_revision: revision + 1 }],
  ]) {
    const { isError, structuredContent } = await ask(event, more);
    assert.equal(isError, true);
    assert.equal(structuredContent.code, code);
    assert.equal(await state("planning"), revision);
  }
  const moved = await ask("READY", { data: { plan: "written" }, expected_revision: revision });
  assert.ok(!moved.isError);
  assert.deepEqual([moved.structuredContent.transitioned, moved.structuredContent.to], [true, "building"]);
  assert.equal(await state("building"), revision + 1);
  // Of several at once with one revision exactly one moves it.
  const back = () => ask("BACK", { expected_revision: revision + 1 });
  const results = await Promise.all(Array.from({ length: 8 }, back));
  assert.equal(results.filter(({ isError }) => !isError).length, 1);
  assert.equal(await state("planning"), revision + 2);
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
  await (what === "daemon" ? besideADaemon : withoutADaemon)(call);
  const wrong = await call("interlock_transition", { event: "e", extra: 1 });
  assert.equal(wrong.isError, true);
  assert.equal(wrong.structuredContent.code, "INTERLOCK-REQUEST-002");
  await assert.rejects(call("interlock_stop", {}), { code: -32602 });
  await client.close();
  assert.deepEqual(faults, []);
  console.log(`${title}, ${what}`);
};

await check(new OldClient(us), new OldTransport({ command, args, cwd }), "@modelcontextprotocol/sdk: initialize");
for (const [mode, version] of [
  ["legacy", "2025-11-25"],
  ["auto", "2026-07-28"],
  [{ pin: "2026-07-28" }, "2026-07-28"],
]) {
  const client = new NewClient(us, { versionNegotiation: { mode } });
  const title = `@modelcontextprotocol/client, ${mode.pin ? "pinned" : mode}: ${version}`;
  await check(client, new NewTransport({ command, args, cwd }), title, version);
}
