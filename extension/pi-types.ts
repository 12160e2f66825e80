import type { ContextWithSystemEvent, ExtensionContext } from "@earendil-works/pi-coding-agent";

/** A message of a request in pi's hooks: pi's own roles and those that pi converts to user messages. */
export type AgentMessage = ContextWithSystemEvent["messages"][number];

export type SystemMessage = Extract<AgentMessage, { role: "system" }>;

/** Read access to the active branch, from the leaf, so that no call copies the whole branch. */
export type SessionReader = Pick<ExtensionContext["sessionManager"], "getLeafEntry" | "getEntry">;

/** Read access to the entries of all branches. */
export type TreeReader = SessionReader & Pick<ExtensionContext["sessionManager"], "getEntries">;

export type SessionEntry = NonNullable<ReturnType<SessionReader["getEntry"]>>;

/** Returns the message of a thrown value. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
