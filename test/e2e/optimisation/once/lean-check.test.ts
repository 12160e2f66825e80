import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import type { CheckResult } from "../../../../bench/lib/lean-check/check.ts";
import { makeTask } from "../../../../bench/lib/lean-check/tasks.ts";
import type { Verdict } from "../../../../bench/lib/lean-check/verdict.ts";
import { createAgentDir } from "../../../../provider/agent-dir.ts";
import type { LogEntry } from "../../../../provider/log.ts";
import { answer, call, type Reply, status } from "../../../../provider/reply.ts";
import { type ScriptedProvider, startProvider } from "../../../../provider/server.ts";
import { piUnderTest } from "../../../helpers/pi-versions.ts";

const program = join(import.meta.dirname, "..", "..", "..", "..", "bench", "lean-check.ts");
const secret = "sk-never-printed-0123456789";
const size = { seed: 1, scale: 0.05 };
const task = makeTask("detail", size);
const [path = "", right = ""] = Object.entries(task.solution)[0] ?? [];
const ofLean = ({ toolNames }: LogEntry): boolean => toolNames.includes("recall");

interface Checked {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly provider: ScriptedProvider;
  /** With `--json`. */
  readonly document: () => CheckResult & { readonly verdict: Verdict };
}

/** Runs the check with a scripted model, and expects that it leaves no file and prints no key. */
async function checked(reply: (request: LogEntry) => Reply, ...more: string[]): Promise<Checked> {
  const root = mkdtempSync(join(tmpdir(), "lc-"));
  const provider = await startProvider({ otherwise: reply });
  try {
    const { env } = await createAgentDir({ provider, parentDir: root, settings: { retry: { enabled: false } } });
    const args = ["--model", "scripted/model-1", "--task", "detail", "--repetitions", "1", "--scale", `${size.scale}`];
    const child = spawn(process.execPath, [program, ...args, ...more], {
      env: { ...process.env, ...env, TMPDIR: root, PI_RPCD_PI: piUnderTest().cli, ANTHROPIC_API_KEY: secret },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const code = new Promise<number | null>((resolve) => child.once("close", resolve));
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    expect(`${stdout}${stderr}`).not.toContain(secret);
    const result = { code: await code, stdout, stderr, provider, document: () => JSON.parse(stdout) };
    expect(readdirSync(root).filter((name) => name.startsWith("pi-rpcd-lean-"))).toEqual([]);
    return result;
  } finally {
    await provider.close();
    rmSync(root, { recursive: true });
  }
}

/** Reads a note at the first prompt, and writes an answer at the second. */
function solver(answerTo: (request: LogEntry) => string): (request: LogEntry) => Reply {
  return (request) => {
    const last = request.messages.at(-1);
    if (last?.role !== "user") return answer("Done.");
    if (last.texts.join().includes("Which offsets")) return answer(call("write", { path, content: answerTo(request) }));
    return answer(call("read", { path: Object.keys(task.files)[0] }));
  };
}

test("a task that both kinds of sessions solve counts for both, with the costs that the session reports", async () => {
  const { code, document, provider } = await checked(
    solver(() => right),
    "--yes",
    "--json",
  );
  const { pairs, spentUsd, incomplete, verdict } = document();
  const solved = { ended: "done", requests: 4, recalls: 0, readAgain: 0, compactions: 0 };
  expect(pairs).toMatchObject([{ model: "scripted/model-1", task: "detail", bare: solved, lean: solved }]);
  expect(pairs[0]?.bare).not.toHaveProperty("fault");
  expect(pairs[0]?.lean).not.toHaveProperty("fault");
  expect([code, incomplete, verdict.decision, verdict.solved]).toEqual([
    ...[3, undefined, "undecided"],
    { bare: 1, lean: 1 },
  ]);
  const usdOf = (own: readonly LogEntry[]): number =>
    own.reduce((usd, { usage }) => usd + ((usage?.inputTokens ?? 0) + 5 * (usage?.outputTokens ?? 0)) / 1_000_000, 0);
  expect(provider.requests.map(ofLean)).toEqual([...Array(4).fill(false), ...Array(4).fill(true)]);
  expect(pairs[0]?.bare.usd).toBeCloseTo(usdOf(provider.requests.slice(0, 4)), 8);
  expect(pairs[0]?.lean.usd).toBeCloseTo(usdOf(provider.requests.slice(4)), 8);
  expect(spentUsd).toBeCloseTo(usdOf(provider.requests), 8);
});

test("a task that only bare pi solves counts against lean, and the table and the verdict say so", async () => {
  const { code, stdout } = await checked(
    solver((request) => (ofLean(request) ? "12345" : right)),
    "--yes",
  );
  expect(code).toBe(3);
  expect(stdout).toMatch(/^estimate: \d+\.\d\d USD; the check ends at its budget of 20 USD$/m);
  expect(stdout).toMatch(/detail, lean: not solved \(12345 instead of /);
  expect(stdout).toMatch(/scripted\/model-1 +detail +bare pi +1 of 1 +0\.0/);
  expect(stdout).toMatch(/scripted\/model-1 +detail +lean +0 of 1 +0\.0/);
  expect(stdout).toMatch(
    /^verdict: the check decides nothing: 1 pairs of 30\. .*1 only with bare pi, 0 only with lean/m,
  );
});

test("the check ends in the middle of a session when its budget is used", async () => {
  const { code, document, provider } = await checked(
    solver(() => right),
    "--yes",
    "--json",
    "--budget",
    "0.0001",
  );
  expect(document()).toMatchObject({ pairs: [], incomplete: "the budget of 0.0001 USD is used" });
  expect(document().spentUsd).toBeGreaterThan(0.0001);
  expect(code).toBe(3);
  expect(provider.requests.filter((request) => ofLean(request) || request.hasText("Which offsets"))).toEqual([]);
});

test("a session ends at its limit of requests, or of what it may cost", async () => {
  const endless = (request: LogEntry): Reply => ({
    ...answer(call("read", { path: Object.keys(task.files)[0] })),
    usage: { inputTokens: ofLean(request) ? 1_000_000 : 0, outputTokens: 0 },
  });
  const { document } = await checked(endless, "--yes", "--json");
  const [pair] = document().pairs;
  // Some more requests are made before the run is aborted.
  expect(pair?.bare).toMatchObject({ ended: "requests", usd: 0, compactions: 0 });
  expect(pair?.bare.readAgain).toBeGreaterThanOrEqual(4 * task.expected.requests - 2);
  expect(pair?.bare.fault).toMatch(/^it was ended by its limit of requests; no answer instead of /);
  expect(pair?.lean).toMatchObject({
    ended: "usd",
    fault: expect.stringMatching(/^it was ended by its limit of usd; /),
  });
});

test("a model whose sessions both fail is left out, and its pair does not count", async () => {
  const refused = (): Reply => status(401, { message: "the key is not valid" });
  const { code, document, provider } = await checked(refused, "--yes", "--json", "--repetitions", "3");
  const { incomplete, verdict } = document();
  expect(incomplete).toMatch(/^scripted\/model-1 was left out, because both sessions failed: .*the key is not valid/);
  expect([code, verdict.pairs, provider.requests.length]).toEqual([3, 0, 2]);
});

test("nothing is sent without a confirmation, for a model that pi does not know, or for a task that does not exist", async () => {
  const never = (): Reply => answer("");
  for (const [args, message] of [
    [[], /Nothing was sent\. --yes begins without a terminal\./],
    [["--yes", "--model", "scripted/model-9"], /pi has no model scripted\/model-9/],
    [["--yes", "--task", "nothing"], /Unknown task "nothing"\. --task takes detail, edit/],
    [["--yes", "--budget", "0"], /--budget takes a number above 0/],
  ] as const) {
    const { code, stderr, provider } = await checked(never, ...args);
    expect(stderr).toMatch(message);
    expect([code, provider.requests.length]).toEqual([2, 0]);
  }
});
