import type { MethodName } from "../../protocol/methods.ts";
import type { Registry } from "../session/registry.ts";
import type { SubjectMethod } from "./idempotency.ts";

/** The methods with an idempotency key whose effect has an id of its own, or is the same when it comes about again. */
export function subjectMethods(registry: Registry): Readonly<Partial<Record<MethodName, SubjectMethod>>> {
  // A prompt's text and its key share a transaction.
  const prompt: SubjectMethod = { isKnown: (id) => registry.findPrompt(id) !== undefined, waitsForKey: true };
  const setting: SubjectMethod = { isKnown: () => false };
  return {
    "session/setModel": setting,
    "session/setThinkingLevel": setting,
    "session/rename": setting,
    "session/setSteeringMode": setting,
    "session/setFollowUpMode": setting,
    "session/setAutoCompaction": setting,
    "session/setAutoRetry": setting,
    "session/create": { isKnown: (id) => registry.find(id) !== undefined },
    "session/prompt": prompt,
    "session/steer": prompt,
    "session/followUp": prompt,
  };
}
