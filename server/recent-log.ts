import {
  type DaemonLog,
  type DaemonLogQuery,
  type LogLevel,
  type LogLine,
  logLevels,
  PART_REPORT,
} from "../protocol/log-methods.ts";

export interface RecentLogLimits {
  readonly maxRecentLines: number;
  readonly maxRecentBytes: number;
  /** Of reports of parts inside pi, which have no room in the others. */
  readonly maxReportLines: number;
  readonly maxReportBytes: number;
  /** A longer line is shortened to less than this. */
  readonly maxLogLineBytes: number;
  readonly maxLogAnswerBytes: number;
}

interface Kept {
  readonly seq: number;
  readonly json: string;
  readonly bytes: number;
}

/** Lines up to a number and their bytes; the oldest are dropped. */
class Lines {
  readonly kept: Kept[] = [];
  readonly #maxLines: number;
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxLines: number, maxBytes: number) {
    this.#maxLines = maxLines;
    this.#maxBytes = maxBytes;
  }

  add(line: Kept): void {
    this.kept.push(line);
    this.#bytes += line.bytes;
    while (this.kept.length > this.#maxLines || this.#bytes > this.#maxBytes)
      this.#bytes -= this.kept.shift()?.bytes ?? 0;
  }
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
  readonly #lines: Lines;
  /** What extensions send by the helper's parts must not take the place of other lines. */
  readonly #reports: Lines;
  /** The places begin with the time in microseconds, so that those of another daemon are recognised. */
  readonly #first: number;
  #next: number;

  constructor(limits: RecentLogLimits, now = Date.now()) {
    this.#limits = limits;
    this.#lines = new Lines(limits.maxRecentLines, limits.maxRecentBytes);
    this.#reports = new Lines(limits.maxReportLines, limits.maxReportBytes);
    this.#first = now * 1_000;
    this.#next = this.#first;
  }

  /** Keeps a line as pino writes it. */
  add(line: string): void {
    const { maxLogLineBytes } = this.#limits;
    const isLong = line.length > maxLogLineBytes || Buffer.byteLength(line) > maxLogLineBytes;
    const json = isLong ? shortened(line, maxLogLineBytes) : line;
    const lines = line.trimEnd().endsWith(reportEnd) ? this.#reports : this.#lines;
    lines.add({ seq: this.#next, json, bytes: Buffer.byteLength(json) });
    this.#next += 1;
  }

  /** Answers `daemon/log`. */
  read({ after, before, level = "trace", limit = defaultLimit }: DaemonLogQuery): DaemonLog {
    const isOther = after !== undefined && (after < this.#first - 1 || after >= this.#next);
    const from = after === undefined || isOther ? this.#first : after + 1;
    const to = Math.min(Math.max(before ?? this.#next, from), this.#next);
    const kept = this.#between(from, to);
    if (after === undefined) kept.reverse();
    const lines: LogLine[] = [];
    let [bytes, looked] = [0, 0];
    for (const { seq, json, bytes: size } of kept) {
      if (lines.length >= limit) break;
      if (hasLevel(json, level)) {
        bytes += size;
        if (lines.length > 0 && bytes > this.#limits.maxLogAnswerBytes) break;
        lines.push(lineOf(json, seq));
      }
      looked += 1;
    }
    const hasMore = looked < kept.length;
    const cursor = after === undefined ? this.#next - 1 : hasMore ? (kept[looked]?.seq ?? to) - 1 : to - 1;
    const dropped = after === undefined || isOther ? 0 : cursor - after - looked;
    return {
      lines: after === undefined ? lines.reverse() : lines,
      cursor,
      hasMore,
      ...(isOther && { missed: { reason: "other_daemon" as const } }),
      ...(dropped > 0 && { missed: { reason: "dropped" as const, lines: dropped } }),
    };
  }

  /** The kept lines from a place to one before another, in their order. */
  #between(from: number, to: number): Kept[] {
    return [...this.#lines.kept, ...this.#reports.kept]
      .filter(({ seq }) => seq >= from && seq < to)
      .sort((one, other) => one.seq - other.seq);
  }
}

/** pino writes the message last. */
const reportEnd = `,"msg":${JSON.stringify(PART_REPORT)}}`;

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
