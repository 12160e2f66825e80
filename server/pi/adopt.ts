import type { PartsConfig } from "../../protocol/link.ts";
import { deferred } from "../lib/deferred.ts";
import type { Child, ChildSinks } from "./child.ts";
import { type ReadyState, readyState } from "./ready-state.ts";
import { isRecordObject, type PiCommand } from "./records.ts";
import { isEndlessDialog } from "./startup-dialogs.ts";

/** What a warm child is to become. */
export interface Adoption {
  /** Exists, with its header at least. */
  readonly sessionFile: string;
  /** As `provider/id`. Default: what the file, or pi's settings, say. */
  readonly model?: string | undefined;
  readonly thinking?: string | undefined;
  /** Only for a file that has none yet. */
  readonly name?: string | undefined;
  /** What the parts inside pi go by. Default: none is on. */
  readonly parts?: PartsConfig | undefined;
  /** Get what the child reports from now on. */
  readonly sinks: ChildSinks;
}

/** Why a warm child cannot be used. The session gets a cold one, which says what is wrong in pi's own words. */
class NotAdopted extends Error {
  override readonly name = "NotAdopted";
}

/**
 * Brings a child that runs without a session file into one. pi loads the extensions anew with the file, so that the child
 * is then as one that was started with it. Throws {@link NotAdopted} or what a command can throw; the child is then of
 * no use.
 */
export async function adopt(child: Child, { sinks, ...adoption }: Adoption): Promise<ReadyState> {
  const asked = deferred<never>();
  child.rebind({
    ...sinks,
    onEvent: (record, event, isDelta) => {
      // At a cold start nobody could answer it: the session gets one, which says so.
      if (event !== undefined && isEndlessDialog(event)) asked.reject(new NotAdopted("An extension asks something."));
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
  // Its helper has it then before the session begins.
  if (parts !== undefined) await child.link.send({ kind: "configure", parts, isForNext: true });
  const switched = await ask(child, { type: "switch_session", sessionPath: sessionFile });
  if (isRecordObject(switched) && switched["cancelled"] === true) throw new NotAdopted("An extension forbids it.");
  await child.verify();
  let { file, state } = await stateOf(child);
  if (file !== sessionFile) throw new NotAdopted("pi has another session.");
  const wanted: PiCommand[] = [];
  if (model !== undefined && model !== nameOf(state)) {
    const [provider, modelId] = split(model);
    wanted.push({ type: "set_model", provider, modelId });
  }
  // Behind the model, which may bring a level of its own.
  if (thinking !== undefined && (wanted.length > 0 || thinking !== state.thinkingLevel)) {
    wanted.push({ type: "set_thinking_level", level: thinking });
  }
  if (name !== undefined && name !== state.sessionName) wanted.push({ type: "set_session_name", name });
  for (const command of wanted) await ask(child, command);
  if (wanted.length > 0) ({ state } = await stateOf(child));
  if (model !== undefined && model !== nameOf(state)) throw new NotAdopted("pi has another model.");
  return state;
}

/** Whether a model is named in the way that {@link adopt} can set: in full, as pi itself does. */
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
  return { file: isRecordObject(data) ? data["sessionFile"] : undefined, state: readyState(data) };
}

function nameOf({ model }: ReadyState): string | undefined {
  return model === undefined ? undefined : `${model.provider}/${model.id}`;
}

function split(model: string): [provider: string, modelId: string] {
  const at = model.indexOf("/");
  return [model.slice(0, at), model.slice(at + 1)];
}
