import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { answer, call, status } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { type Pi, startPi } from "./driver.ts";
import { type PiOfTest, sharePi } from "./shared-pi.ts";

const shared = sharePi();

/** Plain pi with the example's tool, which is promoted at once, or never. */
function withTool(promoted: "at once" | "never") {
  const env = { SLOW_TOOL_THRESHOLD_MS: promoted === "never" ? "0" : "1" };
  return { entry: "none", isConfigured: false, after: ["../../../examples/extensions/slow-tool"], env };
}

async function lendWithTool(promoted: "at once" | "never"): Promise<PiOfTest> {
  return await shared.use(withTool(promoted));
}

let fifos = 0;

/** A FIFO in pi's directory: reading it waits for the command, and writing it lets the command continue. */
function fifo(pi: Pi, name: string): string {
  fifos += 1;
  const path = join(pi.directory, `${name}-${fifos}`);
  execFileSync("mkfifo", [path]);
  return path;
}

const slow = (command: string): ReturnType<typeof call> => call("slow_command", { command });

/** Whether a process runs: a zombie counts as ended. */
function runs(pid: string): boolean {
  if (!existsSync(`/proc/${pid}/stat`)) return false;
  return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.[0] !== "Z";
}

async function widget(pi: Pi, fits: (lines: readonly string[] | undefined) => boolean): Promise<void> {
  await pi.log.until(
    ({ method, widgetKey, widgetLines }) =>
      method === "setWidget" && widgetKey === "pi-rpcd.pending" && fits(widgetLines as string[] | undefined),
  );
}

async function toolEnd(pi: Pi): Promise<string> {
  return JSON.stringify((await pi.event("tool_execution_end"))["result"]);
}

test("without a threshold pi waits for a tool however long it takes, and nothing is pending", async () => {
  await using lent = await lendWithTool("never");
  const { pi, provider } = lent;
  const wait = fifo(pi, "wait");
  provider.add(answer(slow(`cat ${wait}`)), "Done.");
  await pi.rpc({ type: "prompt", message: "Go." });
  await pi.event("tool_execution_start");
  await writeFile(wait, "the result\n");
  await pi.event("agent_settled");
  expect(await toolEnd(pi)).toContain("the result");
  expect(provider.requests).toHaveLength(2);
  expect(pi.log.records.filter(({ method }) => method === "setWidget")).toEqual([]);
});

test("an abort ends a tool that was not promoted, including its whole process group", async () => {
  await using lent = await lendWithTool("never");
  const { pi, provider } = lent;
  const started = fifo(pi, "started");
  provider.add(answer(slow(`sleep 1000 & echo $! > ${started}; wait`)));
  await pi.rpc({ type: "prompt", message: "Go." });
  const pid = (await readFile(started, "utf8")).trim();
  expect(runs(pid)).toBe(true);
  await pi.rpc({ type: "abort" });
  await pi.event("tool_execution_end", ({ isError }) => isError === true);
  // The kernel ends killed processes slightly later.
  await expect.poll(() => runs(pid)).toBe(false);
});

test("an abort of the run leaves a promoted job alone, and its result is delivered", async () => {
  await using lent = await lendWithTool("at once");
  const { pi, provider } = lent;
  const [wait, other] = [fifo(pi, "wait"), fifo(pi, "other")];
  provider.add(answer(slow(`cat ${wait}`)), answer(call("bash", { command: `cat ${other}` })), "It is done, then.");
  await pi.rpc({ type: "prompt", message: "Go." });
  await pi.event("tool_execution_start", ({ toolName }) => toolName === "bash");
  await pi.rpc({ type: "abort" });
  await pi.event("agent_settled");
  await writeFile(wait, "the result\n");
  await pi.event("message_end", (record) => JSON.stringify(record).includes("It is done, then."));
  expect(provider.requests.at(-1)?.countText("the result", { roles: ["user"] })).toBe(1);
  expect(provider.requests.flatMap(({ violations }) => violations)).toEqual([]);
});

test("calls above the limit of jobs are refused by name, and the others continue", async () => {
  await using lent = await lendWithTool("at once");
  const { pi, provider } = lent;
  const waits = [1, 2, 3, 4, 5].map((n) => fifo(pi, `wait-${n}`));
  provider.add(answer(...waits.map((wait) => slow(`cat ${wait}`))), "They run.");
  await pi.rpc({ type: "prompt", message: "Go." });
  await pi.event("agent_settled");
  expect(provider.requests[1]?.countText("goes on in the background", { roles: ["tool"] })).toBe(4);
  expect(provider.requests[1]?.countText("too_many_jobs: 4 jobs", { roles: ["tool"] })).toBe(1);
  expect(provider.requests[1]?.violations).toEqual([]);
});

test("a cancelled job ends, and the model gets a message", async () => {
  await using lent = await lendWithTool("at once");
  const { pi, provider } = lent;
  const started = fifo(pi, "started");
  provider.add(answer(slow(`echo $$ > ${started}; exec sleep 1000`)), "It runs.", "All right.");
  await pi.rpc({ type: "prompt", message: "Go." });
  const pid = (await readFile(started, "utf8")).trim();
  await pi.event("agent_settled");
  const [jobId = ""] = /job-[0-9a-f]{8}/.exec(await toolEnd(pi)) ?? [];
  await pi.rpc({ type: "prompt", message: `/jobs ${jobId}` });
  await pi.event("message_end", (record) => JSON.stringify(record).includes("All right."));
  expect(provider.requests.at(-1)?.countText(`Background job ${jobId} (slow_command) was cancelled`)).toBe(1);
  await pi.rpc({ type: "prompt", message: `/jobs ${jobId}` });
  await pi.log.until(({ method, message }) => method === "notify" && message === `There is no ${jobId}.`);
  await widget(pi, (lines) => lines === undefined);
  execFileSync("tail", [`--pid=${pid}`, "-f", "/dev/null"]);
});

test("a failed job is reported as a failure", async () => {
  await using lent = await lendWithTool("at once");
  const { pi, provider } = lent;
  const wait = fifo(pi, "wait");
  provider.add(answer(slow(`cat ${wait}; exit 3`)), "It runs.", "I see.");
  await pi.rpc({ type: "prompt", message: "Go." });
  await pi.event("agent_settled");
  await writeFile(wait, "half of it\n");
  await pi.event("message_end", (record) => JSON.stringify(record).includes("I see."));
  const said = provider.requests.at(-1)?.messages.at(-1)?.texts.join("\n");
  expect(said).toContain("(slow_command) has failed");
  expect(said).toContain("half of it");
  expect(said).toContain("The command ended with 3.");
});

test("a long output is shortened, and a private file has all of it as long as pi runs", async () => {
  await using provider = await startProvider();
  let file = "";
  {
    await using pi = await startPi({ provider, ...withTool("at once") });
    const wait = fifo(pi, "wait");
    provider.add(answer(slow(`cat ${wait} > /dev/null; seq 1 50000`)), "It runs.", "That is a lot.");
    await pi.rpc({ type: "prompt", message: "Go." });
    await pi.event("agent_settled");
    await writeFile(wait, "\n");
    await pi.event("message_end", (record) => JSON.stringify(record).includes("That is a lot."));
    const said = provider.requests.at(-1)?.messages.at(-1)?.texts.join("\n") ?? "";
    expect(said.length).toBeLessThan(51_000);
    expect(said).toMatch(/\n1\n2\n3\n/);
    expect(said).toMatch(/\n49999\n50000\n$/);
    [, file = ""] = /The whole output is in (\S+) …/.exec(said) ?? [];
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, "utf8")).toBe(execFileSync("seq", ["1", "50000"], { encoding: "utf8" }));
  }
  expect(existsSync(file)).toBe(false);
});

test("a replaced session ends the jobs, and the new one gets no messages about them", async () => {
  await using lent = await lendWithTool("at once");
  const { pi, provider } = lent;
  const started = fifo(pi, "started");
  provider.add(answer(slow(`echo $$ > ${started}; exec sleep 1000`)), "It runs.");
  await pi.rpc({ type: "prompt", message: "Go." });
  const pid = (await readFile(started, "utf8")).trim();
  await pi.event("agent_settled");
  await pi.rpc({ type: "new_session" });
  execFileSync("tail", [`--pid=${pid}`, "-f", "/dev/null"]);
  await pi.rpc({ type: "prompt", message: "Hello." });
  await pi.log.until(() => pi.log.records.filter(({ type }) => type === "agent_settled").length === 2);
  expect(provider.requests).toHaveLength(3);
  expect(provider.requests[2]?.countText("job-")).toBe(0);
  expect(await pi.inserted()).toEqual([]);
});

test("a result that the provider refuses is shown as a failure for a while", async () => {
  await using lent = await lendWithTool("at once");
  const { pi, provider } = lent;
  const wait = fifo(pi, "wait");
  provider.add(answer(slow(`cat ${wait}`)), "It runs.", status(400));
  await pi.rpc({ type: "prompt", message: "Go." });
  await pi.event("agent_settled");
  await widget(pi, (lines) => lines?.[0]?.startsWith("… slow_command (job-") === true);
  await writeFile(wait, "the result\n");
  await widget(pi, (lines) => lines?.[0]?.startsWith("→ slow_command (job-") === true);
  await widget(pi, (lines) => lines?.[0]?.includes("✗ slow_command") === true && lines[0].includes("run_failed"));
  await widget(pi, (lines) => lines === undefined);
});
