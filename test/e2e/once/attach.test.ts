import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { SessionInfo } from "../../../protocol/session.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, hold, type Piece } from "../../../provider/reply.ts";
import { lines, Scene } from "../cli/scene.ts";

interface Notification {
  readonly method: string;
  readonly params: { readonly seq: number; readonly event?: { readonly type: string } };
}

const thinking: Piece = { kind: "thinking", text: "I wonder." };

test("attach shows a session live, also to late viewers, continues with a new daemon, and tail prints the log", async () => {
  const gate = new Gate();
  const reply = answer(thinking, "first \u001b[2Jhalf, ", hold(gate), "second half");
  await using scene = await Scene.open({
    script: [answer("I look. ", call("bash", { command: "echo found" })), reply],
  });
  const { sessionId } = await scene.json<SessionInfo>(["new"]);
  const early = scene.start(["attach", "last"]);
  const raw = scene.start(["attach", "last", "--json"]);
  await early.said(/── .* idle ──\n/);
  const prompting = scene.run(["prompt", "last", "look at it"]);
  await early.said(/first \[2Jhalf, /);

  const late = scene.start(["attach", "last", "--no-thinking"]);
  await late.said(/❯ pi-rpcd: look at it\nI look\. \n\[bash\] echo found\n +✔ found.*\n(?!I wonder)first \[2Jhalf, $/);
  gate.open();
  for (const view of [early, late])
    await view.said(/second half\n ── settled after .* 2 answers · .* tokens in.* ──\n/);
  expect((await prompting).code).toBe(0);

  // A new daemon: earlier events are known, new ones arrive, and none is shown twice.
  await scene.run(["stop"]);
  await early.said(/the daemon is gone/);
  expect((await scene.run(["prompt", "last", "again"])).stdout).toBe("Echo: again\n");
  await early.said(/the daemon is available again\n(?:.*\n)*❯ pi-rpcd: again\nEcho: again\n ── settled/);
  await raw.said(/"run\/ended"/);
  for (const view of [early, late, raw]) view.kill("SIGINT");
  const ended = await early.ended;
  expect(ended.code).toBe(130);
  expect(ended.stdout).toContain("I wonder.\n");
  expect(ended.stdout.match(/❯ pi-rpcd: look at it/g)).toHaveLength(1);
  expect(ended.stdout).not.toContain("\u001b");
  const told = lines<Notification>((await raw.ended).stdout);
  expect(told.map(({ method }) => method)).toEqual(expect.arrayContaining(["session/event", "run/ended"]));

  const kept = await scene.run(["tail", sessionId, "--since", "0", "--no-follow", "--json"]);
  const log = lines<Notification>(kept.stdout).filter(({ params }) => params.event?.type === "message_end");
  expect(log.length).toBeGreaterThanOrEqual(6);
  const runs = await scene.run(["tail", "last", "--filter", "run/*", "--no-follow"]);
  expect(runs.stdout).toMatch(/^ *\d+ {2}[\d:.]+ {2}run\/started +.* by pi-rpcd\n(?:.*\n)*.*run\/ended +settled\n$/);
  const follower = scene.start(["tail", "last", "--filter", "message_end"]);
  await follower.said(/message_end +assistant: Echo: again/);
  await scene.run(["prompt", "last", "more"]);
  await follower.said(/message_end +assistant: Echo: more/);
  expect((await scene.run(["tail", "last", "--since", "soon"])).code).toBe(2);

  expect(await scene.json(["hibernate", "last"])).toMatchObject({ sessionId, state: "hibernated" });
  expect(await scene.json(["close", "last"])).toMatchObject({ closed: sessionId });
  const closed = await follower.ended;
  expect([closed.code, closed.stderr]).toEqual([0, expect.stringContaining("The session was closed.")]);
});

test("logs prints the end of the daemon's log, also a rotated one's, and follows it", async () => {
  await using scene = await Scene.open();
  await scene.json(["start"]);
  const plain = await scene.run(["logs"]);
  expect(plain.stdout).toMatch(/^\S+Z INFO {2}listening url=http:/m);
  const path = join(scene.root, "some.log");
  const line = (msg: string): string => `${JSON.stringify({ level: 40, time: 0, pid: 1, msg, sessionId: "s" })}\n`;
  writeFileSync(`${path}.1`, line("older") + line("old"));
  writeFileSync(path, `${line("new")}not JSON \u001b[2J\n`);
  const args = ["logs", "--file", path];
  const last = await scene.run([...args, "-n", "3"]);
  expect(last.stdout.split("\n")).toEqual([
    "1970-01-01T00:00:00.000Z WARN  old sessionId=s",
    "1970-01-01T00:00:00.000Z WARN  new sessionId=s",
    "not JSON [2J",
    "",
  ]);
  expect(
    lines((await scene.run([...args, "-n", "2", "--json"])).stdout.split("\n").slice(0, 1).join("\n")),
  ).toMatchObject([{ msg: "new" }]);
  const following = scene.start([...args, "-f", "-n", "2"]);
  await following.said(/new sessionId=s\nnot JSON/);
  writeFileSync(path, line("later"), { flag: "a" });
  await following.said(/later/);
  renameSync(path, `${path}.1`);
  writeFileSync(path, line("in another file"));
  await following.said(/in another file/);
  following.kill("SIGINT");
  expect((await following.ended).code).toBe(130);
  expect((await scene.run(["logs", "--file", join(scene.root, "none.log")])).code).toBe(1);
});
