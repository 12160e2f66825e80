import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { patience } from "../helpers/patience.ts";
import { type Stage, startStage } from "../helpers/stage.ts";

/** The processes that the daemon, which is this process, has started. */
function children(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const facts = readFileSync(`/proc/${pid}/stat`, "utf8");
        return Number(facts.slice(facts.lastIndexOf(")") + 2).split(" ")[1]) === process.pid;
      } catch {
        return false;
      }
    })
    .map(Number);
}

async function warm(stage: Stage): Promise<number[]> {
  await vi.waitFor(async () => expect((await stage.client.info()).warmChildren).toBe(1), patience);
  return children();
}

function startWarmStage(): Promise<Stage> {
  return startStage({ env: () => ({ PI_RPCD_WARM_CHILDREN: "1" }) });
}

test("a session that adopts a warm child behaves like one that starts its own, also when it wakes", async () => {
  await using stage = await startWarmStage();
  const cold = await stage.session();
  await stage.session();
  const before = await warm(stage);

  const session = await stage.client.createSession({ cwd: stage.cwd, model: "scripted/model-1", name: "warm one" });
  const info = await session.get();
  expect(before).toContain(info.pid);
  const plain = await cold.get();
  expect(info).toMatchObject({ state: "idle", generation: 1, name: "warm one", model: plain.model });
  expect(info.thinkingLevel).toBe(plain.thinkingLevel);
  expect(await session.runUntilSettled("hello")).toMatchObject({ stopReason: "stop" });
  await expect(session.push({ customType: "note", content: "by the way" }).answered).resolves.toMatchObject({
    state: "answered",
  });
  const entries = readFileSync(info.file, "utf8").trim().split("\n");
  expect(JSON.parse(entries[0] ?? "")).toMatchObject({ type: "session", id: info.sessionId });
  expect(entries.join()).toContain("by the way");
  const listed = await session.command({ type: "get_commands" });
  expect(JSON.stringify(listed)).not.toMatch(/pi-rpcd/);

  // Its child dies; the next one was ready before.
  const spare = await warm(stage);
  process.kill(info.pid ?? 0, "SIGKILL");
  await vi.waitFor(async () => expect((await session.get()).state).toBe("crashed"), patience);
  expect(await session.runUntilSettled("Are you there?")).toMatchObject({ stopReason: "stop" });
  const woken = await session.get();
  expect(spare).toContain(woken.pid);
  expect(woken).toMatchObject({ generation: 2, file: info.file, name: "warm one", model: info.model, lostPrompts: [] });
  expect(stage.provider.requests.at(-1)?.countText("by the way", { roles: ["user"] })).toBe(1);
});

test("when an extension forbids pi to switch its session, a child is started in the usual way", async () => {
  const forbidding = `export default (pi) => { pi.on("session_before_switch", () => ({ cancel: true })); };`;
  await using stage = await startWarmStage();
  const extensions = join(stage.agentDir.env["PI_CODING_AGENT_DIR"] ?? "", "extensions");
  mkdirSync(extensions, { recursive: true });
  writeFileSync(join(extensions, "forbidding.js"), forbidding);
  for (let i = 0; i < 2; i += 1) await stage.session();
  const before = await warm(stage);
  const session = await stage.session();
  expect(before).not.toContain((await session.get()).pid);
  expect(await session.runUntilSettled("hello")).toMatchObject({ stopReason: "stop" });
});

test("a session with other options, or after a change of pi's settings, gets a child of its own", async () => {
  await using stage = await startWarmStage();
  for (let i = 0; i < 2; i += 1) await stage.session();
  let before = await warm(stage);
  const other = await stage.client.createSession({ cwd: stage.cwd, model: "scripted/model-1", tools: ["read"] });
  expect(before).not.toContain((await other.get()).pid);

  before = children();
  const settings = join(stage.agentDir.env["PI_CODING_AGENT_DIR"] ?? "", "settings.json");
  writeFileSync(settings, JSON.stringify({ ...JSON.parse(readFileSync(settings, "utf8")), hideThinkingBlock: true }));
  expect(before).not.toContain((await (await stage.session()).get()).pid);
});
