import type { PartsConfig } from "../../protocol/link.ts";
import { isRecord } from "../../protocol/objects.ts";
import { deferred } from "../lib/deferred.ts";
import type { Child, ChildSinks } from "./child.ts";
import { type ReadyState, readyState } from "./ready-state.ts";
import type { PiCommand } from "./records.ts";
import { isEndlessDialog } from "./startup-dialogs.ts";

/** The session that a warm child gets. */
export interface Adoption {
  /** Exists, and has at least its header. */
  readonly sessionFile: string;
  /** As `provider/id`. Default: the model in the file, or in pi's settings. */
  readonly model?: string | undefined;
  readonly thinking?: string | undefined;
  /** Only for a file without a name. */
  readonly name?: string | undefined;
  /** Configuration of the parts inside pi. Default: all parts are off. */
  readonly parts?: PartsConfig | undefined;
  /** Receive the child's reports from now on. */
  readonly sinks: ChildSinks;
}

/** Why a warm child cannot be used. The session then gets a cold one, which reports the error in pi's own words. */
class NotAdopted extends Error {
  override readonly name = "NotAdopted";
}

/**
 * Switches a child without a session file to one. pi reloads its extensions with the file, so the child is then like
 * one that was started with it. Throws {@link NotAdopted}, or the errors of commands; the child must not be used
 * after that.
 */
export async function adopt(child: Child, { sinks, ...adoption }: Adoption): Promise<ReadyState> {
  const asked = deferred<never>();
  // Its extensions are loaded again, and write again what they write then.
  child.stderrFrom = child.stderrAfter(0, 0).end;
  child.rebind({
    ...sinks,
    onEvent: (record, event, isDelta) => {
      // At a cold start no client could answer it: the session gets a cold child, which reports it.
      if (event !== undefined && isEndlessDialog(event))
        asked.reject(new NotAdopted("An extension opened a dialog without a timeout."));
      else sinks.onEvent(record, event, isDelta);
    },
  });
  const state = await Promise.race([take(child, adoption), asked.promise]);
  child.rebind(sinks);
  return state;
}

async function take(
  child: Child,
  { sessionFile, model, thinking, name, parts }: Omit<Adoption, "sinks">,
): Promise<ReadyState> {
  // So the helper has it before the session begins.
  if (parts !== undefined) await child.link.send({ kind: "configure", parts, isForNext: true });
  const switched = await ask(child, { type: "switch_session", sessionPath: sessionFile });
  if (isRecord(switched) && switched["cancelled"] === true) throw new NotAdopted("An extension cancelled the switch.");
  let [{ file, state }] = await Promise.all([stateOf(child), child.verify()]);
  if (file !== sessionFile) throw new NotAdopted("pi has another session.");
  const wanted: PiCommand[] = [];
  if (model !== undefined && model !== nameOf(state)) {
    const [provider, modelId] = split(model);
    wanted.push({ type: "set_model", provider, modelId });
  }
  // After the model, which may have its own level.
  if (thinking !== undefined && (wanted.length > 0 || thinking !== state.thinkingLevel)) {
    wanted.push({ type: "set_thinking_level", level: thinking });
  }
  if (name !== undefined && name !== state.sessionName) wanted.push({ type: "set_session_name", name });
  for (const command of wanted) await ask(child, command);
  if (wanted.length > 0) ({ state } = await stateOf(child));
  if (model !== undefined && model !== nameOf(state)) throw new NotAdopted("pi has another model.");
  return state;
}

/** Whether {@link adopt} can set this model: its name must be complete, as pi itself requires. */
export function isExactModel(model: string | undefined): boolean {
  return model === undefined || /^[^/\s*:]+\/[^\s*:]+$/.test(model);
}

async function ask(child: Child, command: PiCommand): Promise<unknown> {
  const response = await child.send(command);
  if (!response.success) throw new NotAdopted(`pi refused "${command.type}": ${response.error ?? "no reason"}`);
  return response.data;
}

async function stateOf(child: Child): Promise<{ file: unknown; state: ReadyState }> {
  const data = await ask(child, { type: "get_state" });
  return { file: isRecord(data) ? data["sessionFile"] : undefined, state: readyState(data) };
}

function nameOf({ model }: ReadyState): string | undefined {
  return model === undefined ? undefined : `${model.provider}/${model.id}`;
}

function split(model: string): [provider: string, modelId: string] {
  const at = model.indexOf("/");
  return [model.slice(0, at), model.slice(at + 1)];
}
