import { type Logger, pino } from "pino";
import { limits } from "./config.ts";
import { RotatingFile } from "./lib/rotating-file.ts";

export interface LogOptions {
  readonly level: string;
  /** Default: stderr. */
  readonly file?: string | undefined;
}

/** JSON lines. Never holds a token, a key, or the text of a message. */
export function createLog({ level, file }: LogOptions): Logger {
  const destination =
    file === undefined ? pino.destination({ dest: 2, sync: true }) : new RotatingFile(file, limits.maxLogBytes);
  return pino(
    { level, base: { pid: process.pid }, redact: { paths: ["token", "*.token", "authorization", "*.authorization"] } },
    destination,
  );
}
