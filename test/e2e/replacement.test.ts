import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { SessionHandle } from "../../client/index.ts";
import { type Stage, startStage } from "../helpers/stage.ts";

const commands = `
export default function (pi) {
  pi.registerCommand("test-reload", { description: "", handler: async (_text, ctx) => await ctx.reload() });
  pi.registerCommand("test-new", { description: "", handler: async (_text, ctx) => { await ctx.newSession(); } });
}
`;

/** Whether an entry of a session file carries the delivery. */
function stands(file: string, deliveryId: string): boolean {
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  return lines.some((line) => line.includes('"custom_message"') && line.includes(`"${deliveryId}"`));
}

/** A session whose pi has commands that reload it and that replace its session. */
async function sessionWithCommands(stage: Stage): Promise<SessionHandle> {
  const extensions = join(stage.agentDir.path, "extensions");
  mkdirSync(extensions);
  writeFileSync(join(extensions, "test-commands.ts"), commands);
  return await stage.session();
}

test("after a reload inside pi, held pushes are still held and further ones are delivered", async () => {
  await using stage = await startStage();
  const session = await sessionWithCommands(stage);
  const held = session.push({ customType: "n", content: "held over the reload", deliverAs: "nextTurn" });
  await held.accepted;
  expect((await session.prompt("/test-reload")).disposition).toBe("handled");
  await session.push({ customType: "n", content: "behind the reload" }).answered;
  // The answer comes a moment before pi has settled.
  await expect.poll(async () => (await session.get()).state).toBe("idle");
  await session.promptAndWait("and now the prompt");
  expect((await held.answered).state).toBe("answered");
  const last = stage.provider.requests.at(-1);
  for (const text of ["held over the reload", "behind the reload"])
    expect(last?.countText(text, { roles: ["user"] })).toBe(1);
});

test("when an extension replaces the session inside pi, its pushes are dropped by name, and the helper is still there", async () => {
  await using stage = await startStage();
  const session = await sessionWithCommands(stage);
  const before = await session.get();
  const held = session.push({ customType: "n", content: "for the old session", deliverAs: "nextTurn" });
  await held.accepted;
  await session.prompt("/test-new");
  await expect(held.delivered).rejects.toMatchObject({
    delivery: { state: "dropped", reason: { code: "session_replaced" } },
  });
  expect((await session.get()).file).not.toBe(before.file);
  await session.push({ customType: "n", content: "for the new one" }).answered;
  expect(stage.provider.requests.some((request) => request.hasText("for the old session"))).toBe(false);
});

test("a push that arrives while an extension replaces the session is answered or dropped, and stands in one file at most", async () => {
  await using stage = await startStage();
  const session = await sessionWithCommands(stage);
  const before = await session.get();
  const pushes = [session.push({ customType: "n", content: "early", deliverAs: "nextTurn" })];
  let isReplaced = false;
  const replacing = session.prompt("/test-new").finally(() => {
    isReplaced = true;
  });
  while (!isReplaced) {
    const push = session.push({ customType: "n", content: "meanwhile" });
    pushes.push(push);
    await push.accepted;
  }
  await replacing;
  // A push may have a run of its own meanwhile.
  const isPrompted = () =>
    session.promptAndWait("go on").then(
      () => true,
      () => false,
    );
  await expect.poll(isPrompted, { timeout: 30_000 }).toBe(true);
  const { file } = await session.get();
  for (const push of pushes) {
    const { state, history } = await push.get();
    expect(["answered", "dropped"]).toContain(state);
    // One that stood in the former transcript, and was in no answered request by then, is dropped too.
    const wasInserted = history.some((step) => step.state === "inserted");
    const files = [before.file, file].filter((one) => stands(one, push.id));
    expect([push.id, files.length]).toEqual([push.id, wasInserted ? 1 : 0]);
    expect(state === "answered" && !wasInserted).toBe(false);
  }
});
