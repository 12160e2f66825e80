import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { Gate } from "../../../provider/gate.ts";
import { answer, hold } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { type Pi, push, startPi } from "./driver.ts";
import { sharePi } from "./shared-pi.ts";

const shared = sharePi();

/** The records that replace the session, and how often the helper says hello for each. */
const replacements: readonly (readonly [string, (pi: Pi) => Promise<unknown>])[] = [
  ["new_session", (pi) => pi.rpc({ type: "new_session" })],
  ["switch_session", (pi) => pi.rpc({ type: "switch_session", sessionPath: pi.makeSessionFile(randomUUID()) })],
  [
    "fork",
    async (pi) => {
      const { data } = await pi.rpc({ type: "get_fork_messages" });
      const [first] = (data as { messages: { entryId: string }[] }).messages;
      await pi.rpc({ type: "fork", entryId: first?.entryId });
    },
  ],
];

test.for(replacements)(
  "%s: the helper keeps its command name in the new session, which gets nothing from the old one",
  async ([, replace]) => {
    await using lent = await shared.use();
    const { pi, provider } = lent;
    await pi.rpc({ type: "prompt", message: "Hello." });
    await pi.settled();
    const before = pi.hello;
    await pi.hold(push("held", "For the old session.", { deliverAs: "nextTurn" }));
    await pi.hold(push("standing", "In the old session.", { triggerTurn: false }));
    await replace(pi);
    const after = pi.frames("hello").slice(1);
    expect(after).toHaveLength(2);
    for (const { command, sessionId } of after) {
      expect(command).toBe(before.command);
      expect(sessionId).not.toBe(before.sessionId);
    }
    // It is still in the old session, which continues in another pi.
    expect(pi.receiptsOf("standing")).toEqual(["inserted"]);
    const late = pi.send({ kind: "hold", session: before.sessionId, pushes: [push("late", "For the old session.")] });
    await expect(late).rejects.toThrow("This pi has switched to another session");
    expect(await pi.send({ kind: "ping" })).toEqual({ running: false, held: [] });
    await pi.hold(push("new", "For the new session."));
    await pi.settled(2);
    expect(pi.receiptsOf("new").at(-1)).toBe("answered");
    expect(provider.requests.at(-1)?.hasText("For the old session.")).toBe(false);
  },
);

test("a session that is replaced in the middle of an answer leaves no attempt open", async () => {
  const gate = new Gate();
  await using provider = await startProvider({ script: [answer(hold(gate), "Hello.")] });
  await using pi = await startPi({ provider, before: ["remove-marked"] });
  await pi.hold(push("d1", "Hello."));
  await gate.reached;
  await pi.event("message_start", ({ message }) => (message as { role: string }).role === "assistant");
  await pi.rpc({ type: "new_session" });
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "delivered headers 200 confirmed"]);
  expect(pi.frames("settled")).toMatchObject([{ aborted: true }]);
});

test("a reload keeps held pushes and known ids", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, after: ["session-commands"] });
  await pi.hold(push("d1", "Held.", { deliverAs: "nextTurn" }), push("d2", "Standing.", { triggerTurn: false }));
  await pi.rpc({ type: "prompt", message: "/test-reload" });
  expect(pi.frames("hello")).toMatchObject([{ reason: "startup" }, { reason: "reload", command: pi.hello.command }]);
  expect(await pi.send({ kind: "ping" })).toEqual({ running: false, held: ["d1"] });
  await pi.send({ kind: "beforePrompt" });
  await pi.rpc({ type: "prompt", message: "Go." });
  await pi.settled();
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "delivered headers 200 confirmed", "answered"]);
  expect(pi.receiptsOf("d2")).toEqual(["inserted", "prepared", "delivered headers 200 confirmed", "answered"]);
});

test("another pi with the same session file knows the unanswered pushes in it", async () => {
  await using lent = await shared.use();
  const { pi } = lent;
  await pi.hold(push("d1", "Answered."));
  await pi.settled();
  await pi.hold(push("d2", "Not answered.", { triggerTurn: false }));
  await pi.restart();
  expect(
    await pi.hold(push("d2", "Not answered.", { triggerTurn: false }), push("d3", "New.", { deliverAs: "nextTurn" })),
  ).toEqual({
    held: ["d3"],
    inserted: ["d2"],
    running: false,
  });
  expect(await pi.send({ kind: "carry" })).toEqual({ started: true });
  await pi.frame("settled");
  expect(await pi.inserted()).toEqual(["d1", "d2", "-"]);
  expect(pi.receiptsOf("d1")).toEqual([]);
  expect(pi.receiptsOf("d2")).toEqual(["prepared", "delivered headers 200 confirmed", "answered"]);
});
