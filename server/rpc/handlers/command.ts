import type { commandMethods } from "../../../protocol/command-methods.ts";
import type { Params, Result } from "../../../protocol/methods.ts";
import type { Validator } from "../../../protocol/validation.ts";
import { changesSession, checkCommand, checkFields } from "../../children/client-command.ts";
import { objectOf, type PiCommand } from "../../children/pi-calls.ts";
import { entryTree } from "../../custody/entry-tree.ts";
import { labelsIn } from "../../custody/stored-branch.ts";
import type { DeliveryTracker } from "../../delivery/tracker.ts";
import type { Registry } from "../../session/registry.ts";
import { atResponse } from "../answer-place.ts";
import { keepText } from "../answer-text.ts";
import type { Call, HandlersOf } from "../call.ts";

export function commandHandlers(
  registry: Registry,
  tracker: DeliveryTracker,
  validator: Validator,
): HandlersOf<typeof commandMethods> {
  /** pi's data. Changes of the session are attributed to the caller. */
  const sent = (sessionId: string, command: PiCommand, call: Call): Promise<unknown> => {
    const session = registry.get(sessionId);
    const send = () => session.calls.send(command, call.signal, atResponse(session, call));
    return changesSession(command.type) ? session.attribution.acting(call.by, send) : send();
  };

  /** Sends the params as a pi command of this type. The result is pi's object, as its documents define it. */
  const asked =
    (type: string) =>
    async ({ sessionId, idempotencyKey: _, cached: _cached, ...fields }: Given, call: Call): Promise<never> =>
      objectOf(await sent(sessionId, { type, ...fields }, call), type) as never;

  /** Like {@link asked}, for commands that pi answers without data. */
  const told =
    (type: string) =>
    async ({ sessionId, idempotencyKey: _, ...fields }: Given, call: Call): Promise<Record<never, never>> => {
      await sent(sessionId, { type, ...fields }, call);
      return {};
    };

  /** pi answers `null` if there is nothing to change to. */
  const cycled =
    (type: string) =>
    async ({ sessionId }: Given, call: Call): Promise<{ readonly changed: boolean }> => {
      const data = await sent(sessionId, { type }, call);
      return typeof data === "object" && data !== null ? { ...data, changed: true } : { changed: false };
    };

  return {
    "session/getState": asked("get_state"),
    "session/getMessages": asked("get_messages"),
    "session/getEntries": asked("get_entries"),
    "session/getTree": async ({ sessionId }, call) => {
      const { value, text } = entryTree(await sent(sessionId, { type: "get_entries" }, call));
      return keepText(value, text) as never;
    },
    "session/getForkMessages": asked("get_fork_messages"),
    "session/getLastText": async ({ sessionId }, call) => {
      // pi omits the text if there is no answer yet.
      const { text } = objectOf(
        await sent(sessionId, { type: "get_last_assistant_text" }, call),
        "get_last_assistant_text",
      );
      return { text: typeof text === "string" ? text : null };
    },
    "session/getStats": asked("get_session_stats"),
    "session/getCommands": asked("get_commands"),
    "session/getThinkingLevels": asked("get_available_thinking_levels"),
    "session/setModel": asked("set_model"),
    "session/cycleModel": cycled("cycle_model"),
    "session/setThinkingLevel": async ({ sessionId, level }, call) => {
      await sent(sessionId, { type: "set_thinking_level", level }, call);
      const { thinkingLevel } = registry.get(sessionId).info();
      return thinkingLevel === undefined ? {} : { level: thinkingLevel };
    },
    "session/cycleThinkingLevel": cycled("cycle_thinking_level"),
    "session/rename": told("set_session_name"),
    "session/compact": async ({ sessionId, customInstructions }, call) => {
      const session = registry.get(sessionId);
      const underWay = tracker.underWay(sessionId);
      const compaction = await session.calls.compact(customInstructions, call.signal, atResponse(session, call));
      return {
        compaction: compaction as Result<"session/compact">["compaction"],
        deliveries: await tracker.effects(underWay),
      };
    },
    "session/navigate": (params, { signal, by }) => {
      const session = registry.get(params.sessionId);
      return session.attribution.acting(by, () => session.parts.navigate(params, signal));
    },
    "session/setLabel": ({ idempotencyKey: _, ...params }, { signal, by }) => {
      const session = registry.get(params.sessionId);
      return session.attribution.acting(by, () => session.parts.setLabel(params, signal));
    },
    "session/listLabels": async ({ sessionId }, call) => {
      const { entries } = objectOf(await sent(sessionId, { type: "get_entries" }, call), "get_entries");
      return { labels: labelsIn(entries) };
    },
    "session/abortRetry": told("abort_retry"),
    "session/bash": async ({ sessionId, command, excludeFromContext, bashId }, call) => {
      const session = registry.get(sessionId);
      const request = { command, excludeFromContext, bashId };
      return (await session.calls.bash(request, call.signal, atResponse(session, call))) as Result<"session/bash">;
    },
    "session/abortBash": told("abort_bash"),
    "session/export": async ({ sessionId }, { signal }) => ({
      html: await registry.get(sessionId).calls.exportHtml(signal),
    }),
    "session/command": async ({ sessionId, command, confirmShared }, call) => {
      checkCommand(command, confirmShared === true);
      checkFields(command, validator);
      const underWay = tracker.underWay(sessionId);
      const data = await sent(sessionId, command, call);
      const result = data === undefined ? {} : { data };
      return command.type === "compact" ? { ...result, deliveries: await tracker.effects(underWay) } : result;
    },
  };
}

type Given = Params<"session/get"> & { readonly idempotencyKey?: string; readonly cached?: boolean };
