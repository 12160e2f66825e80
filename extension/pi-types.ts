import type { ContextWithSystemEvent, ExtensionContext } from "@earendil-works/pi-coding-agent";

/** A message of a request as pi's hooks show it: pi's own roles and those that it turns into user messages. */
export type AgentMessage = ContextWithSystemEvent["messages"][number];

export type SystemMessage = Extract<AgentMessage, { role: "system" }>;

/** What is read of pi's session: entries are reached from the leaf, so that no call copies the whole branch. */
export type SessionReader = Pick<ExtensionContext["sessionManager"], "getLeafEntry" | "getEntry">;

/** What is read of pi's session where the entries of all branches count. */
export type TreeReader = SessionReader & Pick<ExtensionContext["sessionManager"], "getEntries">;

export type SessionEntry = NonNullable<ReturnType<SessionReader["getEntry"]>>;

/** Whether a value is an object whose fields can be read. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The words of whatever was thrown. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
