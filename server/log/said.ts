import { isRecord } from "../../protocol/objects.ts";
import { isOwn, type ReadableStore, storedFrame, storedSpans } from "./replay.ts";

type Params = Readonly<Record<string, unknown>>;

interface Entry {
  readonly method: string;
  readonly params: Params;
  readonly key: string;
  isClaimed: boolean;
}

/** The params of a notification as they follow `at`. */
export function restOf(params: Params): string {
  const rest = JSON.stringify(params).slice(1);
  return `${rest === "}" ? "" : ","}${rest}}`;
}

/**
 * What a notification reports, regardless of when: the same change is reported with other times when it is found again.
 * Undefined: only equal params are the same.
 */
const subjects: { readonly [method: string]: (params: Params) => unknown } = {
  "delivery/updated": ({ delivery }) => [
    ...pick(delivery, ["deliveryId", "state"]),
    ...pick(delivery, ["attempts", "history"]).map(lengthOf),
  ],
  "prompt/updated": ({ prompt }) => pick(prompt, ["promptId", "state", "outcome", "runId"]),
  "run/started": (params) => params["runId"],
  "run/ended": (params) => params["runId"],
  "dialog/opened": ({ dialog }) => pick(dialog, ["dialogId"]),
  "dialog/resolved": (params) => params["dialogId"],
};

/** The same for two notifications that report the same. */
function keyOf(method: string, params: Params): string {
  const subjectOf = subjects[method];
  return `${method} ${subjectOf === undefined ? restOf(params) : JSON.stringify(subjectOf(params))}`;
}

function pick(value: unknown, names: readonly string[]): readonly unknown[] {
  return isRecord(value) ? names.map((name) => value[name]) : [];
}

function lengthOf(value: unknown): number {
  return Array.isArray(value) ? value.length : 0;
}

/** Notifications of the daemon that a former daemon told. Each is claimed once. */
export class Said {
  readonly #entries: Entry[] = [];

  /** `after`, `upTo`: their numbers in the stored log. Throws if it cannot be read. */
  constructor(store: ReadableStore, sessionId: string, after: number, upTo: number) {
    for (const { frames } of storedSpans(store, sessionId, after, upTo)) {
      for (const bytes of frames) {
        const frame = storedFrame(bytes);
        if (frame === undefined || frame.seq <= after || frame.seq > upTo || isOwn(frame) === false) continue;
        const { method } = frame;
        const params = paramsOf(frame.rest.toString("utf8"));
        this.#entries.push({ method, params, key: keyOf(method, params), isClaimed: false });
      }
    }
  }

  /** Whether a former daemon told this, claimed or not. */
  has(method: string, params: Params): boolean {
    const key = keyOf(method, params);
    return this.#entries.some((entry) => entry.key === key);
  }

  /** Claims the first notification that reports this. Returns whether there was one. */
  claim(method: string, params: Params): boolean {
    const key = keyOf(method, params);
    const entry = this.#entries.find((one) => !one.isClaimed && one.key === key);
    if (entry !== undefined) entry.isClaimed = true;
    return entry !== undefined;
  }

  /** The params of the first unclaimed notification that satisfies `isIt`. */
  find(method: string, isIt: (params: Params) => boolean): Params | undefined {
    return this.#entries.find((entry) => !entry.isClaimed && entry.method === method && isIt(entry.params))?.params;
  }
}

/** The opposite of {@link restOf}. */
function paramsOf(rest: string): Params {
  return JSON.parse(`{${rest.slice(rest.startsWith(",") ? 1 : 0, -1)}`) as Params;
}
