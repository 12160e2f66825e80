import type { BeforeAgentStartEvent, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { estimateText } from "../../../../../context/document/estimate.ts";
import type { PartContext } from "../../../../../context/parts/optimisation/part-context.ts";
import { emptyMemory, type Memory } from "../../../../../extension/memory.ts";
import type { AgentMessage, SessionEntry } from "../../../../../extension/pi-types.ts";
import type { OptimisationOptions } from "../../../../../protocol/optimisation/options.ts";
import { resolveOptimisation } from "../../../../../protocol/optimisation/resolve.ts";

/** A session and a part context that record what parts do to them. */
export class FakeSession {
  readonly entries: SessionEntry[] = [];
  /** What the model sees of the session, by `buildSessionProjection`. */
  messages: AgentMessage[] = [];
  readonly degraded: string[] = [];
  readonly faults: string[] = [];
  readonly memory: Memory = emptyMemory();
  readonly host: PartContext;
  readonly ctx: ExtensionContext;
  commands: { readonly name: string; readonly path: string }[] = [];
  activeTools: readonly string[] = [];
  /** What `appendEntry` throws. */
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
    this.host = {
      pi,
      memory: this.memory,
      context: () => (this.isBegun ? this.ctx : undefined),
      config: () => this.memory.parts?.optimisation,
      estimator: { text: estimateText },
      degraded: (part: string, reason: string) => void this.degraded.push(`${part}: ${reason}`),
      restored: () => {},
      fault: (where: string) => void this.faults.push(where),
    } as unknown as PartContext;
  }

  configure(optimisation: OptimisationOptions, labels: Readonly<Record<string, string>> = {}): void {
    this.memory.parts = { optimisation: resolveOptimisation(optimisation), spillDirectory: "/nonexistent", labels };
  }

  add(entry: Readonly<Record<string, unknown>>): void {
    this.entries.push({ id: String(this.entries.length), parentId: null, ...entry } as unknown as SessionEntry);
  }
}

/** What pi shows of the prompt before a run. */
export function runOf(options: object): BeforeAgentStartEvent {
  return { systemPromptOptions: options } as unknown as BeforeAgentStartEvent;
}

export function head(sections: Readonly<Record<string, string>>): AgentMessage {
  return { role: "system", content: "", sections, timestamp: 0 };
}

export function user(text: string, timestamp = 1): AgentMessage {
  return { role: "user", content: [{ type: "text", text }], timestamp };
}
