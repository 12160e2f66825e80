import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { expect, test, vi } from "vitest";
import { ChildSource } from "../../../server/children/child-source.ts";
import { lifeLimits, limits } from "../../../server/configuration/limits.ts";
import { locatePi } from "../../../server/pi/locate.ts";
import type { StoredSession } from "../../../server/store/stored-session.ts";
import { patience } from "../../helpers/patience.ts";

const fakePi = join(import.meta.dirname, "..", "..", "fixtures", "fake-pi.mjs");
const logged: string[] = [];
const log = pino({ level: "info" }, { write: (line) => void logged.push(line) });

test("a warm pi that stops responding while it adopts a session is ended, and the session gets another", async () => {
  const root = mkdtempSync(join(tmpdir(), "warm-"));
  const { startTimeoutMs } = limits.child;
  // The first wait that begins from then on ends at once.
  const waits: number[] = [];
  const child = {
    ...limits.child,
    get startTimeoutMs() {
      return waits.shift() ?? startTimeoutMs;
    },
  };
  const source = new ChildSource({
    locate: () => locatePi({ option: fakePi, env: {} }),
    ...{
      helper: "unused",
      runDirectory: root,
      spillDirectory: root,
      env: { ...process.env, FAKE_PI: "silent-switch" },
      log,
    },
    limits: {
      ...{ ...limits, ...lifeLimits({}), child },
      warm: { perKind: 1, maxWarm: 1, recentMs: 1_000_000, minFreeBytes: 0 },
    },
    directory: { all: () => [], refusal: undefined },
  });
  mkdirSync(join(root, "cwd"));
  const started = (name: string) => {
    const stored = { sessionId: name, cwd: join(root, "cwd"), file: join(root, `${name}.jsonl`), generation: 1 };
    const sinks = {
      signal: new AbortController().signal,
      ...{ onPi: () => {}, onEvent: () => {}, onFrame: () => {}, onDiagnostic: () => {} },
    };
    return source.start({ ...stored, createdAt: 0, updatedAt: 0, options: {} } as StoredSession, sinks, log);
  };
  const children = [await started("one"), await started("two")];
  await vi.waitFor(() => expect(source.warm).toBe(1), patience);
  waits.push(20);
  children.push(await started("three"));
  expect(logged.filter((line) => line.includes("did not switch to the session in time"))).toHaveLength(1);
  expect(children.at(-1)?.child.state.kind).toBe("ready");
  await Promise.all(children.map(async (one) => [await one.child.stop(), await one.child.cleaned]));
  await source.close();
  rmSync(root, { recursive: true });
});
