import { randomBytes, randomUUID } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type HelperConfig, LINK_VERSION } from "../../protocol/link.ts";
import { Child, type ChildOptions } from "./child.ts";
import { codeCaches } from "./code-caches.ts";
import { KeeperUnavailable, type KeptPlace, keptPlaceOf, removeKept, startKept } from "./kept-stdio.ts";
import { holderOf } from "./lease-holder.ts";
import type { ReadyState } from "./ready-state.ts";
import { type PiOptions, type PromptFiles, planSpawn, type SpawnPlan } from "./spawn-options.ts";
import { spawnFailure } from "./start-failure.ts";
import { type ChildStdio, startChild } from "./stdio.ts";

/** Starts a pi with its helper. Throws `start_failed`, `link_failed` or `model_not_found`; then nothing remains. */
export async function startPi(options: ChildOptions): Promise<{ readonly child: Child; readonly ready: ReadyState }> {
  const id = randomUUID();
  const statusKey = `pi-rpcd:${randomBytes(16).toString("hex")}`;
  const caches = codeCaches(options.env);
  if (caches.problem !== undefined) {
    options.log.warn(
      `pi starts slowly, because its compiled code cannot be cached in a private directory: ${caches.problem}`,
    );
  }
  // The path is in pi's environment, which must not name the state directory.
  const configFile = helperConfigFile(caches.directory ?? options.runDirectory, id);
  const place = placeOf(id, options);
  const prompts = promptTexts(options.pi, place.directory);
  const planWith = (keeper?: string) =>
    planSpawn({
      program: options.program,
      keeper,
      helper: options.helper,
      helperConfig: configFile,
      childId: id,
      sessionFile: options.sessionFile,
      sessionId: options.sessionId,
      cwd: options.cwd,
      options: options.pi,
      promptFiles: Object.fromEntries(prompts.map(({ option, file }) => [option, file])),
      env: options.environment?.variables ?? options.env,
      startEnv: caches.env,
    });
  const plan = planWith();
  const { contextWithinMs, isOnlyAsked, parts, mcpServers } = options;
  const { customUi } = options.pi;
  const config: HelperConfig = {
    link: LINK_VERSION,
    statusKey,
    startEnvironment: plan.startEnvironment,
    ...(contextWithinMs === undefined ? {} : { contextWithinMs }),
    ...(isOnlyAsked === true ? { isOnlyAsked } : {}),
    ...(customUi === "throw" ? { customUi } : {}),
    ...(parts === undefined ? {} : { parts }),
    ...(mcpServers?.isEmpty === false ? { mcpServers: mcpServers.servers } : {}),
  };
  let isStarted = false;
  // Before the first file: the next daemon removes the files that a killed one left of this start.
  options.childRegistry?.begin(id);
  try {
    await writeFile(configFile, JSON.stringify(config), { mode: 0o600, flag: "wx" });
    mkdirSync(place.directory, { mode: 0o700 });
    for (const { file, text } of prompts) await writeFile(file, text, { mode: 0o600, flag: "wx" });
    const stdio = await startStdio(plan, () => planWith(options.kept?.keeper), place, id, options).catch(
      (cause: NodeJS.ErrnoException) => {
        throw spawnFailure(cause, options.program.path);
      },
    );
    options.childRegistry?.started(id, stdio.pid, stdio.keeper !== undefined);
    const identity = stdio.keeper === undefined ? undefined : await holderOf(stdio.pid);
    const child = new Child(options, { id, statusKey, stdio, place, identity });
    isStarted = true;
    const abandon = (): void => void child.stop();
    options.signal.addEventListener("abort", abandon, { once: true });
    try {
      if (options.signal.aborted) abandon();
      return { child, ready: await child.becomeReady() };
    } catch (error) {
      await child.stop();
      await child.cleaned;
      child.removeFiles();
      throw error;
    } finally {
      options.signal.removeEventListener("abort", abandon);
    }
  } finally {
    await rm(configFile, { force: true });
    if (!isStarted) {
      removeKept(place);
      options.childRegistry?.ended(id);
    }
  }
}

/** Where it and the daemon meet; pi reads the files again whenever its extensions are reloaded. */
function placeOf(id: string, { runDirectory, kept }: ChildOptions): KeptPlace {
  return keptPlaceOf(id, kept?.socketDirectory ?? runDirectory, runDirectory);
}

/** Starts it with a keeper if there is one, otherwise with pipes. */
async function startStdio(
  plan: SpawnPlan,
  planWithKeeper: () => SpawnPlan,
  place: KeptPlace,
  childId: string,
  { kept, program, limits, log }: ChildOptions,
): Promise<ChildStdio> {
  const { maxStderrBytes } = limits;
  if (kept === undefined) return await startChild(plan, maxStderrBytes);
  const { listenWithinMs, status } = kept;
  const start = { childId, limits: kept.limits, maxStderrBytes, listenWithinMs };
  try {
    if (program.kind !== "script") throw new KeeperUnavailable(`${program.path} is not a script that Node runs.`);
    const stdio = await startKept(planWithKeeper(), place, start);
    status.started(childId, undefined);
    return stdio;
  } catch (error) {
    if (!(error instanceof KeeperUnavailable)) throw error;
    if (status.problem !== error.message) log.warn(`this pi will end with the daemon: ${error.message}`);
    const stdio = await startChild(plan, maxStderrBytes);
    status.started(childId, error.message);
    return stdio;
  }
}

function helperConfigFile(directory: string, childId: string): string {
  return join(directory, `helper-${childId}.json`);
}

/** Removes the files of starts that a killed daemon did not complete. */
export function removeHelperConfigs(childIds: readonly string[], env: NodeJS.ProcessEnv): void {
  if (childIds.length === 0) return;
  const { directory } = codeCaches(env);
  // Then they are in the run directory, which each daemon empties.
  if (directory === undefined) return;
  for (const id of childIds) rmSync(helperConfigFile(directory, id), { force: true });
}

interface PromptText {
  readonly option: keyof PromptFiles;
  readonly file: string;
  readonly text: string;
}

/** Texts that pi takes from files. On its command line other users of the machine could read them. */
function promptTexts(pi: PiOptions, directory: string): PromptText[] {
  return (["systemPrompt", "appendSystemPrompt"] as const).flatMap((option) => {
    const text = pi[option];
    return text === undefined ? [] : [{ option, text, file: join(directory, `${option}.md`) }];
  });
}
