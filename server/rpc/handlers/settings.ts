import { piCommands } from "../../../protocol/pi-commands.ts";
import type { settingsMethods } from "../../../protocol/settings-methods.ts";
import { requireConfirmation } from "../../children/client-command.ts";
import type { Registry } from "../../session/registry.ts";
import type { Call, HandlersOf } from "../call.ts";

type SharedCommand = "set_steering_mode" | "set_follow_up_mode" | "set_auto_compaction" | "set_auto_retry";

interface Given {
  readonly sessionId: string;
  readonly confirmShared?: boolean;
}

export function settingsHandlers(registry: Registry): HandlersOf<typeof settingsMethods> {
  const set = (
    type: SharedCommand,
    { given, fields, value }: { given: Given; fields: object; value: string | boolean },
    { signal }: Call,
  ) => {
    const { setting } = piCommands[type];
    requireConfirmation(type, setting, given.confirmShared === true);
    return registry.get(given.sessionId).calls.setShared({ type, ...fields }, { setting, value }, signal);
  };
  const mode = (type: SharedCommand) => (given: Given & { readonly mode: string }, call: Call) =>
    set(type, { given, fields: { mode: given.mode }, value: given.mode }, call);
  const enabled = (type: SharedCommand) => (given: Given & { readonly enabled: boolean }, call: Call) =>
    set(type, { given, fields: { enabled: given.enabled }, value: given.enabled }, call);
  return {
    "session/setSteeringMode": mode("set_steering_mode"),
    "session/setFollowUpMode": mode("set_follow_up_mode"),
    "session/setAutoCompaction": enabled("set_auto_compaction"),
    "session/setAutoRetry": enabled("set_auto_retry"),
  };
}
