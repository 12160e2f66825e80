import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ChildRegistry } from "../../../server/pi/child-registry.ts";
import { exists } from "../../../server/pi/processes.ts";

const log = pino({ level: "silent" });
/** Ids that no other run of these tests has: each ends all processes of this machine with its ids. */
const [a, b, c, foreign] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
let stateDir: string;
const sleepers: ChildProcess[] = [];
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "book-"));
});
afterEach(() => {
  for (const sleeper of sleepers.splice(0)) sleeper.kill("SIGKILL");
  rmSync(stateDir, { recursive: true });
});

/** A process like a child or its tool, with this marker. It reports when it runs. */
async function sleeper(marker: string, script = ""): Promise<ChildProcess & { readonly pid: number }> {
  const child = spawn(process.execPath, ["-e", `${script}; setInterval(() => {}, 1000); console.log()`], {
    env: { ...process.env, PI_RPCD_CHILD: marker },
    stdio: ["ignore", "pipe", "ignore"],
    detached: true,
  });
  sleepers.push(child);
  await once(child.stdout, "data");
  return child as ChildProcess & { readonly pid: number };
}

test("ends processes that a killed daemon's children left, and none of another daemon", async () => {
  const former = await ChildRegistry.open(stateDir, log);
  former.begin(a);
  former.begin(b);
  former.begin(c);
  const [tool, unnoted, ended, other] = [await sleeper(a), await sleeper(b), await sleeper(c), await sleeper(foreign)];
  // A process id that now belongs to another process identifies nothing.
  former.started(a, other.pid);
  former.ended(c);
  const gone = [once(tool, "exit"), once(unnoted, "exit")];
  await ChildRegistry.open(stateDir, log);
  await Promise.all(gone);
  expect([exists(ended.pid), exists(other.pid)]).toEqual([true, true]);
});

test("lets a pi that outlives its daemon end by itself", async () => {
  const former = await ChildRegistry.open(stateDir, log);
  former.begin(a);
  const pi = await sleeper(a, "setTimeout(() => process.exit(0), 500)");
  former.started(a, pi.pid);
  const exited = once(pi, "exit");
  await ChildRegistry.open(stateDir, log);
  expect(await exited).toEqual([0, null]);
});

test("leaves a child that survives its daemon until it is known whether it can go on", async () => {
  const former = await ChildRegistry.open(stateDir, log);
  for (const id of [a, b, c]) former.begin(id);
  const [piped, surviving, lost] = [await sleeper(a), await sleeper(b), await sleeper(c)];
  former.started(a, piped.pid);
  former.started(b, surviving.pid, true);
  former.started(c, lost.pid, true);
  const gone = [once(piped, "exit"), once(lost, "exit")];
  // A daemon that does not start, and its successor.
  await ChildRegistry.open(stateDir, log);
  await gone[0];
  expect([exists(surviving.pid), exists(lost.pid)]).toEqual([true, true]);
  const next = await ChildRegistry.open(stateDir, log);
  await next.endSurvivors(new Set([b]));
  await gone[1];
  expect(exists(surviving.pid)).toBe(true);
  expect(next.leftovers).toEqual([c]);
  next.ended(b);
  expect(next.isEmpty).toBe(true);
});

test("skips lines that were not written completely", async () => {
  const former = await ChildRegistry.open(stateDir, log);
  former.begin(a);
  appendFileSync(join(stateDir, "children.jsonl"), '{"id":"b","pi\n[]\nnull\n{"id":7}\n{"id":"');
  const tool = await sleeper(a);
  const gone = once(tool, "exit");
  await ChildRegistry.open(stateDir, log);
  await gone;
  expect(existsSync(join(stateDir, "children.jsonl"))).toBe(false);
});

test("stays short, however many children there have been", async () => {
  const book = await ChildRegistry.open(stateDir, log);
  book.begin("lives");
  for (let i = 0; i < 2_000; i += 1) {
    book.begin(`${i}`);
    book.started(`${i}`, 1);
    book.ended(`${i}`);
  }
  const lines = readFileSync(join(stateDir, "children.jsonl"), "utf8").split("\n");
  expect(lines.length).toBeLessThan(1_010);
  expect(lines).toContain('{"id":"lives"}');
});
