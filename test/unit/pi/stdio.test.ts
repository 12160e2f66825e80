import { afterEach, describe, expect, test, vi } from "vitest";
import { nextTurn } from "../../../server/lib/slices.ts";
import { Intake } from "../../../server/pi/intake.ts";
import { type ChildStdio, startChild } from "../../../server/pi/stdio.ts";

/** Says the pid of a process that inherits its output and stays, writes lines, and ends. */
const program = (lines: number): string => `
  const { spawn } = require("node:child_process");
  const left = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: ["ignore", "inherit", "ignore"] });
  left.unref();
  process.stdout.write(left.pid + "\\n");
  for (let i = 0; i < ${lines}; i += 1) process.stdout.write("x".repeat(999) + "\\n");
  process.stdout.write("last\\n");
`;

interface Read {
  readonly stdio: ChildStdio;
  readonly intake: Intake;
  readonly records: string[];
  /** Whether `exited` has resolved. */
  readonly hasExited: () => boolean;
}

const left: number[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const pid of left.splice(0)) process.kill(pid, "SIGKILL");
});

async function read(lines: number, room: () => Promise<void> | undefined): Promise<Read> {
  // vi.waitFor would advance the time.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const plan = { file: process.execPath, args: ["-e", program(lines)], cwd: "/", env: {} };
  const stdio = await startChild(plan, 1_024);
  const records: string[] = [];
  const note = (record: Buffer): void => void records.push(record.toString("latin1", 0, 10));
  const intake = new Intake({
    stdout: stdio.stdout,
    maxRecordBytes: 1 << 20,
    onRecord: note,
    onLarge: async () => {},
    onOversize: note,
    room,
    onEnd: () => {},
  });
  let hasExited = false;
  void stdio.exited.then(() => {
    hasExited = true;
  });
  await until(() => stdio.hasEnded && records.length > 0);
  left.push(Number(records[0]));
  return { stdio, intake, records, hasExited: () => hasExited };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await nextTurn();
}

describe("the output of an ended process whose pipe another process holds open", () => {
  test("is read for a second", async () => {
    const { stdio, records, hasExited } = await read(10, () => undefined);
    await until(() => records.length === 12);
    await vi.advanceTimersByTimeAsync(999);
    expect(hasExited()).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await stdio.exited).toEqual({ code: 0, signal: null });
  });

  test("is read to its end however long its reader is held back, and then for a second", async () => {
    let gate: PromiseWithResolvers<void> | undefined = Promise.withResolvers<void>();
    const { stdio, intake, records, hasExited } = await read(100, () => gate?.promise);
    await vi.advanceTimersByTimeAsync(60_500);
    expect([records.length, hasExited()]).toEqual([1, false]);
    const held = gate;
    gate = undefined;
    held.resolve();
    await intake.idle();
    // In the same turn of the event loop: it can have read nothing since.
    expect(stdio.stdout.isPaused()).toBe(false);
    vi.advanceTimersByTime(500);
    expect(stdio.stdout.destroyed).toBe(false);
    await until(() => records.length === 102);
    expect([records.at(-1), hasExited()]).toEqual(["last", false]);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await stdio.exited).toEqual({ code: 0, signal: null });
  });
});
