import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { PartStatus, Reporter } from "../../../context/parts/optimisation/part-states.ts";
import { BoundaryWriter } from "../../../extension/boundary.ts";
import type { AskHandler, HostPort } from "../../../extension/engine-port.ts";
import { emptyMemory } from "../../../extension/memory.ts";
import type { SessionEntry } from "../../../extension/pi-types.ts";
import { RequestPipeline } from "../../../extension/request-pipeline.ts";

export interface FakeHost extends HostPort {
  readonly faults: { readonly where: string; readonly thrown: unknown }[];
  readonly notices: { readonly name: string; readonly data: unknown }[];
  readonly answers: Map<string, AskHandler>;
  /** Emits an event of pi to the parts. */
  emit(event: string, given: unknown): unknown;
}

/** The host of a part without a pi: the test runs its hooks. */
export function fakeHost(ctx: ExtensionContext): FakeHost {
  const faults: FakeHost["faults"] = [];
  const notices: FakeHost["notices"] = [];
  const handlers = new Map<string, ((given: unknown, ctx: ExtensionContext) => unknown)[]>();
  const answers = new Map<string, AskHandler>();
  const fault: HostPort["fault"] = (where, thrown) => void faults.push({ where, thrown });
  return {
    faults,
    notices,
    answers,
    pi: {} as ExtensionAPI,
    memory: emptyMemory(),
    pipeline: new RequestPipeline(fault),
    boundary: new BoundaryWriter(fault),
    context: () => ctx,
    answer: (about, answerer) => void answers.set(about, answerer),
    onSession: (begun) => begun(ctx, "startup"),
    on: (_part, event, handler) => {
      handlers.set(event, [...(handlers.get(event) ?? []), handler as (given: unknown) => unknown]);
    },
    notify: (name, data) => void notices.push({ name, data }),
    debug: () => undefined,
    deliver: () => undefined,
    reload: () => undefined,
    isUnanswered: () => false,
    isWaitedFor: () => false,
    fault,
    emit: (event, given) => (handlers.get(event) ?? []).map((handler) => handler(given, ctx)),
  };
}

export interface FakeStatus extends PartStatus {
  /** Why the part was degraded. */
  readonly reasons: string[];
  /** The part's report. */
  report(ctx: ExtensionContext): ReturnType<Reporter> | undefined;
}

/** A part's status that records its reports. */
export function fakeStatus(): FakeStatus {
  const reasons: string[] = [];
  let reporter: Reporter | undefined;
  return {
    reasons,
    report: (ctx) => reporter?.(ctx),
    inspect: (given) => {
      reporter = given;
    },
    degraded: (reason) => void reasons.push(reason),
    restored: () => undefined,
  };
}

/** pi's context in a session of these entries. */
export function fakeContext(entries: readonly SessionEntry[] = []): ExtensionContext {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  return {
    model: { provider: "test", id: "model", contextWindow: 200_000, maxTokens: 8_192, cost: { input: 3 } },
    getSystemPrompt: () => "You are helpful.",
    sessionManager: {
      getLeafEntry: () => entries.at(-1),
      getEntry: (id: string) => byId.get(id),
      getSessionId: () => "s1",
      getEntries: () => [...entries],
      buildSessionProjection: () => ({
        entries: [],
        messages: entries.flatMap((entry) => (entry.type === "message" ? [entry.message] : [])),
      }),
    },
  } as unknown as ExtensionContext;
}
