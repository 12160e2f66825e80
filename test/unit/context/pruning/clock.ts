import type { CacheRule } from "../../../../context/parts/cache/cache-rule.ts";
import { ChangeLog } from "../../../../context/parts/cache/change-log.ts";
import { createBreaker } from "../../../../context/pruning/nudges/history.ts";
import { addNudges } from "../../../../context/pruning/nudges/nudges.ts";
import type { NudgeKind } from "../../../../context/pruning/nudges/record.ts";
import { createPrompts } from "../../../../context/pruning/prompts/prompts.ts";
import type { BlockTree, Mode, Usage } from "../../../../context/pruning/pruning-services.ts";
import type { AgentMessage } from "../../../../extension/pi-types.ts";
import { defaultPruning, type PruningConfig } from "../../../../protocol/pruning/config.ts";
import { partial, unchecked } from "../../../helpers/partial.ts";
import { fakeHost } from "../fake-host.ts";
import { Branch } from "./branch.ts";

const window = 100_000;
export const storedText = "Stored as b1.";

/** The answer to a request: text, calls of a tool with results, a call of compress with its result, or a failure. */
export type Reply = "text" | "error" | { readonly results: number } | { readonly compress: string };

/** A session in which each request is a tick: the reminders follow from the branch and the clock. */
export class Clock {
  readonly branch = new Branch();
  readonly changes = new ChangeLog();
  readonly config: PruningConfig;
  readonly host = fakeHost(this.branch.context);
  /** The share of the window that the next request takes. `undefined`: nothing was reported. */
  share: number | undefined = 0.5;
  isManual = false;
  off: string | undefined;
  /** Whether pi accepts proposals at boundaries. */
  takesDrafts = true;

  constructor(config: Partial<PruningConfig> = {}) {
    this.config = { ...defaultPruning, enabled: true, ...config };
    this.begin();
  }

  #breaker: ReturnType<typeof createBreaker>["breaker"] = () => undefined;
  #run: (messages: readonly AgentMessage[]) => readonly AgentMessage[] = (messages) => messages;

  /** Another process continues the session: it knows only the file. */
  begin(): void {
    const host = fakeHost(this.branch.context);
    const { histories, breaker } = createBreaker(() => this.config);
    const context = {
      cacheRule: partial<CacheRule>({ passing: (text: string) => this.changes.passing(text), changes: this.changes }),
      pruning: () => this.config,
      off: () => this.off,
      prompts: createPrompts({ directory: () => null, degraded: () => undefined }),
      mode: partial<Mode>({ of: () => (this.isManual ? "manual" : "automatic") }),
      blocks: { on: () => partial<BlockTree>({ active: [] }) },
      notify: this.host.notify,
    };
    addNudges(host, context, { histories, windowUsage: { of: () => this.usage }, candidates: () => [] });
    this.#breaker = breaker;
    this.#run = (messages) => host.pipeline.run("context_with_system", messages, this.branch.context);
    this.#boundary = () =>
      host.boundary.write({
        hook: "turn_end",
        state: partial({ entries: [], continue: false, outcome: "completed", context: { contextEntries: [] } }),
        ctx: this.branch.context,
      });
  }

  #boundary: () => unknown = () => undefined;

  get usage(): Usage | undefined {
    const { share } = this;
    return share === undefined ? undefined : { tokens: share * window, window, share, max: 0.8, min: 0.4 };
  }

  get broken(): number | undefined {
    return this.#breaker(this.branch.context);
  }

  /** The notifications, by name. */
  told(name: string): readonly Readonly<Record<string, unknown>>[] {
    return this.host.notices.filter((notice) => notice.name === name).map(({ data }) => unchecked(data));
  }

  user(text = "Go on."): void {
    this.branch.user(text);
  }

  /** The reminder that a request made now has. */
  reminder(): string | undefined {
    const messages = this.branch.messages.map(({ message }) => message);
    const made = this.#run(messages);
    if (made.length === messages.length) return undefined;
    const { role, content } = made.at(-1) as { role: string; content: readonly { text: string }[] };
    if (made.length !== messages.length + 1 || role !== "user") throw new Error("This is no reminder.");
    return content[0]?.text;
  }

  /** A request and its answer. Returns the reminder's kind. */
  request(reply: Reply = "text"): NudgeKind | undefined {
    const before = this.told("pruning/nudged").length;
    this.reminder();
    const told = this.told("pruning/nudged")[before];
    this.answer(reply);
    return told?.["kind"] as NudgeKind | undefined;
  }

  /** Requests in a row, with their reminders by the number of the request. */
  requests(count: number, reply: Reply = { results: 1 }): Readonly<Record<number, NudgeKind>> {
    const found: Record<number, NudgeKind> = {};
    for (let at = 0; at < count; at += 1) {
      const kind = this.request(reply);
      if (kind !== undefined) found[at] = kind;
    }
    return found;
  }

  answer(reply: Reply): void {
    if (reply === "error") {
      this.branch.message({ role: "assistant", content: [], stopReason: "error" });
      return;
    }
    const calls = reply === "text" ? [] : [{ type: "toolCall" }];
    this.branch.message({ role: "assistant", content: calls, stopReason: reply === "text" ? "stop" : "toolUse" });
    if (typeof reply === "object" && "results" in reply) {
      for (let at = 0; at < reply.results; at += 1) this.#result("read", "text", false);
    } else if (typeof reply === "object") this.#result("compress", reply.compress, reply.compress !== storedText);
    const answer = this.#boundary() as { entries: readonly object[] } | undefined;
    if (this.takesDrafts) for (const draft of answer?.entries ?? []) this.branch.add({ ...draft });
  }

  #result(toolName: string, text: string, isError: boolean): void {
    this.branch.message({ role: "toolResult", toolCallId: "c", toolName, content: [{ type: "text", text }], isError });
  }
}
