import { join } from "node:path";
import type { OptimisationOptions } from "../../../protocol/optimisation/options.ts";
import type { PruningOptions } from "../../../protocol/pruning/options.ts";
import type { ScriptedName } from "../../../provider/agent-dir.ts";
import { startDaemonUnderTest } from "../daemon-under-test.ts";
import type { Resources, Setting } from "../figure.ts";
import type { CompressPolicy } from "../pruning/compressor.ts";
import { RawClient } from "../raw-client.ts";
import { type RealPi, scriptModel } from "../real-pi.ts";
import { makeTrace } from "./make.ts";
import { traceExtension, writeTraceProject, writeTraceSkills } from "./project.ts";
import { type Spending, TraceScript } from "./script.ts";
import type { Prices } from "./spending.ts";
import type { Trace, TraceName } from "./trace.ts";

export interface TraceRun {
  readonly trace: TraceName;
  /** The model's id, unique within the stage. */
  readonly id: string;
  readonly provider: ScriptedName;
  readonly optimisation?: OptimisationOptions | undefined;
  readonly pruning?: PruningOptions | undefined;
  /** When the model compresses. Default: never. */
  readonly compresses?: CompressPolicy | undefined;
}

/** The model of a run. */
export interface TraceModel {
  readonly cost: Prices;
  /** In tokens. Default: the scripted provider's. */
  readonly contextWindow?: number | undefined;
}

export interface TraceStage {
  /** Runs a new session through the trace. Throws if the conversation deviates from it. */
  run(run: TraceRun): Promise<Spending>;
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
      models: [...models].map(([id, { cost, contextWindow = 200_000 }]) => ({ id, cost, contextWindow })),
      defaultProvider: "scripted-anthropic",
    },
  );
  writeTraceSkills(String(env["PI_CODING_AGENT_DIR"]));
  const daemon = await startDaemonUnderTest(setting, resources, { pi: pi.path, env });
  const client = await RawClient.open(daemon, "unix", resources);
  const projects = new Map<TraceName, { trace: Trace; cwd: string }>();
  const projectOf = (name: TraceName): { trace: Trace; cwd: string } => {
    const made = projects.get(name);
    if (made !== undefined) return made;
    const trace = makeTrace(name);
    const project = { trace, cwd: writeTraceProject(trace, join(setting.directory, `${pi.version}-${name}`)) };
    projects.set(name, project);
    return project;
  };
  return {
    run: async ({ trace: name, id, provider, optimisation, pruning, compresses }) => {
      const { trace, cwd } = projectOf(name);
      script.begin(id, trace, compresses);
      const { sessionId } = await client.request("session/create", {
        ...{ cwd, model: `${provider}/${id}`, extensions: [traceExtension] },
        ...(optimisation !== undefined && { optimisation }),
        ...(pruning !== undefined && { pruning }),
      });
      for (const { text } of trace.prompts) {
        await client.request("session/prompt", { sessionId, text });
        await client.request("session/waitForIdle", { sessionId });
      }
      await client.request("session/close", { sessionId });
      const spending = script.spending(id);
      if (spending.leftOver > 0) throw new Error(`${id}: ${spending.leftOver} answers of the trace were not used.`);
      return spending;
    },
  };
}
