import { execFile, execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, expect, test, vi } from "vitest";
import type { PendingItem } from "../../protocol/pending.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, call, delayed, hold } from "../../provider/reply.ts";
import { Notifications, type Told } from "../helpers/notifications.ts";
import { startStage } from "../helpers/stage.ts";

const example = join(import.meta.dirname, "..", "..", "examples", "extensions", "slow-tool.ts");
const thresholdMs = 300;
const result = "All 412 tests are green.";

afterEach(() => {
  vi.unstubAllEnvs();
});

function fifo(directory: string, name: string): string {
  const path = join(directory, name);
  execFileSync("mkfifo", [path]);
  return path;
}

const pendingOf = (told: Told): readonly PendingItem[] => told.params["pending"] as readonly PendingItem[];
/** pi reports a message that it gets while idle, and the entry that it makes of one between two turns. */
const sentIn = (told: Told): { readonly customType?: string; readonly details?: unknown } | undefined => {
  const event = told.params["event"] as Readonly<Record<string, never>> | undefined;
  return event?.["type"] === "message_start" ? event["message"] : event?.["entry"];
};

/** `idle`: the agent is idle when the job ends. `busy`: it is in another tool call. */
test.for(["idle", "busy"] as const)(
  "a slow tool moves to the background, and its pending entry ends when its result is delivered (agent: %s)",
  async (agent) => {
    vi.stubEnv("SLOW_TOOL_THRESHOLD_MS", String(thresholdMs));
    const headers = new Gate();
    await using stage = await startStage({ agent: { settings: { extensions: [example] } } });
    const [started, released, other] = ["started", "released", "other"].map((name) => fifo(stage.root, name));
    stage.provider.add(
      answer("I run them.", call("slow_command", { command: `echo yes > ${started}; cat ${released}` })),
      agent === "idle" ? answer("They run.") : answer(call("bash", { command: `cat ${other}` })),
      delayed(hold(headers), answer("Green, then.")),
    );
    const session = await stage.session();
    await using told = await Notifications.of(stage.stateDir, session.id);
    await session.prompt("Run all tests.");

    // 1. The slow tool starts at once.
    const toolStart = await told.event("tool_execution_start");
    expect(await readFile(started ?? "", "utf8")).toBe("yes\n");

    // 2. The tool still runs at the threshold: the model gets a placeholder, and continues.
    const toolEnd = await told.event("tool_execution_end");
    const { background } = (toolEnd.params["event"] as { result: { details: Record<string, never> } }).result
      .details as unknown as { background: { jobId: string; startedAt: number; isInBackground: boolean } };
    expect(background.isInBackground).toBe(true);
    await (agent === "idle"
      ? told.event("agent_settled")
      : told.event("tool_execution_start", ({ toolName }) => toolName === "bash"));
    expect(stage.provider.requests[1]?.countText(background.jobId, { roles: ["tool"] })).toBe(1);

    // 3. The pending entry starts with the promotion, not before.
    const [shown] = told.named("pending/updated");
    const [entry] = shown === undefined ? [] : pendingOf(shown);
    expect(entry).toMatchObject({ state: "running", label: `slow_command (${background.jobId})` });
    expect((entry?.startedAt ?? 0) - background.startedAt).toBeGreaterThanOrEqual(thresholdMs - 2);
    expect(shown?.params.seq).toBeGreaterThan(toolStart.params.seq);
    expect(shown?.params.seq).toBeLessThan(toolEnd.params.seq);

    // 4. The job ends: its result is sent as a custom message that steers the run, or starts one.
    await writeFile(released ?? "", `${result}\n`);
    await told.until((each) => each.name === "pending/updated" && pendingOf(each)[0]?.state === "delivering");
    if (agent === "busy") await writeFile(other ?? "", "done\n");
    const sent = await told.until((each) => sentIn(each)?.customType === "background-job");
    expect(sentIn(sent)).toMatchObject({
      details: {
        background: { jobId: background.jobId },
        isError: false,
        "pi-rpcd": { deliveryId: expect.any(String) },
      },
    });

    // 5. A request to the provider contains it once, after complete pairs of tool calls and results.
    await headers.reached;
    const request = stage.provider.requests[2];
    expect(request?.countText(result, { roles: ["user"] })).toBe(1);
    expect(request?.violations).toEqual([]);

    // 6. The entry ends only when the provider has accepted that request.
    expect(told.named("pending/updated").map((each) => pendingOf(each).map(({ state }) => state))).toEqual([
      ["running"],
      ["delivering"],
    ]);
    headers.open();
    const ended = await told.until((each) => each.name === "pending/updated" && pendingOf(each).length === 0);
    expect(ended.params.at).toBeGreaterThanOrEqual(request?.headersSentAt ?? Number.NaN);

    // 7. The model responds to it.
    const response = await told.event("message_end", (event) => JSON.stringify(event).includes("Green, then."));
    expect(response.params.seq).toBeGreaterThan(ended.params.seq);

    // 8. Nothing else has happened: one run for each reason, and no superfluous request.
    await told.until(() => told.all.filter((each) => isSettled(each)).length === (agent === "idle" ? 2 : 1));
    expect(stage.provider.requests).toHaveLength(3);
    const orders = [toolStart, shown, toolEnd, sent, ended, response].map((each) => each?.params.seq ?? 0);
    expect(orders).toEqual(orders.toSorted((a, b) => a - b));
  },
);

test("a pi that is killed ends its jobs, and the daemon reports that nothing is pending any more", async () => {
  vi.stubEnv("SLOW_TOOL_THRESHOLD_MS", "1");
  await using stage = await startStage({ agent: { settings: { extensions: [example] } } });
  const started = fifo(stage.root, "started");
  stage.provider.add(
    answer(call("slow_command", { command: `echo $$ > ${started}; exec sleep 1000` })),
    answer("It runs."),
  );
  const session = await stage.session();
  await using told = await Notifications.of(stage.stateDir, session.id);
  await session.promptAndWait("Run it.");
  const job = (await readFile(started, "utf8")).trim();
  expect(told.named("pending/updated").map((each) => pendingOf(each).length)).toEqual([1]);
  process.kill((await session.get()).pid ?? Number.NaN, "SIGKILL");
  await told.until((each) => each.name === "pending/updated" && pendingOf(each).length === 0);
  // The daemon, which ends leftovers of a killed pi, runs in this process: it must not be blocked.
  await promisify(execFile)("tail", [`--pid=${job}`, "-f", "/dev/null"]);
});

function isSettled(told: Told): boolean {
  return (told.params["event"] as { type?: string } | undefined)?.type === "agent_settled";
}
