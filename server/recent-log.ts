import {
  type DaemonLog,
  type DaemonLogQuery,
  type LogLevel,
  type LogLine,
  logLevels,
} from "../protocol/log-methods.ts";

export interface RecentLogLimits {
  readonly maxRecentLines: number;
  readonly maxRecentBytes: number;
  /** A longer line is shortened to less than this. */
  readonly maxLogLineBytes: number;
  readonly maxLogAnswerBytes: number;
}

interface Kept {
  readonly json: string;
  readonly bytes: number;
}

const defaultLimit = 100;

/** pino's numbers for its levels are ten apart, beginning with this one. */
const lowestLevel = 10;

/**
 * The newest lines of the daemon's log, in memory: a log can go to a file, to stderr or to systemd, and only this is there in
 * each case.
 */
export class RecentLog {
  readonly #limits: RecentLogLimits;
  readonly #lines: Kept[] = [];
  #bytes = 0;
  /** The places begin with the time in microseconds, so that those of another daemon are recognised. */
  readonly #first: number;
  #next: number;

  constructor(limits: RecentLogLimits, now = Date.now()) {
    this.#limits = limits;
    this.#first = now * 1_000;
    this.#next = this.#first;
  }

  /** Keeps a line as pino writes it. */
  add(line: string): void {
    const { maxRecentLines, maxRecentBytes, maxLogLineBytes } = this.#limits;
    const isLong = line.length > maxLogLineBytes || Buffer.byteLength(line) > maxLogLineBytes;
    const json = isLong ? shortened(line, maxLogLineBytes) : line;
    const bytes = isLong ? Buffer.byteLength(json) : Buffer.byteLength(line);
    this.#lines.push({ json, bytes });
    this.#bytes += bytes;
    this.#next += 1;
    while (this.#lines.length > maxRecentLines || this.#bytes > maxRecentBytes)
      this.#bytes -= this.#lines.shift()?.bytes ?? 0;
  }

  /** Answers `daemon/log`. */
  read({ after, before, level = "trace", limit = defaultLimit }: DaemonLogQuery): DaemonLog {
    const oldest = this.#next - this.#lines.length;
    const isOther = after !== undefined && (after < this.#first - 1 || after >= this.#next);
    const from = after === undefined || isOther ? oldest : Math.max(after + 1, oldest);
    const to = Math.min(Math.max(before ?? this.#next, from), this.#next);
    const lines: LogLine[] = [];
    let [bytes, seq] = [0, after === undefined ? to - 1 : from];
    const step = after === undefined ? -1 : 1;
    for (; seq >= from && seq < to && lines.length < limit; seq += step) {
      const kept = this.#lines[seq - oldest];
      if (kept === undefined || !hasLevel(kept.json, level)) continue;
      bytes += kept.bytes;
      if (lines.length > 0 && bytes > this.#limits.maxLogAnswerBytes) break;
      lines.push(lineOf(kept.json, seq));
    }
    const dropped = after === undefined || isOther ? 0 : from - 1 - after;
    return {
      lines: step === 1 ? lines : lines.reverse(),
      cursor: step === 1 ? seq - 1 : this.#next - 1,
      hasMore: step === 1 ? seq < to : seq >= from,
      ...(isOther && { missed: { reason: "other_daemon" as const } }),
      ...(dropped > 0 && { missed: { reason: "dropped" as const, lines: dropped } }),
    };
  }
}

/** Looks only at the beginning of a line, where pino writes its level. */
function hasLevel(json: string, lowest: LogLevel): boolean {
  const number = Number(/^\{"level":(\d+)/.exec(json)?.[1]);
  return !(number < lowestLevel * (logLevels.indexOf(lowest) + 1));
}

function lineOf(json: string, seq: number): LogLine {
  const { level, time, msg, pid: _pid, isCut, ...fields } = JSON.parse(json) as Readonly<Record<string, unknown>>;
  return {
    seq,
    time: Number(time),
    level: logLevels[Number(level) / lowestLevel - 1] ?? "info",
    message: String(msg ?? ""),
    ...(Object.keys(fields).length > 0 && { fields }),
    ...(isCut === true && { isCut }),
  };
}

/** How much of each text in a line that is too long is kept, in characters. */
const keptChars = 500;

/** A line of fewer bytes: its texts are cut, and then what comes last is left out. */
function shortened(line: string, maxBytes: number): string {
  const { level, time, msg, ...fields } = JSON.parse(line) as Readonly<Record<string, unknown>>;
  const head = JSON.stringify({ level, time, isCut: true, msg: cut(String(msg ?? "")) });
  const kept: string[] = [];
  let bytes = Buffer.byteLength(head);
  for (const [name, value] of Object.entries(fields)) {
    const field = `,${JSON.stringify(name)}:${JSON.stringify(value, (_key, part: unknown) => cutPart(part))}`;
    const added = Buffer.byteLength(field);
    if (bytes + added > maxBytes) continue;
    kept.push(field);
    bytes += added;
  }
  return `${head.slice(0, -1)}${kept.join("")}}`;
}

function cutPart(part: unknown): unknown {
  return typeof part === "string" ? cut(part) : part;
}

function cut(text: string): string {
  return text.length > keptChars ? `${text.slice(0, keptChars).toWellFormed()}…` : text;
}
