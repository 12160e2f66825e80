import type { commandMethods } from "../../../protocol/command-methods.ts";
import type { Params, Result } from "../../../protocol/methods.ts";
import type { DeliveryTracker } from "../../delivery/tracker.ts";
import { checkCommand } from "../../session/client-command.ts";
import type { Registry } from "../../session/registry.ts";
import type { Call, HandlersOf } from "../call.ts";

export function commandHandlers(registry: Registry, tracker: DeliveryTracker): HandlersOf<typeof commandMethods> {
  const callsOf = (sessionId: string) => registry.get(sessionId).calls;

  /** Sends the params as pi's command of this type; the result is pi's object, which its documents promise. */
  const asked =
    (type: string) =>
    async ({ sessionId, idempotencyKey: _, ...fields }: Given, { signal }: Call): Promise<never> =>
      (await callsOf(sessionId).object({ type, ...fields }, signal)) as never;

  /** As {@link asked}, for what pi answers without data. */
  const told =
    (type: string) =>
    async ({ sessionId, idempotencyKey: _, ...fields }: Given, { signal }: Call): Promise<Record<never, never>> => {
      await callsOf(sessionId).send({ type, ...fields }, signal);
      return {};
    };

  /** pi answers `null` where there is nothing to change to. */
  const cycled =
    (type: string) =>
    async ({ sessionId }: Given, { signal }: Call): Promise<{ readonly changed: boolean }> => {
      const data = await callsOf(sessionId).send({ type }, signal);
      return typeof data === "object" && data !== null ? { ...data, changed: true } : { changed: false };
    };

  return {
    "session/getState": asked("get_state"),
    "session/getMessages": asked("get_messages"),
    "session/getEntries": asked("get_entries"),
    "session/getTree": asked("get_tree"),
    "session/getForkMessages": asked("get_fork_messages"),
    "session/getLastText": asked("get_last_assistant_text"),
    "session/getStats": asked("get_session_stats"),
    "session/getCommands": asked("get_commands"),
    "session/getThinkingLevels": asked("get_available_thinking_levels"),
    "session/setModel": asked("set_model"),
    "session/cycleModel": cycled("cycle_model"),
    "session/setThinkingLevel": async ({ sessionId, level }, { signal }) => {
      await callsOf(sessionId).send({ type: "set_thinking_level", level }, signal);
      const { thinkingLevel } = registry.get(sessionId).info();
      return thinkingLevel === undefined ? {} : { level: thinkingLevel };
    },
    "session/cycleThinkingLevel": cycled("cycle_thinking_level"),
    "session/rename": told("set_session_name"),
    "session/compact": async ({ sessionId, customInstructions }, { signal }) => {
      const underWay = tracker.underWay(sessionId);
      const compaction = await callsOf(sessionId).compact(customInstructions, signal);
      return {
        compaction: compaction as Result<"session/compact">["compaction"],
        deliveries: tracker.effects(underWay),
      };
    },
    "session/abortRetry": told("abort_retry"),
    "session/bash": async ({ sessionId, command, excludeFromContext, bashId }, { signal }) =>
      (await callsOf(sessionId).bash({ command, excludeFromContext, bashId }, signal)) as Result<"session/bash">,
    "session/abortBash": told("abort_bash"),
    "session/export": async ({ sessionId }, { signal }) => ({ html: await callsOf(sessionId).exportHtml(signal) }),
    "session/command": async ({ sessionId, command, confirmShared }, { signal }) => {
      checkCommand(command, confirmShared === true);
      const underWay = tracker.underWay(sessionId);
      const data = await callsOf(sessionId).send(command, signal);
      const result = data === undefined ? {} : { data };
      return command.type === "compact" ? { ...result, deliveries: tracker.effects(underWay) } : result;
    },
  };
}

type Given = Params<"session/get"> & { readonly idempotencyKey?: string };
