import { type Logger, pino } from "pino";
import { limits } from "./config.ts";
import { RotatingFile } from "./lib/rotating-file.ts";

const files = new WeakMap<Logger, RotatingFile>();

export interface LogOptions {
  readonly level: string;
  /** Default: stderr. */
  readonly file?: string | undefined;
  /** Takes each line in the place of stderr, where no file is named: for people who look at it. */
  readonly lines?: { write(line: string): void } | undefined;
}

/** Where the calls are logged that have changed something, beside a log: nothing else that happens can push them out. */
function callLogFile(logFile: string): string {
  return `${logFile.replace(/\.log$/, "")}.calls.log`;
}

/** The log of these calls. Its file is made by the first of them. */
export function createCallLog(logFile: string): Logger {
  let file: RotatingFile | undefined;
  const write = (line: string): void => {
    file ??= openedOrNone(callLogFile(logFile));
    file?.write(line);
  };
  return pino({ level: "info", base: { pid: process.pid } }, { write });
}

/** Its disk may be full: a later line tries again. */
function openedOrNone(path: string): RotatingFile | undefined {
  try {
    return new RotatingFile(path, limits.maxCallLogBytes);
  } catch {
    return undefined;
  }
}

/**
 * JSON lines; those about a session, its pi or a connection have `sessionId`, `generation`, `connectionId`. Never holds a token, a key, or the text of a
 * message.
 */
export function createLog({ level, file, lines }: LogOptions): Logger {
  const rotating = file === undefined ? undefined : new RotatingFile(file, limits.maxLogBytes);
  const destination = rotating ?? lines ?? pino.destination({ dest: 2, sync: true });
  const log = pino(
    { level, base: { pid: process.pid }, redact: { paths: ["token", "*.token", "authorization", "*.authorization"] } },
    destination,
  );
  if (rotating !== undefined) files.set(log, rotating);
  return log;
}

/** How many lines of a log of {@link createLog}'s its file has not taken. */
export function lostLines(log: Logger): number {
  return files.get(log)?.lost ?? 0;
}
