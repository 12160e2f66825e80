import { join } from "node:path";
import type { OptimisationOptions } from "../../../protocol/optimisation/options.ts";
import type { PruningOptions } from "../../../protocol/pruning/options.ts";
import type { ScriptedName } from "../../../provider/agent-dir.ts";
import { startDaemonUnderTest } from "../daemon-under-test.ts";
import type { Resources, Setting } from "../figure.ts";
import { RawClient } from "../raw-client.ts";
import { type RealPi, scriptModel } from "../real-pi.ts";
import { makeTrace } from "./make.ts";
import { traceExtension, writeTraceProject, writeTraceSkills } from "./project.ts";
import { type ModelHabits, type Spending, TraceScript } from "./script.ts";
import type { Prices } from "./spending.ts";
import type { Trace, TraceName } from "./trace.ts";

export interface TraceRun extends ModelHabits {
  readonly trace: TraceName;
  /** Which texts the trace has. Default 0. */
  readonly variant?: number | undefined;
  /** The model's id, unique within the stage. */
  readonly id: string;
  readonly provider: ScriptedName;
  readonly profile?: string | undefined;
  readonly optimisation?: OptimisationOptions | undefined;
  readonly pruning?: PruningOptions | undefined;
}

/** The model of a run. */
export interface TraceModel {
  readonly cost: Prices;
  /** How long the service keeps a cached prefix, in seconds, as pi's models have it. Default: unknown. */
  readonly promptCache?: { readonly short: number; readonly long: number } | undefined;
  /** In tokens. Default: the scripted provider's. */
  readonly contextWindow?: number | undefined;
  /** Whether pi sends only new messages, as Anthropic's message threads allow. Default: no. */
  readonly hasThreads?: boolean | undefined;
}

/** The price of an edit of earlier context, in USD. */
interface EditPrice {
  /** For tokens that were cached. */
  readonly missedUsd: number;
  /** For tokens that later requests did not read. */
  readonly savedUsd: number;
}

/** An edit of earlier context, as the session reports it. */
export interface PricedEdit {
  readonly part: string;
  readonly entryId: string;
  /** Whether it saves nothing more. */
  readonly isOver: boolean;
  readonly predicted: EditPrice;
  readonly actual: EditPrice;
}

export interface TraceResult {
  readonly spending: Spending;
  readonly edits: readonly PricedEdit[];
}

export interface TraceStage {
  /** Runs a new session through the trace. Throws if the conversation deviates from it. */
  run(run: TraceRun): Promise<TraceResult>;
}

/** A daemon, and a separate model for each run, so that no run reads another one's cache at the provider. */
export async function startTraceStage(
  pi: RealPi,
  models: ReadonlyMap<string, TraceModel>,
  setting: Setting,
  resources: Resources,
): Promise<TraceStage> {
  const script = new TraceScript();
  const { env } = await scriptModel(
    setting,
    resources,
    // Completed requests are not needed, and they are large.
    { otherwise: script.answer, cache: { now: script.now }, maxLogEntries: 8 },
    {
      models: [...models].map(([id, { contextWindow = 200_000, hasThreads = false, ...model }]) => ({
        ...{ ...model, id, contextWindow },
        ...(hasThreads && { compat: { supportsMessageThreads: true } }),
      })),
      defaultProvider: "scripted-anthropic",
    },
  );
  writeTraceSkills(String(env["PI_CODING_AGENT_DIR"]));
  const daemon = await startDaemonUnderTest(setting, resources, { pi: pi.path, env });
  const client = await RawClient.open(daemon, "unix", resources);
  const projects = new Map<string, { trace: Trace; cwd: string }>();
  const projectOf = (name: TraceName, variant: number): { trace: Trace; cwd: string } => {
    const key = `${pi.version}-${name}-${variant}`;
    const made = projects.get(key);
    if (made !== undefined) return made;
    const trace = makeTrace(name, variant);
    const project = { trace, cwd: writeTraceProject(trace, join(setting.directory, key)) };
    projects.set(key, project);
    return project;
  };
  return {
    run: async ({ trace: name, variant = 0, id, provider, profile, optimisation, pruning, ...habits }) => {
      const { trace, cwd } = projectOf(name, variant);
      script.begin(id, trace, habits);
      const { sessionId } = await client.request("session/create", {
        ...{ cwd, model: `${provider}/${id}`, extensions: [traceExtension] },
        ...(profile !== undefined && { profile }),
        ...(optimisation !== undefined && { optimisation }),
        ...(pruning !== undefined && { pruning }),
      });
      for (const { text } of trace.prompts) {
        await client.request("session/prompt", { sessionId, text });
        await idle(client, sessionId);
      }
      const edits = await editsOf(client, sessionId);
      await client.request("session/close", { sessionId });
      const spending = script.spending(id);
      if (spending.leftOver > 0) throw new Error(`${id}: ${spending.leftOver} answers of the trace were not used.`);
      return { spending, edits };
    },
  };
}

/** None if the session has neither the part `cache` nor pruning. */
async function editsOf(client: RawClient, sessionId: string): Promise<readonly PricedEdit[]> {
  const reports = await Promise.all(
    (["cache/report", "pruning/stats"] as const).map((method) =>
      client.request(method, { sessionId }).catch(() => undefined),
    ),
  );
  const edits = reports.flatMap((report) => {
    const { edits: told } = (report ?? {}) as { readonly edits?: { readonly recent: readonly PricedEdit[] } };
    return told?.recent ?? [];
  });
  return [...new Map(edits.map((edit) => [edit.entryId, edit])).values()];
}

/** Waits for the session, in parts that are shorter than the client's limit for a request. */
async function idle(client: RawClient, sessionId: string): Promise<void> {
  for (let isIdle = false; !isIdle; ) {
    isIdle = await client.request("session/waitForIdle", { sessionId, timeoutMs: 30_000 }).then(
      () => true,
      (error: Error) => {
        if (error.message.includes("was not idle within")) return false;
        throw error;
      },
    );
  }
}
