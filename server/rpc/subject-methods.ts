import type { MethodName } from "../../protocol/methods.ts";
import type { Registry } from "../session/registry.ts";
import type { SubjectMethod } from "./idempotency.ts";

/** The methods with an idempotency key whose effect has an id of its own. */
export function subjectMethods(registry: Registry): Readonly<Partial<Record<MethodName, SubjectMethod>>> {
  // A prompt's text and its key share a transaction.
  const prompt: SubjectMethod = { isKnown: (id) => registry.findPrompt(id) !== undefined, waitsForKey: true };
  return {
    "session/create": { isKnown: (id) => registry.find(id) !== undefined },
    "session/prompt": prompt,
    "session/steer": prompt,
    "session/followUp": prompt,
  };
}
