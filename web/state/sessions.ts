import type { ReadonlySignal, Signal } from "@preact/signals";
import type { Params, SessionInfo } from "../../client/browser.ts";
import type { StoredSessionInfo } from "../../protocol/stored-session.ts";
import type { Outcome } from "./outcome.ts";

/** The groups of the list, in its order. `finished`: a run ended while the session was not shown. */
export const groupNames = ["waits", "failed", "runs", "finished", "awake", "asleep"] as const;
export type GroupName = (typeof groupNames)[number];

export interface SessionRow {
  readonly sessionId: string;
  readonly group: GroupName;
  /** Its name, else its directory's. Foreign text. */
  readonly title: string;
  /** For `failed`: what went wrong, in a sentence. */
  readonly why?: string;
  readonly info: SessionInfo;
}

export interface SessionGroup {
  readonly name: GroupName;
  /** Newest first. */
  readonly rows: readonly SessionRow[];
}

export type ListState =
  | { readonly kind: "loading" }
  | { readonly kind: "loaded" }
  | { readonly kind: "refused"; readonly words: string };

export interface NewSession {
  /** An absolute path. */
  readonly directory: string;
  readonly profile?: string;
  /** `provider/id`, as pi's command line takes it. */
  readonly model?: string;
  readonly name?: string;
  readonly firstPrompt?: string;
}

/** pi's own sessions that the daemon does not have yet. */
export interface StoredSessions {
  readonly state: ReadonlySignal<ListState>;
  readonly sessions: ReadonlySignal<readonly StoredSessionInfo[]>;
  readonly hasMore: ReadonlySignal<boolean>;
  /** Loads the first page, or the next one. */
  more(): Promise<Outcome>;
}

/** The daemon's sessions. The list follows every change. */
export interface Sessions {
  readonly state: ReadonlySignal<ListState>;
  /** Groups with at least one row that fits the filter. */
  readonly groups: ReadonlySignal<readonly SessionGroup[]>;
  /** How many there are without the filter. */
  readonly count: ReadonlySignal<number>;
  /** Words that name, label, directory or model of a row must contain. */
  readonly filter: Signal<string>;
  /** Directories of known sessions, the newest first, to offer for a new one. */
  readonly directories: ReadonlySignal<readonly string[]>;
  find(sessionId: string): SessionRow | undefined;
  /** Resolves with the new session's id. If its first prompt is refused, the words say so and the session stays. */
  create(session: NewSession): Promise<Outcome<string>>;
  readonly stored: StoredSessions;
  /** Opens one of pi's stored sessions; starts its pi. Resolves with the session's id. */
  openStored(file: string): Promise<Outcome<string>>;
  /** Starts the session's pi if it sleeps: pi writes the name. */
  rename(sessionId: string, name: string): Promise<Outcome>;
  hibernate(sessionId: string): Promise<Outcome>;
  /** Ends the session's pi and forgets the session. Its file stays. */
  close(sessionId: string): Promise<Outcome>;
  /** Deletes the session and its file permanently. */
  remove(sessionId: string): Promise<Outcome>;
}

/** The params of `session/create` for what a person entered. Empty fields are absent. */
export function creationOf({ directory, profile, model, name }: NewSession): Params<"session/create"> {
  const given = { profile, model, name };
  const entries = Object.entries(given).filter(([, value]) => value !== undefined && value !== "");
  return { cwd: directory, ...Object.fromEntries(entries) };
}
