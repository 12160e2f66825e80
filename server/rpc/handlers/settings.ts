import { methods } from "../../../protocol/methods.ts";
import type { settingsMethods } from "../../../protocol/settings-methods.ts";
import { requireConfirmation } from "../../children/client-command.ts";
import type { Registry } from "../../session/registry.ts";
import { atResponse } from "../answer-place.ts";
import type { Call, HandlersOf } from "../call.ts";

interface Given {
  readonly sessionId: string;
  readonly confirmShared?: boolean;
}

export function settingsHandlers(registry: Registry): HandlersOf<typeof settingsMethods> {
  const set = (
    method: keyof typeof settingsMethods,
    { given, fields, value }: { given: Given; fields: object; value: string | boolean },
    call: Call,
  ) => {
    const { command: type, setting } = methods[method].pi;
    requireConfirmation(type, setting, given.confirmShared === true);
    const session = registry.get(given.sessionId);
    const place = atResponse(session, call);
    return session.calls.setShared({ type, ...fields }, { setting, value }, call.signal, place);
  };
  const mode = (method: keyof typeof settingsMethods) => (given: Given & { readonly mode: string }, call: Call) =>
    set(method, { given, fields: { mode: given.mode }, value: given.mode }, call);
  const enabled =
    (method: keyof typeof settingsMethods) => (given: Given & { readonly enabled: boolean }, call: Call) =>
      set(method, { given, fields: { enabled: given.enabled }, value: given.enabled }, call);
  return {
    "session/setSteeringMode": mode("session/setSteeringMode"),
    "session/setFollowUpMode": mode("session/setFollowUpMode"),
    "session/setAutoCompaction": enabled("session/setAutoCompaction"),
    "session/setAutoRetry": enabled("session/setAutoRetry"),
  };
}
