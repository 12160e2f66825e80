import { randomBytes, randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type HelperConfig, LINK_VERSION } from "../../protocol/link.ts";
import { Child, type ChildOptions } from "./child.ts";
import { codeCaches } from "./code-caches.ts";
import type { ReadyState } from "./ready-state.ts";
import { type PromptFiles, planSpawn } from "./spawn-options.ts";
import { spawnFailure } from "./start-failure.ts";
import { startChild } from "./stdio.ts";

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
  const prompts = promptTexts(options);
  const plan = planSpawn({
    program: options.program,
    helper: options.helper,
    helperConfig: configFile,
    childId: id,
    sessionFile: options.sessionFile,
    cwd: options.cwd,
    options: options.pi,
    promptFiles: Object.fromEntries(prompts.map(({ option, file }) => [option, file])),
    env: options.env,
    startEnv: caches.env,
  });
  const { contextWithinMs, isOnlyAsked, parts } = options;
  const { customUi } = options.pi;
  const config: HelperConfig = {
    link: LINK_VERSION,
    statusKey,
    startEnvironment: plan.startEnvironment,
    ...(contextWithinMs === undefined ? {} : { contextWithinMs }),
    ...(isOnlyAsked === true ? { isOnlyAsked } : {}),
    ...(customUi === "throw" ? { customUi } : {}),
    ...(parts === undefined ? {} : { parts }),
  };
  let isStarted = false;
  // Before the first file: the next daemon removes the files that a killed one left of this start.
  options.childRegistry?.begin(id);
  try {
    await writeFile(configFile, JSON.stringify(config), { mode: 0o600, flag: "wx" });
    for (const { file, text } of prompts) await writeFile(file, text, { mode: 0o600, flag: "wx" });
    const stdio = await startChild(plan).catch((cause: NodeJS.ErrnoException) => {
      throw spawnFailure(cause, options.program.path);
    });
    options.childRegistry?.started(id, stdio.pid);
    const child = new Child(options, id, statusKey, stdio);
    isStarted = true;
    // pi reads them again whenever its extensions are reloaded.
    void child.cleaned.then(() => remove(prompts));
    const abandon = (): void => void child.stop();
    options.signal.addEventListener("abort", abandon, { once: true });
    try {
      if (options.signal.aborted) abandon();
      return { child, ready: await child.becomeReady() };
    } catch (error) {
      await child.stop();
      await child.cleaned;
      throw error;
    } finally {
      options.signal.removeEventListener("abort", abandon);
    }
  } finally {
    await rm(configFile, { force: true });
    if (!isStarted) {
      await remove(prompts);
      options.childRegistry?.ended(id);
    }
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
function promptTexts({ pi, runDirectory }: ChildOptions): PromptText[] {
  return (["systemPrompt", "appendSystemPrompt"] as const).flatMap((option) => {
    const text = pi[option];
    return text === undefined ? [] : [{ option, text, file: join(runDirectory, `prompt-${randomUUID()}.md`) }];
  });
}

async function remove(prompts: readonly PromptText[]): Promise<void> {
  for (const { file } of prompts) await rm(file, { force: true }).catch(() => {});
}
