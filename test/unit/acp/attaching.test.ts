import { expect, test } from "vitest";
import { Agent } from "../../../acp/agent.ts";
import type { Follower, Place, Port } from "../../../acp/port.ts";
import { WireError } from "../../../protocol/errors.ts";
import { unchecked } from "../../helpers/partial.ts";
import type { Unchecked } from "../../helpers/unchecked.ts";

const sessionId = "s-1";
const cwd = "/project";
const session = { sessionId, cwd, generation: 1, cursor: 7, updatedAt: 0 };
/** What the daemon answers. */
const answers: Readonly<Record<string, object>> = {
  "daemon/info": { pi: { version: "1.5.2", capabilities: {} }, capabilities: ["admin"] },
  "session/open": session,
  "session/get": session,
  "session/getStats": { cost: 0, userMessages: 1 },
  "transcript/page": { entries: [], leafId: null },
  "session/getCommands": { commands: [] },
  "prompt/list": { prompts: [] },
  "delivery/list": { deliveries: [] },
  "dialog/list": { dialogs: [] },
  "model/list": { models: [{ provider: "p", id: "m" }] },
  "session/getThinkingLevels": { levels: ["off"] },
  "session/getState": { model: { provider: "p", id: "m" }, thinkingLevel: "off" },
};

interface Followed {
  readonly follower: Follower;
  readonly place: Place | undefined;
}

/** An agent for one client, and a daemon whose session begins to be followed when the test says so. */
function start(more: Readonly<Record<string, object>> = {}): {
  sent: Unchecked[];
  followed: Followed[];
  ask: (method: string, params: object) => void;
} {
  const sent: Unchecked[] = [];
  const followed: Followed[] = [];
  const port = unchecked<Port>({
    answersDialogs: true,
    call: async (method: string) => more[method] ?? answers[method],
    follow: (_sessionId: string, follower: Follower, place?: Place) => {
      followed.push({ follower, place });
      return () => {};
    },
  });
  const sink = { write: (text: string) => sent.push(JSON.parse(text)) > 0, drained: async () => {} };
  const agent = new Agent({ port, sink, version: "1.0.0" });
  let id = 0;
  const ask = (method: string, params: object): void => {
    id += 1;
    void agent.receive(Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, method, params })));
  };
  return { sent, followed, ask };
}

test.each(["session/resume", "session/load"])("%s follows the session before it is answered", async (method) => {
  const { sent, followed, ask } = start();
  ask("initialize", { protocolVersion: 1 });
  await expect.poll(() => sent.length).toBe(1);
  ask(method, { sessionId, cwd, mcpServers: [] });
  await expect.poll(() => followed.length).toBe(1);
  await new Promise((resolve) => setImmediate(resolve));
  expect(sent).toHaveLength(1);
  followed[0]?.follower.begin({ cursor: 7, epoch: "e" });
  await expect.poll(() => sent.find(({ id }) => id === 2)?.result).toMatchObject({ configOptions: [{}, {}] });
  // It goes on from there: what has come before the answer is not lost.
  await expect.poll(() => followed.at(1)?.place).toEqual({ after: 7, epoch: "e" });
});

test.each(["session/resume", "session/load"])("%s of a session that cannot be followed is an error", async (method) => {
  const { sent, followed, ask } = start();
  ask("initialize", { protocolVersion: 1 });
  await expect.poll(() => sent.length).toBe(1);
  ask(method, { sessionId, cwd, mcpServers: [] });
  await expect.poll(() => followed.length).toBe(1);
  followed[0]?.follower.end({ kind: "failed", error: new WireError("overloaded", "Too many.") });
  await expect
    .poll(() => sent.find(({ id }) => id === 2)?.error)
    .toMatchObject({ code: -32_603, message: "Too many." });
});

test("a loaded session has the name that the session has, which can be on another branch", async () => {
  const message = { role: "user", timestamp: 1, content: "first words" };
  const page = { entries: [{ type: "message", id: "a", parentId: null, message }], leafId: "a" };
  for (const name of [undefined, "the name"]) {
    const { sent, followed, ask } = start({
      "session/get": { ...session, ...(name !== undefined && { name }) },
      "transcript/page": page,
    });
    ask("initialize", { protocolVersion: 1 });
    await expect.poll(() => sent.length).toBe(1);
    ask("session/load", { sessionId, cwd, mcpServers: [] });
    await expect.poll(() => followed.length).toBe(1);
    followed[0]?.follower.begin({ cursor: 7, epoch: "e" });
    const title = () =>
      sent.find(({ params }) => params?.update?.sessionUpdate === "session_info_update")?.params.update.title;
    await expect.poll(title).toBe(name ?? "first words");
  }
});
