import { WireError } from "../../protocol/errors.ts";

const advice: Readonly<Record<string, string>> = {
  EAGAIN: "this user may have no more processes",
  EMFILE: "the daemon may open no more files (ulimit -n)",
  ENFILE: "the system has no more file descriptors",
  ENOMEM: "the system has no memory left",
};

/** Whether something could not be written since the disk, or the user's part of it, is full. */
export function diskFull(error: unknown): WireError | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code, path } = cause as NodeJS.ErrnoException;
    if (code !== "ENOSPC" && code !== "EDQUOT") continue;
    const where = path === undefined ? "" : ` ${path} could not be written.`;
    return new WireError(
      "store_failed",
      `The disk is full (${code}).${where} Free some space, then try again.`,
      {},
      { cause: error },
    );
  }
  return undefined;
}

/** Whether a start failed because the system has run out of something, and not because of what was asked for. */
export function exhaustion(error: unknown): WireError | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const why = typeof code === "string" && Object.hasOwn(advice, code) ? advice[code] : undefined;
    if (why === undefined) continue;
    const message = `pi cannot be started now: ${why} (${code}). Close sessions, or try again later.`;
    return new WireError("overloaded", message, { code, retryAfterMs: 5_000 }, { cause: error });
  }
  return undefined;
}
