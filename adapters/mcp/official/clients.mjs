// The official clients of the Model Context Protocol against running servers: node clients.mjs FIRST SECOND PID, with the addresses of two servers of one
// store and the process of the first. DULY and FILE are the program and its file; ADA and BOB are tokens for one agent each.
import assert from "node:assert/strict";
import { Client as Old } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OldHTTP } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createTaskSessionFromClient, resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client";

const [first, second, pid] = process.argv.slice(2);
const { DULY, FILE, ADA, BOB } = process.env;
const text = (result) => result.content[0].text;
const info = { name: "official", version: "1" };
const extension = "io.modelcontextprotocol/tasks";
let ids = 0;

// Tools of a client of any age.
async function tools(client, name) {
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((t) => t.name).sort(), ["cancel", "digest", "explain", "fail", "list_tasks", "pause", "preview", "refund", "resume", "run_now", "schedule", "signal"]);
  const id = `standup-${name}`;
  const planned = await client.callTool({ name: "schedule", arguments: { kind: "note", id, when: "every weekday at 9am in Europe/Berlin", payload: { text: "hi" } } });
  assert.match(text(planned), /is scheduled: every weekday at 09:00 in Europe\/Berlin; next: /);
  assert.match(text(await client.callTool({ name: "explain", arguments: { id } })), /^it is not due until /);
  const wrong = await client.callTool({ name: "schedule", arguments: { kind: "note", cron: "0 9 * * *" } });
  assert.ok(wrong.isError && /^zone is required/.test(text(wrong)), text(wrong));
  assert.match(text(await client.callTool({ name: "cancel", arguments: { id } })), /is cancelled/);
  const digest = await client.callTool({ name: "digest", arguments: { topic: name } });
  assert.deepEqual(digest.structuredContent, { about: name });
  const failed = await client.callTool({ name: "fail", arguments: {} });
  assert.ok(failed.isError && /boom/.test(text(failed)), text(failed));
  console.log(`${name}: tools, a digest and a failure`);
}

const bearer = (token) => ({ requestInit: { headers: { Authorization: `Bearer ${token}` } } });

// The first version of the package, by HTTP and by standard input: to the store and to a server.
const old = new Old(info);
await old.connect(new OldHTTP(new URL(`${first}/mcp`), bearer(ADA)));
await tools(old, "sdk-http");
await old.close();
for (const [name, args, env] of [["sdk-stdio", ["-c", FILE], {}], ["sdk-stdio-server", ["--server", second], { DULY_TOKEN: ADA }]]) {
  const piped = new Old(info);
  await piped.connect(new StdioClientTransport({ command: DULY, args: ["mcp", "--agent", "ada", ...args], env: { ...process.env, ...env } }));
  await tools(piped, name);
  await piped.close();
}

// A client without tasks whose user is asked in the midst of a call.
const asking = new Old(info, { capabilities: { elicitation: { form: {} } } });
asking.setRequestHandler(ElicitRequestSchema, (r) => {
  assert.equal(r.params.message, "Refund 40 EUR to Bob?");
  return { action: "accept", content: { decision: "approve" } };
});
await asking.connect(new StdioClientTransport({ command: DULY, args: ["mcp", "--agent", "ada", "-c", FILE, "--scopes", "read,write,approve"], env: process.env }));
assert.deepEqual((await asking.callTool({ name: "refund", arguments: {} })).structuredContent, { heard: "approve" });
await asking.close();
console.log("sdk-stdio: an approval in the midst of a call");

// The second version, in both eras.
for (const mode of ["legacy", { pin: "2026-07-28" }]) {
  const client = new Client(info, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${first}/mcp`), bearer(ADA)));
  await tools(client, `client-${mode.pin ?? mode}`);
  await client.close();
}

// Tasks: the session of the official package, whose requests go to one of the servers.
const framing = { protocolVersion: "2026-07-28", clientInfo: info, clientCapabilities: { elicitation: { form: {} } } };
const servers = { of: first };
const raw = (token) => async (request, { signal } = {}) => {
  const headers = {
    Authorization: `Bearer ${token}`, "Content-Type": "application/json", Accept: "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": request.method, ...(request.params.name ? { "Mcp-Name": request.params.name } : {}),
  };
  const answer = await fetch(`${servers.of}/mcp`, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", id: ++ids, ...request }), signal });
  const said = await answer.json();
  return said.error ? { kind: "error", error: said.error } : { kind: "result", result: said.result };
};
async function session(token, use) {
  const client = new Client(info, { versionNegotiation: { mode: { pin: "2026-07-28" } }, capabilities: { elicitation: { form: {} } } });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${second}/mcp`), bearer(token)));
  const tasks = createTaskSessionFromClient(client, {
    endpointId: "duly", rawDispatch: raw(token), v2RequestFraming: framing,
    onInputRequest: (request) => {
      assert.equal(request.params.message, "Refund 40 EUR to Bob?");
      servers.of = second; // another replica takes the answer
      return { action: "accept", content: { decision: "approve" } };
    },
  });
  await use(tasks);
  await tasks.close();
  await client.close();
}
await session(ADA, async (tasks) => {
  const refund = await tasks.callTool("refund", {});
  assert.equal(refund.kind, "task");
  assert.deepEqual(resultFromTaskOutcome((await refund.settle()).outcome).structuredContent, { heard: "approve" });
  console.log("ext-tasks: an approval by elicitation, answered at another replica");

  servers.of = first;
  const failed = resultFromTaskOutcome((await (await tasks.callTool("fail", {})).settle()).outcome);
  assert.ok(failed.isError && /boom/.test(text(failed)));
  const ended = await tasks.callTool("digest", { topic: "slow" });
  await ended.cancel();
  assert.equal((await ended.result()).status, "cancelled");
  console.log("ext-tasks: a failure and a cancel");

  // Its server is killed once it has the handle: the other answers until the end.
  const killed = await tasks.callTool("digest", { topic: "killed" });
  process.kill(Number(pid), "SIGKILL");
  servers.of = second;
  assert.deepEqual(resultFromTaskOutcome((await killed.settle()).outcome).structuredContent, { about: "killed" });
  console.log("ext-tasks: the end of a task whose server was killed");

  await session(BOB, async (others) => {
    await assert.rejects(others.task(killed.handle.taskId).snapshot(), /no task/);
    console.log("ext-tasks: another agent's task is not there");
  });
});
