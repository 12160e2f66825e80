import { mkdirSync, readFileSync } from "node:fs";
import type { Client, SessionHandle } from "../../../client/index.ts";
import { RECALL_MARK } from "../../../context/parts/recall/record.ts";
import { isRecord } from "../../../protocol/objects.ts";
import { RECALL_TOOL } from "../../../protocol/optimisation/config.ts";
import { limitFactor, type Task, writeFiles } from "./tasks.ts";

/** `done`: the model ended by itself. `budget`: that of the whole check. `error`: the provider, pi or the daemon failed. */
type Ended = "done" | "requests" | "usd" | "minutes" | "budget" | "error";

export interface SessionOutcome {
  readonly ended: Ended;
  /** Why the result is wrong; undefined if it is right. */
  readonly fault: string | undefined;
  /** As `cost/report` says, as are `requests` and `tokens`. */
  readonly usd: number;
  readonly requests: number;
  readonly tokens: number;
  readonly recalls: number;
  /** Calls of `read` with the arguments of an earlier one. */
  readonly readAgain: number;
  /** Results that were cut or masked. */
  readonly removed: number;
  readonly compactions: number;
  readonly minutes: number;
}

export interface SessionRun {
  readonly task: Task;
  /** A new directory for the task's files. */
  readonly directory: string;
  readonly sessionDir: string;
  readonly model: string;
  readonly isLean: boolean;
  readonly maxUsd: number;
  /** What is left of the budget of the whole check. */
  readonly budgetUsd: number;
  readonly signal: AbortSignal;
}

const maxMinutes = 45;

/** Runs a task in a new session. Only an abort of `signal` and a session that cannot be created are thrown. */
export async function runSession(client: Client, run: SessionRun): Promise<SessionOutcome> {
  const { task, directory, model, isLean, sessionDir, signal } = run;
  writeFiles(directory, task.files);
  mkdirSync(sessionDir, { recursive: true, mode: 0o700 });
  const session = await client.createSession({
    ...{ cwd: directory, model, sessionDir, tools: [...task.tools] },
    // Both kinds of session have nothing of the user's but the settings.
    ...{ noExtensions: true, noSkills: true, noPromptTemplates: true, noContextFiles: true },
    ...(isLean && { profile: "lean" }),
  });
  const startedAt = performance.now();
  try {
    const ended = await converse(client, session, run);
    signal.throwIfAborted();
    const minutes = (performance.now() - startedAt) / 60_000;
    const { total, requests } = await client.call("cost/report", { sessionId: session.id });
    const file = (await session.get()).file;
    const wrong = await task.judge(directory);
    const fault = ended.kind === "done" || wrong === undefined ? wrong : `${ended.text}; ${wrong}`;
    return {
      ...{ ended: ended.kind, fault, usd: total.cost.total, requests, tokens: total.totalTokens, minutes },
      ...countsOf(file === undefined ? "" : readFileSync(file, "utf8")),
    };
  } finally {
    await session.close();
  }
}

interface End {
  readonly kind: Ended;
  readonly text: string;
}

/** Sends the prompts, and ends the run at a limit. */
async function converse(client: Client, session: SessionHandle, run: SessionRun): Promise<End> {
  const { task, maxUsd, budgetUsd, signal } = run;
  const maxRequests = limitFactor * task.expected.requests;
  // Counted here, because the costs have no requests of a service that reports no usage.
  let answers = 0;
  const limits: readonly (readonly [Ended, (usd: number) => boolean])[] = [
    ["budget", (usd) => usd >= budgetUsd],
    ["usd", (usd) => usd >= maxUsd],
    ["requests", () => answers >= maxRequests],
  ];
  let limit: Ended | undefined;
  const watching = new AbortController();
  const stop = (reason: Ended | undefined): void => {
    if (reason === undefined || limit !== undefined) return;
    limit = reason;
    session.abort().catch(() => {});
  };
  const timer = setTimeout(() => stop("minutes"), maxMinutes * 60_000);
  const interrupt = (): void => void session.abort().catch(() => {});
  signal.addEventListener("abort", interrupt, { once: true });
  const check = async (): Promise<void> => {
    const { total } = await client.call("cost/report", { sessionId: session.id });
    stop(limits.find(([, isReached]) => isReached(total.cost.total))?.[0]);
  };
  const watch = async (): Promise<void> => {
    for await (const { event } of session.events({ signal: watching.signal })) {
      if (event.type !== "message_end") continue;
      const { message } = event;
      if (isRecord(message) && message["role"] === "assistant") answers += 1;
      await check();
    }
  };
  // A watch that ends early could not keep the budget.
  const watched = watch().catch(() => {
    if (!watching.signal.aborted) stop("error");
  });
  try {
    for (const prompt of task.prompts) {
      const { outcome, errorMessage = "" } = await session.runUntilSettled(prompt);
      signal.throwIfAborted();
      // The watch may not have seen the last answer yet, so the limits are checked before the next prompt.
      await check();
      if (limit !== undefined) return { kind: limit, text: `it was ended by its limit of ${limit}` };
      if (outcome !== "settled") return { kind: "error", text: `its run ended as ${outcome}: ${errorMessage}` };
    }
    return { kind: "done", text: "" };
  } catch (error) {
    signal.throwIfAborted();
    return { kind: "error", text: (error as Error).message };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", interrupt);
    watching.abort();
    await watched;
  }
}

/** What a session's file says about the context. */
export function countsOf(file: string): Pick<SessionOutcome, "recalls" | "readAgain" | "removed" | "compactions"> {
  const entries = file
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const calls = entries.flatMap(({ message }) => callsOf(message));
  const reads = calls.filter(({ name }) => name === "read").map((call) => JSON.stringify(call["arguments"]));
  const removed = entries.map(({ message, customType, data }) => {
    if (customType === RECALL_MARK && isRecord(data) && Array.isArray(data["records"])) return data["records"].length;
    return isRecord(message) && isRecord(message["details"]) && RECALL_MARK in message["details"] ? 1 : 0;
  });
  return {
    recalls: calls.filter(({ name }) => name === RECALL_TOOL).length,
    readAgain: reads.length - new Set(reads).size,
    removed: removed.reduce((sum, count) => sum + count, 0),
    compactions: entries.filter(({ type }) => type === "compaction").length,
  };
}

function callsOf(message: unknown): readonly Record<string, unknown>[] {
  const content = isRecord(message) ? message["content"] : undefined;
  return Array.isArray(content) ? content.filter((block) => isRecord(block) && block["type"] === "toolCall") : [];
}
