import type { BeforeAgentStartEvent, ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { estimateText } from "../../../../../context/document/estimate.ts";
import { configOf } from "../../../../../context/parts/optimisation/part-states.ts";
import { PromptRecord } from "../../../../../context/parts/prompt/record.ts";
import { StartConfig } from "../../../../../context/parts/prompt/start.ts";
import { emptyMemory, type Memory } from "../../../../../extension/memory.ts";
import type { AgentMessage, SessionEntry } from "../../../../../extension/pi-types.ts";
import type { OptimisationOptions } from "../../../../../protocol/optimisation/options.ts";
import { resolveOptimisation } from "../../../../../protocol/optimisation/resolve.ts";
import { unchecked } from "../../../../helpers/partial.ts";
import { fakeStatus } from "../../fake-host.ts";

/** A session that records the actions of the prompt parts. */
export class FakeSession {
  readonly entries: SessionEntry[] = [];
  /** The model's view of the session, by `buildSessionProjection`. */
  messages: AgentMessage[] = [];
  readonly #status = fakeStatus();
  readonly degraded = this.#status.reasons;
  readonly faults: string[] = [];
  readonly memory: Memory = emptyMemory();
  /** The dependencies of the prompt parts. */
  readonly needs;
  readonly ctx: ExtensionContext;
  commands: { readonly name: string; readonly path: string }[] = [];
  activeTools: readonly string[] = [];
  /** The error that `appendEntry` throws. */
  unwritable: Error | undefined;
  /** Whether the session had begun when the parts were loaded. */
  isBegun = false;

  constructor(optimisation: OptimisationOptions = {}, cwd = "/nonexistent") {
    this.configure(optimisation);
    const pi = {
      getActiveTools: () => this.activeTools,
      getCommands: () =>
        this.commands.map(({ name, path }) => ({
          name: `skill:${name}`,
          description: `About ${name}.`,
          source: "skill",
          sourceInfo: { path },
        })),
      appendEntry: (customType: string, data: unknown) => {
        if (this.unwritable !== undefined) throw this.unwritable;
        this.add({ type: "custom", customType, data });
      },
    };
    const sessionManager = {
      getEntries: () => [...this.entries],
      buildSessionProjection: () => ({ entries: [{ messages: this.messages }] }),
    };
    this.ctx = { cwd, sessionManager } as unknown as ExtensionContext;
    this.needs = {
      pi: unchecked<ExtensionAPI>(pi),
      config: () => configOf(this.memory),
      estimator: { text: estimateText },
      status: this.#status,
    };
  }

  record(): PromptRecord {
    const fault = (where: string): void => void this.faults.push(where);
    return new PromptRecord({ pi: this.needs.pi, isReadOnly: () => this.memory.isOnlyAsked, fault });
  }

  start(): StartConfig {
    const { config } = this.needs;
    return new StartConfig({ config, labels: () => this.memory.parts?.labels ?? {}, isLate: this.isBegun });
  }

  configure(optimisation: OptimisationOptions, labels: Readonly<Record<string, string>> = {}): void {
    this.memory.parts = { optimisation: resolveOptimisation(optimisation), spillDirectory: "/nonexistent", labels };
  }

  add(entry: Readonly<Record<string, unknown>>): void {
    this.entries.push({ id: String(this.entries.length), parentId: null, ...entry } as unknown as SessionEntry);
  }
}

/** pi's description of the prompt before a run. */
export function runOf(options: object): BeforeAgentStartEvent {
  return { systemPromptOptions: options } as unknown as BeforeAgentStartEvent;
}

export function head(sections: Readonly<Record<string, string>>): AgentMessage {
  return { role: "system", content: "", sections, timestamp: 0 };
}

export function user(text: string, timestamp = 1): AgentMessage {
  return { role: "user", content: [{ type: "text", text }], timestamp };
}
