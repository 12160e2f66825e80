import { daemonError, isErrorObject } from "./daemon-error.ts";
import { ConnectionFailedError, UnauthorizedError } from "./local-errors.ts";

export interface RefusedAnswer {
  /** The address, for the message. */
  readonly where: string;
  readonly sentToken: boolean;
  readonly status: number | undefined;
  readonly body: string;
}

const maxQuotedChars = 300;

/** What an HTTP answer that is not the one hoped for means: no token, an error of the daemon's, or no daemon at all. */
export function refusal({ where, sentToken, status, body }: RefusedAnswer): Error {
  if (status === 401) return new UnauthorizedError(where, sentToken);
  const answer = parse(body);
  if (isErrorObject(answer?.error)) return daemonError(answer.error);
  const words = answer?.detail ?? answer?.title ?? answer?.message ?? body;
  const quoted = typeof words === "string" && words !== "" ? `: ${words.slice(0, maxQuotedChars)}` : "";
  return new ConnectionFailedError(`${where} answered with HTTP status ${status ?? "unknown"}${quoted}`, {
    ...(status !== undefined && { status }),
  });
}

function parse(body: string): {
  readonly error?: unknown;
  readonly detail?: unknown;
  readonly title?: unknown;
  readonly message?: unknown;
} | null {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}
