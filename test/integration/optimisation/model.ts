import { readFileSync } from "node:fs";
import type { LogEntry } from "../../../provider/log.ts";
import { answer, call, type ToolCall } from "../../../provider/reply.ts";
import type { ScriptedProvider } from "../../../provider/server.ts";
import type { Pi } from "../extension/driver.ts";

/** A model that makes prescribed calls. */
export class Model {
  readonly #pi: Pi;
  readonly #provider: ScriptedProvider;

  constructor(pi: Pi, provider: ScriptedProvider) {
    this.#pi = pi;
    this.#provider = provider;
  }

  /** A run with these calls, one in each answer. Returns the result that the model gets for each. */
  async calls(...calls: readonly ToolCall[]): Promise<string[]> {
    return (await this.run(...calls)).slice(1).map(lastResult);
  }

  /** Returns the requests of the run. */
  async run(...calls: readonly ToolCall[]): Promise<readonly LogEntry[]> {
    const before = this.#provider.requests.length;
    this.#provider.add(...calls.map((one) => answer(one)), answer("Done."));
    this.#pi.log.forget("hello");
    await this.#pi.rpc({ type: "prompt", message: "Go on." });
    await this.#pi.settled();
    return this.#provider.requests.slice(before);
  }

  async recall(id: string, page: { readonly offset?: number; readonly limit?: number } = {}): Promise<string> {
    return (await this.calls(call("recall", { id, ...page })))[0] ?? "";
  }
}

function lastResult({ messages }: LogEntry): string {
  const last = messages.at(-1);
  return last?.toolResults.at(-1)?.text ?? last?.texts.join("\n") ?? "";
}

interface FileEntry {
  readonly type: string;
  readonly id: string;
  readonly customType?: string;
  readonly data?: Readonly<Record<string, unknown>>;
  readonly targetId?: string;
  readonly message?: {
    readonly role: string;
    readonly content: readonly { readonly type: string; readonly text?: string }[];
    readonly details?: unknown;
  };
}

/** The entries of pi's session file. */
export function entriesOf(pi: Pi): readonly FileEntry[] {
  const lines = readFileSync(pi.sessionFile, "utf8").trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line) as FileEntry);
}

/** The helper's reports to subscribers about degraded parts. */
export function degradedOf(pi: Pi): readonly string[] {
  return pi
    .frames("notice")
    .flatMap((notice) =>
      notice.name === "optimisation/degraded" ? [`${notice.data.part}: ${notice.data.reason}`] : [],
    );
}
