import { WireError } from "../../protocol/errors.ts";

const advice: Readonly<Record<string, string>> = {
  EAGAIN: "this user's limit of processes is reached",
  EMFILE: "the daemon's limit of open files is reached (ulimit -n)",
  ENFILE: "the system has no more file descriptors",
  ENOMEM: "the system is out of memory",
};

/** Whether a write failed because the disk, or the user's quota, is full. */
export function diskFull(error: unknown): WireError | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code, path } = cause as NodeJS.ErrnoException;
    if (code !== "ENOSPC" && code !== "EDQUOT") continue;
    const where = path === undefined ? "" : ` Cannot write ${path}.`;
    return new WireError(
      "store_failed",
      `The disk is full (${code}).${where} Free some space, then try again.`,
      {},
      { cause: error },
    );
  }
  return undefined;
}

/** Whether a start failed because the system lacks a resource, not because of the request. */
export function exhaustion(error: unknown): WireError | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const why = typeof code === "string" && Object.hasOwn(advice, code) ? advice[code] : undefined;
    if (why === undefined) continue;
    const message = `Cannot start pi now: ${why} (${code}). Close sessions, or try again later.`;
    return new WireError("overloaded", message, { code, retryAfterMs: 5_000 }, { cause: error });
  }
  return undefined;
}
