import { isRecord } from "../../protocol/objects.ts";
import { modelOf } from "./spending.ts";
import { unnamedModel } from "./tally.ts";
import { readUsage, type Usage } from "./usage.ts";

/** A request to the provider, as the session's file has it. */
export interface MadeRequest {
  /** The entry that it has left: the answer, the summary, or pi's record of the request. */
  readonly entryId: string;
  readonly kind: "answer" | "compaction" | "branch_summary" | "cache_warm";
  /** When it began and when its entry was written, in Unix milliseconds. pi stores a beginning for answers alone. */
  readonly startedAt?: number;
  readonly endedAt: number;
  /** `provider/id`. */
  readonly model?: string;
  readonly stopReason?: string;
  readonly error?: string;
  readonly usage?: Usage;
}

/** Number of the newest requests that are kept. */
export const maxRequests = 1_000;
const maxIdChars = 128;
const maxErrorChars = 300;
const maxReasonChars = 32;

/** The newest requests in a session's file, also those that failed and those of abandoned branches, oldest first. */
export class RequestList {
  #requests: MadeRequest[] = [];

  /** Takes the file's next entry, which is untrusted. */
  add(entry: unknown): void {
    if (!isRecord(entry)) return;
    const request = requestOf(entry);
    if (request === undefined) return;
    this.#requests.push(request);
    // In batches, because each removal moves all others.
    if (this.#requests.length >= 2 * maxRequests) this.#requests = this.newest;
  }

  get newest(): MadeRequest[] {
    return this.#requests.slice(-maxRequests);
  }
}

function requestOf(entry: Readonly<Record<string, unknown>>): MadeRequest | undefined {
  const { id, type, timestamp, message } = entry;
  const endedAt = typeof timestamp === "string" ? Date.parse(timestamp) : Number.NaN;
  if (typeof id !== "string" || id.length > maxIdChars || Number.isNaN(endedAt)) return undefined;
  const place = { entryId: id, endedAt };
  switch (type) {
    case "message":
      return isRecord(message) && message["role"] === "assistant" ? answered(message, place) : undefined;
    case "compaction":
    case "branch_summary":
      // A summary without usage was not written by a model.
      return withUsage({ ...place, kind: type }, entry["usage"], true);
    case "usage":
      return withUsage(
        { ...place, kind: "cache_warm", ...named(entry["provider"], entry["model"]) },
        entry["usage"],
        true,
      );
    default:
      return undefined;
  }
}

function answered(
  message: Readonly<Record<string, unknown>>,
  place: Pick<MadeRequest, "entryId" | "endedAt">,
): MadeRequest | undefined {
  const { provider, model, responseModel, stopReason, errorMessage, timestamp, usage } = message;
  const startedAt = typeof timestamp === "number" && timestamp >= 0 ? Math.round(timestamp) : undefined;
  const request: MadeRequest = {
    ...place,
    kind: "answer",
    ...(startedAt === undefined || startedAt > place.endedAt ? {} : { startedAt }),
    ...named(provider, typeof responseModel === "string" ? responseModel : model),
    ...(typeof stopReason === "string" ? { stopReason: shortened(stopReason, maxReasonChars) } : {}),
    ...(typeof errorMessage === "string" ? { error: shortened(errorMessage, maxErrorChars) } : {}),
  };
  return withUsage(request, usage, false);
}

function withUsage(request: MadeRequest, given: unknown, isNeeded: boolean): MadeRequest | undefined {
  const usage = readUsage(given);
  if (usage !== undefined) return { ...request, usage };
  return isNeeded ? undefined : request;
}

function named(provider: unknown, model: unknown): { readonly model?: string } {
  const name = modelOf(provider, model);
  return name === unnamedModel ? {} : { model: name };
}

function shortened(text: string, length: number): string {
  return text.slice(0, length).toWellFormed();
}
