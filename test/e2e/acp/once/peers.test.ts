import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";
import { client as makeClient, methods, ndJsonStream, type Stream } from "@agentclientprotocol/sdk";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { Gate } from "../../../../provider/gate.ts";
import { answer, call, hold } from "../../../../provider/reply.ts";
import { patience } from "../../../helpers/patience.ts";
import { program } from "../../../helpers/programs.ts";
import type { Unchecked } from "../../../helpers/unchecked.ts";
import { processesWith } from "../../../setup/processes.ts";
import { addressOfAcp } from "../connection.ts";
import { Scene, transports } from "../scene.ts";

// Programs of others that speak ACP.

const root = join(import.meta.dirname, "..", "..", "..", "..");
const command = [...program, "acp"];
const script = [answer("I look. ", call("bash", { command: "echo hello" })), answer("Done.")];

/** What the tests use of the SDK's classes of version 1, which it had until 2.0. */
interface Connection {
  initialize(params: object): Promise<object>;
  newSession(params: object): Promise<{ sessionId: string }>;
  loadSession(params: object): Promise<object>;
  prompt(params: object): Promise<{ stopReason: string }>;
}

interface SdkOfOne {
  readonly ClientSideConnection: new (toClient: () => object, stream: object) => Connection;
  ndJsonStream(output: WritableStream, input: ReadableStream): object;
}

function agentOf({ stage }: Scene): ChildProcess & { stdin: Writable; stdout: Readable } {
  const [file = "", ...args] = command;
  const words = [...args, "--state-dir", stage.stateDir, "--model", "scripted/model-1"];
  return spawn(file, words, {
    env: { ...process.env, ...stage.agentDir.env },
    stdio: ["pipe", "pipe", "inherit"],
  }) as never;
}

const requireHere = createRequire(import.meta.url);
const requireOf = (name: string): NodeJS.Require => createRequire(join(root, "node_modules", name, "package.json"));

test.each([
  { version: "0.26", file: requireOf("pi-acp").resolve("@agentclientprotocol/sdk") },
  { version: "1.4", file: requireHere.resolve("acp-sdk-1.4") },
  { version: "1.9", file: requireOf("acpx").resolve("@agentclientprotocol/sdk") },
])("the SDK $version is a client", async ({ file }) => {
  const { ClientSideConnection, ndJsonStream } = (await import(pathToFileURL(file).href)) as SdkOfOne;
  await using scene = await Scene.open(script);
  const agent = agentOf(scene);
  const kinds: string[] = [];
  const client = {
    sessionUpdate: ({ update }: { readonly update: { readonly sessionUpdate: string } }) => {
      kinds.push(update.sessionUpdate);
    },
    requestPermission: () => ({ outcome: { outcome: "cancelled" } }),
  };
  const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout) as ReadableStream);
  const connection = new ClientSideConnection(() => client, stream);
  await connection.initialize({ protocolVersion: 1, clientCapabilities: {} });
  const { sessionId } = await connection.newSession({ cwd: scene.cwd, mcpServers: [] });
  const prompt = [{ type: "text", text: "Go." }];
  expect(await connection.prompt({ sessionId, prompt })).toMatchObject({ stopReason: "end_turn" });
  expect(kinds).toEqual(
    expect.arrayContaining(["agent_message_chunk", "tool_call", "tool_call_update", "usage_update"]),
  );
  expect(await connection.loadSession({ sessionId, cwd: scene.cwd, mcpServers: [] })).toHaveProperty("configOptions");
  agent.stdin.end();
  await once(agent, "exit");
  expect(agent.exitCode).toBe(0);
});

test.each(transports)("the newest SDK is a client over %s", async (over) => {
  await using scene = await Scene.open(script);
  const agent = over === "/acp" ? undefined : agentOf(scene);
  const kinds: string[] = [];
  const app = makeClient().onNotification(methods.client.session.update, ({ params }) => {
    kinds.push(params.update.sessionUpdate);
  });
  const stream =
    agent === undefined
      ? await webSocketOf(scene)
      : ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout) as ReadableStream);
  await app.connectWith(stream, async (connection) => {
    await connection.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
    const { sessionId } = await connection.request(methods.agent.session.new, { cwd: scene.cwd, mcpServers: [] });
    const prompt = [{ type: "text" as const, text: "Go." }];
    expect(await connection.request(methods.agent.session.prompt, { sessionId, prompt })).toMatchObject({
      stopReason: "end_turn",
    });
  });
  expect(kinds).toEqual(expect.arrayContaining(["agent_message_chunk", "tool_call", "tool_call_update"]));
  agent?.stdin.end();
  if (agent !== undefined) await once(agent, "exit");
});

async function webSocketOf({ stage }: Scene): Promise<Stream> {
  const { address, authorization } = await addressOfAcp(stage);
  return createWebSocketStream(address, { WebSocket: WebSocket as never, headers: { authorization } });
}

/** Runs acpx. Resolves with the JSON lines that it printed. */
async function acpx(scene: Scene, ...words: readonly string[]): Promise<readonly Unchecked[]> {
  const { stage, cwd } = scene;
  const agent = [...command, "--state-dir", stage.stateDir, "--model", "scripted/model-1"].join(" ");
  // acpx keeps its agent in a process that ends after some time without work. A command could meet that end.
  const forever = ["--ttl", "0"];
  const options = ["--agent", agent, "--cwd", cwd, "--approve-all", "--format", "json", "--json-strict", ...forever];
  const child = spawn(process.execPath, [join(root, "node_modules", "acpx", "dist", "cli.js"), ...options, ...words], {
    env: { ...process.env, ...stage.agentDir.env, HOME: stage.root },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out = "", errors] = await Promise.all(
    [child.stdout, child.stderr].map(async (stream) => (await stream.toArray()).join("")),
  );
  if (child.exitCode === null) await once(child, "exit");
  expect([child.exitCode, errors, child.exitCode === 0 ? "" : out]).toEqual([0, "", ""]);
  const lines = out
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Unchecked);
  expect(lines.filter(({ error }) => error !== undefined)).toEqual([]);
  return lines;
}

/** Ends what acpx has kept, and removes its directory for sockets, which is not in its home. */
async function withoutAcpx({ stage }: Scene): Promise<void> {
  const own = () => processesWith(`HOME=${stage.root}`).filter(({ command: words }) => words.includes("acpx"));
  for (const { pid } of own()) process.kill(pid, "SIGTERM");
  // It writes to its home until then.
  await expect.poll(own, patience).toEqual([]);
  const ofHome = createHash("sha256").update(stage.root).digest("hex").slice(0, 10);
  rmSync(`/tmp/acpx-${ofHome}`, { recursive: true, force: true });
}

function said(lines: readonly Unchecked[]): string {
  const updates = lines
    .map(({ params }) => params?.update)
    .filter((update) => update?.sessionUpdate === "agent_message_chunk");
  return updates.map(({ content }) => content.text).join("");
}

test("acpx runs a prompt once", async () => {
  await using scene = await Scene.open(script);
  await using _ended = { [Symbol.asyncDispose]: () => withoutAcpx(scene) };
  expect(said(await acpx(scene, "exec", "Go."))).toBe("I look. Done.");
});

test("acpx keeps a session, queues prompts, chooses options, cancels, lists and closes", async () => {
  const gate = new Gate();
  await using scene = await Scene.open([
    answer("One."),
    answer("Two."),
    answer("I thi", hold(gate), "nk."),
    answer("Four."),
  ]);
  await using _ended = { [Symbol.asyncDispose]: () => withoutAcpx(scene) };
  await acpx(scene, "sessions", "new");
  expect(said(await acpx(scene, "prompt", "First."))).toBe("One.");
  await acpx(scene, "set", "model", "scripted-anthropic/model-1");
  await acpx(scene, "set", "model", "scripted/model-1");
  expect(said(await acpx(scene, "prompt", "Second."))).toBe("Two.");
  const [session] = await scene.stage.client.listSessions();
  const running = acpx(scene, "prompt", "Third.");
  await gate.reached;
  await acpx(scene, "prompt", "--no-wait", "Fourth.");
  await acpx(scene, "cancel");
  expect((await running).at(-1)).toMatchObject({ result: { stopReason: "cancelled" } });
  await expect.poll(() => scene.stage.provider.requests.length, patience).toBe(4);
  const listed = await acpx(scene, "sessions", "list");
  expect(JSON.stringify(listed)).toContain(session?.sessionId);
  await acpx(scene, "sessions", "close");
  expect(await scene.stage.client.listSessions()).toMatchObject([{ sessionId: session?.sessionId }]);
});
