import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { runProcessGroup } from "../../../../extension/background/process-group.ts";

const bash = (command: string): { file: string; args: string[] } => ({ file: "bash", args: ["-c", command] });

// Outputs are removed when the process ends, and a test's process is ended from outside.
const directory = mkdtempSync(join(tmpdir(), "outputs-"));
vi.stubEnv("TMPDIR", directory);
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true });
});

test("returns the exit code and the text of both streams", async () => {
  const pieces: string[] = [];
  const end = await runProcessGroup({
    ...bash("echo out; echo err >&2; exit 3"),
    onOutput: (piece) => pieces.push(piece),
  });
  expect(end.exitCode).toBe(3);
  expect(end.signal).toBeNull();
  expect(end.output.text.split("\n").toSorted()).toEqual(["", "err", "out"]);
  expect(pieces.join("")).toBe(end.output.text);
});

test("a missing program is an error with its name", async () => {
  await expect(runProcessGroup({ file: "no-such-program" })).rejects.toThrow("no-such-program could not be started");
});

test("processes that a program leaves in its group end with it", async () => {
  const { output } = await runProcessGroup(bash("sleep 1000 & echo $!"));
  const pid = output.text.trim();
  const isLeft = (): boolean => {
    try {
      return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.[0] !== "Z";
    } catch {
      return false;
    }
  };
  // The kernel may take a moment to end killed processes.
  await expect.poll(isLeft).toBe(false);
});

test("a group that ignores SIGTERM is killed after its grace period", async () => {
  const controller = new AbortController();
  const run = runProcessGroup({
    ...bash("trap '' TERM; echo ready; while :; do sleep 1000; done"),
    signal: controller.signal,
    graceMs: 50,
    onOutput: () => controller.abort(new Error("enough")),
  });
  await expect(run).rejects.toThrow("enough");
});

test("a signal that has already aborted starts nothing", async () => {
  const run = runProcessGroup({ ...bash("echo started"), signal: AbortSignal.abort(new Error("too late")) });
  await expect(run).rejects.toThrow("too late");
});

test("a caller whose listener throws gets its error, and the process ends", async () => {
  const run = runProcessGroup({
    ...bash("echo one; exec sleep 1000"),
    onOutput: () => {
      throw new Error("the listener is broken");
    },
  });
  await expect(run).rejects.toThrow("the listener is broken");
});

test("a long output keeps its beginning and end, and a private file has all of it", async () => {
  const { output } = await runProcessGroup({ ...bash("seq 1 100000"), maxOutputLength: 1_000 });
  const [, left] = /\[… (\d+) characters are left out here/.exec(output.text) ?? [];
  const whole = Array.from({ length: 100_000 }, (_, n) => `${n + 1}\n`).join("");
  expect(Number(left)).toBe(whole.length - 1_000);
  expect(output.text.startsWith("1\n2\n3\n")).toBe(true);
  expect(output.text.endsWith("99999\n100000\n")).toBe(true);
  expect(readFileSync(output.file ?? "", "utf8")).toBe(whole);
  expect(statSync(output.file ?? "").mode & 0o777).toBe(0o600);
});
