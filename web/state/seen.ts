import { signal } from "@preact/signals";
import type { SessionInfo } from "../../client/browser.ts";
import type { TabStorage } from "./page.ts";

const key = "pi-rpcd.seen";
/** Sessions whose times are kept. */
const maxKept = 1_000;

/** Ends of runs in the daemon's time, because the browser may be on another machine. */
interface Seen {
  /** Runs that ended until then count as seen. */
  readonly before: number;
  /** By session, the newest run whose end was seen; the session that was seen last comes last. */
  readonly at: ReadonlyMap<string, number>;
}

type Ended = Pick<SessionInfo, "sessionId" | "summary">;

/** Which ends of runs a person has seen in this tab. It survives a reload of the page, and has no text of a session. */
export class SeenRuns {
  readonly #storage: TabStorage;
  readonly #seen = signal<Seen | undefined>(undefined);

  constructor(storage: TabStorage) {
    this.#storage = storage;
    this.#seen.value = seenIn(storage.getItem(key));
  }

  /** The sessions that the page found first: what has ended before that is not news. */
  begin(sessions: readonly Ended[]): void {
    if (this.#seen.peek() !== undefined) return;
    this.#set({
      before: sessions.reduce((newest, { summary }) => Math.max(newest, summary?.at ?? 0), 0),
      at: new Map(),
    });
  }

  isUnseen({ sessionId, summary }: Ended): boolean {
    const seen = this.#seen.value;
    if (seen === undefined || summary === undefined) return false;
    return summary.at > Math.max(seen.before, seen.at.get(sessionId) ?? 0);
  }

  see({ sessionId, summary }: Ended): void {
    const seen = this.#seen.peek();
    if (seen === undefined || summary === undefined || seen.at.get(sessionId) === summary.at) return;
    const at = new Map(seen.at);
    at.delete(sessionId);
    at.set(sessionId, summary.at);
    this.#set({ before: seen.before, at: new Map([...at].slice(-maxKept)) });
  }

  /** Deletes it from the tab. */
  forget(): void {
    this.#storage.removeItem(key);
  }

  #set(seen: Seen): void {
    this.#seen.value = seen;
    this.#storage.setItem(key, JSON.stringify({ before: seen.before, at: [...seen.at] }));
  }
}

function seenIn(text: string | null): Seen | undefined {
  try {
    const { before, at } = JSON.parse(text ?? "null") as { readonly before: unknown; readonly at: unknown };
    if (typeof before !== "number" || !Array.isArray(at)) return undefined;
    return { before, at: new Map(at.filter(isTime)) };
  } catch {
    return undefined;
  }
}

function isTime(value: unknown): value is [string, number] {
  return Array.isArray(value) && typeof value[0] === "string" && typeof value[1] === "number";
}
