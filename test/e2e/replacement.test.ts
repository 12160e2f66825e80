import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { SessionHandle } from "../../client/index.ts";
import { Notifications } from "../helpers/notifications.ts";
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
  // The answer arrives shortly before pi has settled.
  await expect.poll(async () => (await session.get()).state).toBe("idle");
  await session.promptAndWait("and now the prompt");
  expect((await held.answered).state).toBe("answered");
  const last = stage.provider.requests.at(-1);
  for (const text of ["held over the reload", "behind the reload"])
    expect(last?.countText(text, { roles: ["user"] })).toBe(1);
});

/** A copy of the package's files that pi loads, as an upgrade in place finds them. */
function installedPackage(): { readonly helper: string; upgrade(): void } {
  const root = mkdtempSync(join(tmpdir(), "installed-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const checkout = join(import.meta.dirname, "..", "..");
  for (const name of ["extension", "context", "protocol", "package.json"]) {
    cpSync(join(checkout, name), join(root, name), { recursive: true });
  }
  symlinkSync(join(checkout, "node_modules"), join(root, "node_modules"));
  const memory = join(root, "extension", "memory.ts");
  return {
    helper: join(root, "extension", "index.ts"),
    upgrade: () => {
      const text = readFileSync(memory, "utf8");
      const upgraded = text.replace(/(?<=SHARED_VERSION = )\d+/, "1000");
      expect(upgraded).not.toBe(text);
      writeFileSync(memory, upgraded);
    },
  };
}

test("when the package was upgraded under a running pi, a reload ends this pi; no push is lost, no frame is a prompt", async () => {
  const installed = installedPackage();
  await using stage = await startStage({ helper: installed.helper });
  const session = await sessionWithCommands(stage);
  await session.promptAndWait("before");
  const held = session.push({ customType: "n", content: "held over the upgrade", deliverAs: "nextTurn" });
  await held.accepted;
  const { pid } = await session.get();
  installed.upgrade();
  await session.prompt("/test-reload");
  await session.push({ customType: "n", content: "behind the upgrade" }).answered;
  await expect.poll(async () => (await session.get()).state).toBe("idle");
  await session.promptAndWait("after");
  expect((await held.answered).state).toBe("answered");
  expect((await session.get()).pid).not.toBe(pid);
  const last = stage.provider.requests.at(-1);
  for (const text of ["before", "held over the upgrade", "behind the upgrade", "after"])
    expect([text, last?.countText(text, { roles: ["user"] })]).toEqual([text, 1]);
  expect(last?.hasText('"kind":')).toBe(false);
});

test("a pi that has lost its helper at a reload is ended at the next frame", async () => {
  const installed = installedPackage();
  await using stage = await startStage({ helper: installed.helper });
  const session = await sessionWithCommands(stage);
  const { pid } = await session.get();
  rmSync(installed.helper);
  await session.prompt("/test-reload");
  await session.push({ customType: "n", content: "without a helper", deliverAs: "nextTurn" }).accepted;
  await expect.poll(async () => (await session.get()).pid).not.toBe(pid);
});

test("when an extension replaces the session inside pi, the new one becomes a separate session, which has the pi", async () => {
  await using stage = await startStage();
  const session = await sessionWithCommands(stage);
  await session.promptAndWait("a first prompt");
  const before = await session.get();
  await using told = await Notifications.of(stage.stateDir, session.id);
  const held = session.push({ customType: "n", content: "for the old session", deliverAs: "nextTurn" });
  await held.accepted;
  await session.prompt("/test-new");
  const { params } = await told.until(({ name }) => name === "session/replaced");
  expect(params).toMatchObject({ from: session.id, sessionId: session.id });
  const now = await session.get();
  expect(now).toMatchObject({ state: "hibernated", file: before.file, cwd: before.cwd });
  const next = stage.client.session(String(params["to"]));
  const { pid, cwd, model } = before;
  await expect.poll(() => next.get()).toMatchObject({ state: "idle", pid, cwd, model });
  expect((await next.get()).file).toContain(next.id);
  await next.push({ customType: "n", content: "for the new one" }).answered;
  expect(stage.provider.requests.some((request) => request.hasText("for the old session"))).toBe(false);
  // The old session continues in its own pi.
  await session.promptAndWait("and now the old one");
  expect((await held.answered).state).toBe("answered");
  const last = stage.provider.requests.at(-1);
  for (const text of ["a first prompt", "for the old session"])
    expect(last?.countText(text, { roles: ["user"] })).toBe(1);
  expect(last?.hasText("for the new one")).toBe(false);
  expect((await session.get()).pid).not.toBe((await next.get()).pid);
  expect(told.named("session/foreignWrite")).toEqual([]);
});

test("a push that arrives while an extension replaces the session stays in its own session's file", async () => {
  await using stage = await startStage();
  const session = await sessionWithCommands(stage);
  const { file } = await session.get();
  const pushes = [session.push({ customType: "n", content: "early", deliverAs: "nextTurn" })];
  await using told = await Notifications.of(stage.stateDir, session.id);
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
  const { params } = await told.until(({ name }) => name === "session/replaced");
  const next = await stage.client.session(String(params["to"])).get();
  // A push may have its own run in the meantime.
  const isPrompted = () =>
    session.promptAndWait("go on").then(
      () => true,
      () => false,
    );
  await expect.poll(isPrompted).toBe(true);
  for (const push of pushes) {
    expect([push.id, (await push.answered).state]).toEqual([push.id, "answered"]);
    expect([stands(file, push.id), stands(next.file, push.id)]).toEqual([true, false]);
  }
});
