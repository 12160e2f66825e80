import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { RpcClient } from "@earendil-works/pi-coding-agent";
import { expect, test, vi } from "vitest";
import { answer, call, hold } from "../../../provider/reply.ts";
import { filesWith } from "../../helpers/files.ts";
import { patience } from "../../helpers/patience.ts";
import { dropInMain } from "../../helpers/programs.ts";
import { Random } from "../../soak/random.ts";
import { Front, type Json, scene, started } from "./stage.ts";

const piAcp = join(import.meta.dirname, "..", "..", "..", "node_modules", "pi-acp", "dist", "index.js");

test("pi's own RpcClient works, and its session outlives it", async () => {
  const on = await scene([answer("I look.", call("bash", { command: "echo looked" })), "Done.", "Again."]);
  const { world, client, env } = on;
  const own = new RpcClient({ cliPath: dropInMain, cwd: world.cwd, env: env as Record<string, string> });
  const seen: string[] = [];
  own.onEvent(({ type }) => void seen.push(type));
  await own.start();
  await own.promptAndWait("Look around.");
  expect(await own.getLastAssistantText()).toBe("Done.");
  expect(seen).toContain("tool_execution_end");
  expect(seen.at(-1)).toBe("agent_settled");
  await own.setSessionName("looked");
  const { sessionId, sessionFile } = await own.getState();
  expect(own.getStderr()).toBe("");
  await own.stop();

  const [info] = await client.listSessions();
  expect(info).toMatchObject({ sessionId, file: sessionFile, name: "looked", state: "idle" });
  await client.session(sessionId).promptAndWait("Once more.");
  const next = new RpcClient({
    cliPath: dropInMain,
    cwd: world.cwd,
    env: env as Record<string, string>,
    args: ["--continue"],
  });
  await next.start();
  expect(await next.getLastAssistantText()).toBe("Again.");
  await next.stop();
  expect(await client.listSessions()).toHaveLength(1);
});

test("two front ends with equal ids get their own responses, each once, and both get all events", async () => {
  const on = await scene(["one", "two"]);
  const first = new Front(started([dropInMain, "--mode", "rpc"], on));
  const { data } = (await first.call({ id: 1, type: "get_state" })) as { data: { sessionFile: string } };
  const second = new Front(started([dropInMain, "--mode", "rpc", "--session", data.sessionFile], on));
  await second.call({ id: 1, type: "get_state" });
  const settled = [first.event("agent_settled"), second.event("agent_settled")];
  await Promise.all([first.call({ id: 2, type: "prompt", message: "Hello." }), ...settled]);
  const random = new Random(7);
  const reading = ["get_state", "get_messages", "get_commands", "get_session_stats", "get_fork_messages"];
  /** A command, and what its response has. */
  const randomCommand = (): readonly [Json, Json] => {
    const text = `${random.next()}`;
    // The daemon lets sixteen shell commands wait.
    if (random.chance(0.006))
      return [{ type: "bash", command: `echo ${text}`, excludeFromContext: true }, { data: { output: `${text}\n` } }];
    const [type, success] = random.pick([
      ...reading.map((each) => [each, true] as const),
      ["set_session_name", true] as const,
      ["unknown_command", false] as const,
    ]);
    return [
      { type, name: text },
      { command: type, success },
    ];
  };
  const calls = Array.from({ length: 500 }, (_, index) =>
    [first, second].map(async (front) => {
      const [command, expected] = randomCommand();
      expect(await front.call({ id: index + 3, ...command })).toMatchObject({ id: index + 3, ...expected });
    }),
  );
  await Promise.all(calls.flat());
  expect(first.responses).toBe(502);
  expect(second.responses).toBe(501);
  expect(first.stderr + second.stderr).toBe("");
});

test("no command overtakes another, also where so many are sent at once that some wait", async () => {
  const on = await scene(["Hello."]);
  const front = new Front(started([dropInMain, "--mode", "rpc"], on));
  await front.call({ id: "ready", type: "get_state" });
  const answered: unknown[] = [];
  const call = async (command: Json): Promise<void> => void answered.push((await front.call(command))["id"]);
  const settled = front.event("agent_settled");
  const many = Array.from({ length: 80 }, (_, index) => call({ id: index, type: "get_state" }));
  await Promise.all([
    ...many,
    call({ id: "name", type: "set_session_name", name: "before the prompt" }),
    call({ id: "prompt", type: "prompt", message: "Hi." }),
    settled,
  ]);
  expect(answered).toEqual([...many.keys(), "name", "prompt"]);
});

test("an editor reloads a session by a second process that switches to it, unless another program shows it too", async () => {
  const on = await scene(["Hello.", "Again."]);
  const extension = join(on.world.cwd, "extension.ts");
  const registering = (name: string): string =>
    `export default (pi) => pi.registerCommand("${name}", { description: "One.", handler: async () => {} });\n`;
  writeFileSync(extension, registering("former"));
  const args = [dropInMain, "--mode", "rpc", "--extension", extension];
  const first = new Front(started(args, on));
  const { data } = (await first.call({ id: 1, type: "get_state" })) as {
    data: { sessionFile: string; sessionId: string };
  };
  const names = async (front: Front, id: number): Promise<unknown[]> => {
    const { data: listed } = (await front.call({ id, type: "get_commands" })) as { data: { commands: Json[] } };
    return listed.commands.map(({ name }) => name);
  };
  expect(await names(first, 2)).toContain("former");
  const settled = first.event("agent_settled");
  await first.call({ id: 3, type: "prompt", message: "Hi." });
  await settled;

  writeFileSync(extension, registering("latter"));
  const second = new Front(started(args, on));
  await second.call({ id: 1, type: "switch_session", sessionPath: data.sessionFile });
  expect(await names(second, 2)).toContain("latter");
  first.end();
  await first.exited;
  expect(await second.call({ id: 3, type: "get_last_assistant_text" })).toMatchObject({ data: { text: "Hello." } });

  const { sessionId } = data;
  const { pid } = await on.client.call("session/get", { sessionId });
  await on.client.call("session/subscribe", { sessionId });
  const third = new Front(started(args, on));
  await third.call({ id: 1, type: "switch_session", sessionPath: data.sessionFile });
  expect(await on.client.call("session/get", { sessionId })).toMatchObject({ pid });
  for (const front of [second, third]) {
    front.end();
    await front.exited;
  }
});

test("a variable of the front end is in its tools, in no other session and in no file", async () => {
  const secret = "x4-secret-of-this-window";
  const on = await scene([answer(call("bash", { command: 'echo "[$WINDOW_TOKEN]"' })), "Done."]);
  const front = new Front(started([dropInMain, "--mode", "rpc"], { ...on, env: { ...on.env, WINDOW_TOKEN: secret } }));
  const settled = front.event("agent_settled");
  await front.call({ id: 1, type: "prompt", message: "Show it." });
  await settled;
  const { data } = await front.call({
    id: 2,
    type: "bash",
    command: 'echo "<$WINDOW_TOKEN>"',
    excludeFromContext: true,
  });
  expect(data).toMatchObject({ output: `<${secret}>\n` });
  const other = await on.client.createSession({ cwd: on.world.cwd });
  expect((await other.bash('echo "<$WINDOW_TOKEN>"')).output).toBe("<>\n");
  const [file] = (await on.client.listSessions()).map((info) => info.environment);
  expect(file).toMatchObject({ from: "daemon" });
  // Its tool has printed it: that is in events and in pi's session. The daemon itself has written it nowhere.
  expect(filesWith(on.world.stateDir, `WINDOW_TOKEN=${secret}`)).toEqual([]);
  expect(filesWith(on.world.stateDir, `"WINDOW_TOKEN":"${secret}"`)).toEqual([]);
});

test("pi-acp works: a run with edits is one of the daemon's", async () => {
  const edit = (from: string, to: string) => call("edit", { path: "a.txt", edits: [{ oldText: from, newText: to }] });
  const on = await scene([answer(edit("one", "two")), answer(edit("two", "three")), "Edited."]);
  on.world.write("cwd/a.txt", "one\n");
  const acp = started([piAcp], { ...on, env: { ...on.env, PI_ACP_PI_COMMAND: dropInMain } });
  const agent = new AcpAgent(acp);
  await agent.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
  const { sessionId } = (await agent.request("session/new", { cwd: on.world.cwd, mcpServers: [] })) as {
    sessionId: string;
  };
  const prompt = [{ type: "text", text: "Edit." }];
  expect(await agent.request("session/prompt", { sessionId, prompt })).toMatchObject({ stopReason: "end_turn" });
  const updates = agent.updates.map((update) => JSON.stringify(update));
  expect(updates.filter((update) => update.includes('"sessionUpdate":"tool_call"'))).toHaveLength(2);
  expect(updates.some((update) => update.includes("Edited."))).toBe(true);
  expect(readFileSync(join(on.world.cwd, "a.txt"), "utf8")).toBe("three\n");
  expect(await on.client.listSessions()).toHaveLength(1);
});

test("pi-acp cancels each text question unseen: alone that counts, otherwise another front end answers", async () => {
  const on = await scene(["First.", "Second."]);
  on.world.write(
    "agent/extensions/ask.ts",
    `export default (pi) => {
       pi.on("before_agent_start", async (_event, ctx) => {
         ctx.ui.notify("It is " + (await ctx.ui.input("Which?")));
       });
     };`,
  );
  const agent = new AcpAgent(started([piAcp], { ...on, env: { ...on.env, PI_ACP_PI_COMMAND: dropInMain } }));
  await agent.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
  const { sessionId } = (await agent.request("session/new", { cwd: on.world.cwd, mcpServers: [] })) as Json;
  const ask = () => agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: "Go." }] });
  const [info] = await on.client.listSessions();
  expect(await ask()).toMatchObject({ stopReason: "end_turn" });

  const other = new Front(started([dropInMain, "--mode", "rpc", "--session", info?.file as string], on));
  await other.call({ id: 1, type: "get_state" });
  const asked = other.event("extension_ui_request");
  const told = Promise.race(["typed", "undefined"].map((word) => other.told(`It is ${word}`).then(() => word)));
  const answered = ask();
  await asked;
  other.write({ type: "extension_ui_response", id: other.questions[0]?.["id"], value: "typed" });
  expect(await told).toBe("typed");
  expect(await answered).toMatchObject({ stopReason: "end_turn" });
});

test("pi waits before its edits while a front end is there", async () => {
  const edit = (path: string, from: string, to: string) =>
    call("edit", { path, edits: [{ oldText: from, newText: to }] });
  const write = call("write", { path: "b.txt", content: "new" });
  const on = await scene([answer(edit("a.txt", "one", "two")), answer(write), answer(call("ls", {})), "Done."]);
  on.world.write("cwd/a.txt", "one\n");
  const waits = join(on.world.root, "waits");
  on.world.write(
    "extension.ts",
    `import { appendFileSync } from "node:fs";
     export default (pi) => {
       let at = 0;
       pi.on("tool_execution_start", () => { at = performance.now(); });
       pi.on("tool_execution_end", ({ toolName }) => {
         appendFileSync(${JSON.stringify(waits)}, JSON.stringify([toolName, performance.now() - at]) + "\\n");
       });
     };`,
  );
  const args = ["--mode", "rpc", "--tools", "edit,write,ls", "--extension", join(on.world.root, "extension.ts")];
  const front = new Front(started([dropInMain, ...args], on));
  const settled = front.event("agent_settled");
  await front.call({ id: 1, type: "prompt", message: "Edit." });
  await settled;
  const lines = readFileSync(waits, "utf8").trim().split("\n");
  const [edited, written] = lines.map((line) => JSON.parse(line) as [string, number]);
  expect(lines).toHaveLength(3);
  expect(edited?.[0]).toBe("edit");
  expect(written?.[0]).toBe("write");
  // Node's timers are at most a millisecond early.
  for (const [, ms] of [edited, written] as [string, number][]) expect(ms).toBeGreaterThan(24);
});

test("a run goes on when its front end's process group is killed, and another front end finds all of it", async () => {
  const on = await scene((gates) => [answer("Slowly", hold(gates.named("slow")), " done.")]);
  const front = new Front(started([dropInMain, "--mode", "rpc"], on, { detached: true }));
  const { data } = (await front.call({ id: 1, type: "get_state" })) as { data: { sessionId: string } };
  const streaming = front.event("message_update");
  await front.call({ id: 2, type: "prompt", message: "Go." });
  await streaming;
  process.kill(-front.pid, "SIGKILL");
  await front.exited;
  on.world.gates.named("slow").open();
  await on.client.session(data.sessionId).waitForIdle();
  const next = new Front(started([dropInMain, "--mode", "rpc", "--session", data.sessionId], on));
  const text = (await next.call({ id: 1, type: "get_last_assistant_text" })) as { data: { text: string } };
  expect(text.data.text).toBe("Slowly done.");
});

test("a front end that attaches gets the question that is open, and its answer counts", async () => {
  const on = await scene([]);
  on.world.write(
    "extension.ts",
    `export default (pi) => {
       pi.registerCommand("ask", {
         description: "Asks.",
         handler: async (_text, ctx) => {
           const answer = await ctx.ui.select("Which?", ["one", "two"]);
           ctx.ui.notify("It is " + answer);
         },
       });
     };`,
  );
  const args = [dropInMain, "--mode", "rpc", "--extension", join(on.world.root, "extension.ts")];
  const first = new Front(started(args, on));
  const { data } = (await first.call({ id: 1, type: "get_state" })) as { data: { sessionFile: string } };
  const asked = first.event("extension_ui_request");
  const handled = first.call({ id: 2, type: "prompt", message: "/ask" });
  await asked;
  const second = new Front(started([dropInMain, "--mode", "rpc", "--session", data.sessionFile], on));
  await second.call({ id: 1, type: "get_state" });
  const [question] = second.questions;
  expect(second.questions).toMatchObject([{ method: "select", title: "Which?", options: ["one", "two"] }]);
  const told = [first.told("It is two"), second.told("It is two")];
  second.write({ type: "extension_ui_response", id: question?.["id"], value: "two" });
  await Promise.all([...told, handled]);
});

test("a front end that attaches to a run gets what holds, then the open message or tool, then its answer and the rest", async () => {
  const on = await scene((gates) => [
    answer("Slowly", hold(gates.named("text")), " done.", call("bash", { command: "cat; echo ended" })),
    "The end.",
  ]);
  on.world.write(
    "extension.ts",
    `import { existsSync } from "node:fs";
     export default (pi) => {
       pi.on("session_start", (_event, ctx) => {
         ctx.ui.setStatus("mode", "old");
         ctx.ui.setWidget("list", ["one"]);
         ctx.ui.setStatus("mode", "new");
         ctx.ui.setStatus("gone", "x");
         ctx.ui.setStatus("gone", undefined);
         ctx.ui.setTitle("A title");
       });
       pi.on("tool_call", async (_event, ctx) => {
         await ctx.ui.select("Which?", ["one"]);
         ctx.ui.notify("asked");
         while (!existsSync(${JSON.stringify(join(on.world.root, "go"))})) await new Promise((go) => setTimeout(go, 5));
       });
     };`,
  );
  const first = new Front(
    started([dropInMain, "--mode", "rpc", "--extension", join(on.world.root, "extension.ts")], on),
  );
  const { data } = (await first.call({ id: 1, type: "get_state" })) as { data: { sessionFile: string } };
  const attach = async (): Promise<Front> => {
    const front = new Front(started([dropInMain, "--mode", "rpc", "--session", data.sessionFile], on));
    await front.call({ id: 1, type: "get_state" });
    return front;
  };
  const streaming = first.said("Slowly");
  await first.call({ id: 2, type: "prompt", message: "Go." });
  await streaming;
  const second = await attach();
  const shown = ["mode", "list", "A title"];
  const ui = second.records.slice(0, 3).map(({ statusKey, widgetKey, title }) => statusKey ?? widgetKey ?? title);
  expect(ui.toSorted()).toEqual(shown.toSorted());
  expect(second.records.find(({ statusKey }) => statusKey === "mode")).toMatchObject({ statusText: "new" });
  const types = second.records.slice(3).map(({ type }) => type as string);
  expect([types[0], types[1], types.at(-1)]).toEqual(["agent_start", "message_start", "response"]);
  expect(new Set(types.slice(2, -1))).toEqual(new Set(["message_update"]));
  expect(second.text).toBe("Slowly");

  const asked = second.asked();
  on.world.gates.named("text").open();
  await asked;
  expect(second.text).toBe("Slowly done.");
  const [question] = second.questions;
  const told = [first.told("asked"), second.told("asked")];
  second.write({ type: "extension_ui_response", id: question?.["id"], value: "one" });
  await Promise.all(told);
  const third = await attach();
  // Without the question, which is answered.
  const missed = third.records.slice(3).map(({ type, method }) => method ?? type);
  expect(missed).toEqual(["agent_start", "tool_execution_start", "notify", "response"]);
  const settled = [first, second, third].map((front) => front.event("agent_settled"));
  on.world.write("go", "");
  await Promise.all(settled);
  // From the tool on, each has each record once, in the same order.
  const from = ({ records }: Front): string[] =>
    records
      .slice(records.findIndex(({ type }) => type === "tool_execution_start"))
      .filter(({ type, method }) => type !== "response" && method !== "select")
      .map((record) => JSON.stringify(record));
  expect(from(second)).toEqual(from(first));
  expect(from(third)).toEqual(from(first));
  expect([first.text, second.text, third.text]).toEqual(["The end.", "The end.", "The end."]);
});

test("front ends that only look leave no session, no pi and no file, and one with a message stays", async () => {
  const on = await scene(["Hello."]);
  const look = async (): Promise<void> => {
    const front = new Front(started([dropInMain, "--mode", "rpc"], on));
    await front.call({ id: 1, type: "get_state" });
    front.end();
    expect(await front.exited).toEqual([0, null]);
  };
  await Promise.all([look(), look(), look()]);
  const front = new Front(started([dropInMain, "--mode", "rpc"], on));
  const settled = front.event("agent_settled");
  await front.call({ id: 1, type: "prompt", message: "Hi." });
  await settled;
  const { data } = (await front.call({ id: 2, type: "get_state" })) as { data: { sessionId: string } };
  front.end();
  await front.exited;
  await vi.waitFor(async () => {
    const sessions = await on.client.listSessions();
    expect(sessions.map(({ sessionId }) => sessionId)).toEqual([data.sessionId]);
  }, patience);
  const files = readdirSync(on.world.agentDir.path, { recursive: true }).filter((name) =>
    String(name).endsWith(".jsonl"),
  );
  expect(files).toHaveLength(1);
});

/** An agent that speaks ACP on its stdin and stdout. */
class AcpAgent {
  readonly updates: unknown[] = [];
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #calls = new Map<number, PromiseWithResolvers<unknown>>();
  #id = 0;

  constructor(child: ChildProcessWithoutNullStreams) {
    this.#child = child;
    createInterface({ input: child.stdout }).on("line", (line) => {
      const message = JSON.parse(line) as {
        id?: number;
        method?: string;
        params?: unknown;
        result?: unknown;
        error?: unknown;
      };
      if (message.method !== undefined) this.updates.push(message.params);
      else if (message.error !== undefined)
        this.#calls.get(message.id ?? 0)?.reject(new Error(JSON.stringify(message)));
      else this.#calls.get(message.id ?? 0)?.resolve(message.result);
    });
  }

  request(method: string, params: Json): Promise<unknown> {
    this.#id += 1;
    const answered = Promise.withResolvers<unknown>();
    this.#calls.set(this.#id, answered);
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: this.#id, method, params })}\n`);
    return answered.promise;
  }
}
