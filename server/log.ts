import { type Logger, pino } from "pino";
import { limits } from "./configuration/limits.ts";
import { RotatingFile } from "./lib/rotating-file.ts";
import { RecentLog } from "./recent-log.ts";

/** Number of lines that a log file has not accepted. */
const losses = new WeakMap<Logger, () => number>();
/** The newest lines of a log. */
const recent = new WeakMap<Logger, RecentLog>();

export interface LogOptions {
  readonly level: string;
  /** Default: stderr. */
  readonly file?: string | undefined;
  /** Receives each line instead of stderr if no file is set, for display. */
  readonly lines?: { write(line: string): void } | undefined;
}

/** File for changing calls, separate from the log so that other events cannot displace them. */
function callLogFile(logFile: string): string {
  return `${logFile.replace(/\.log$/, "")}.calls.log`;
}

/** The log of changing calls. The first of them creates its file. */
export function createCallLog(logFile: string): Logger {
  let file: RotatingFile | undefined;
  let lostBefore = 0;
  const write = (line: string): void => {
    file ??= openedOrNone(callLogFile(logFile));
    if (file === undefined) lostBefore += 1;
    else file.write(line);
  };
  const log = pino({ level: "info", base: { pid: process.pid } }, { write });
  losses.set(log, () => lostBefore + (file?.lost ?? 0));
  return log;
}

/** Its disk may be full: a later line tries again. */
function openedOrNone(path: string): RotatingFile | undefined {
  try {
    return new RotatingFile(path, limits.maxCallLogBytes);
  } catch {
    return undefined;
  }
}

interface Destination {
  write(line: string): void;
  /** pino calls it before a fatal error ends the process. */
  flushSync?(): void;
}

/**
 * JSON lines; those about a session, its pi or a connection have `sessionId`, `generation`, `connectionId`. Never holds a token, a key, or the text of a
 * message.
 */
export function createLog({ level, file, lines }: LogOptions): Logger {
  const rotating = file === undefined ? undefined : new RotatingFile(file, limits.maxLogBytes);
  const destination: Destination = rotating ?? lines ?? pino.destination({ dest: 2, sync: true });
  const kept = new RecentLog(limits.recentLog);
  const keeping: Destination = {
    write: (line) => {
      kept.add(line);
      destination.write(line);
    },
    flushSync: () => destination.flushSync?.(),
  };
  const log = pino(
    { level, base: { pid: process.pid }, redact: { paths: ["token", "*.token", "authorization", "*.authorization"] } },
    keeping,
  );
  recent.set(log, kept);
  if (rotating !== undefined) losses.set(log, () => rotating.lost);
  return log;
}

/** Number of lines that these logs' files have not accepted. */
export function lostLines(...logs: readonly Logger[]): number {
  return logs.reduce((sum, log) => sum + (losses.get(log)?.() ?? 0), 0);
}

/** The newest lines of a log that {@link createLog} made; of another one none. */
export function recentLines(log: Logger): Pick<RecentLog, "read"> {
  return recent.get(log) ?? new RecentLog(limits.recentLog);
}
