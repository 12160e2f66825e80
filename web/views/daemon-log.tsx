import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { LogLevel, LogLine } from "../../protocol/log-methods.ts";
import { type FollowedLog, type LogFilter, type LogRow, ReadLog } from "../state/daemon-log.ts";
import { visibleText } from "../text/hidden-characters.ts";
import { Visible } from "../text/visible.tsx";
import { useWorkspace } from "./context.ts";
import { useFollowing } from "./following.ts";
import { Copy } from "./widgets/copy.tsx";
import { Icon } from "./widgets/icon.tsx";
import { Time } from "./widgets/time.tsx";

const filters: readonly (readonly [filter: LogFilter, word: string])[] = [
  ["all", "All"],
  ["trouble", "Warnings and errors"],
];

const tones: Readonly<Partial<Record<LogLevel, string>>> = { warn: "is-warn", error: "is-bad", fatal: "is-bad" };

/** The end of the daemon's own log. It is read while this part of the page is in view. */
export function DaemonLog(): JSX.Element {
  const log = useWorkspace().part(ReadLog);
  const section = useRef<HTMLElement>(null);
  const isInView = useSignal(false);
  useEffect(() => {
    if (section.current === null) return;
    const observer = new IntersectionObserver((entries) => {
      isInView.value = entries.at(-1)?.isIntersecting === true;
    });
    observer.observe(section.current);
    return () => observer.disconnect();
  }, []);
  const follows = isInView.value;
  useEffect(() => (follows ? log.follow() : undefined), [follows]);
  const rows = log.rows.value;
  return (
    <section ref={section} class="daemon-log" aria-labelledby="daemon-log">
      <header class="item-head">
        <h2 id="daemon-log">Log</h2>
        <fieldset class="filters quiet">
          <legend class="unseen">Which lines are shown</legend>
          {filters.map(([filter, word]) => (
            <label key={filter}>
              <input
                type="radio"
                name="log-filter"
                checked={log.filter.value === filter}
                onChange={() => log.setFilter(filter)}
              />
              {word}
            </label>
          ))}
        </fieldset>
        {rows !== undefined && rows.length > 0 && <Copy what="these lines" text={() => rows.map(copied).join("\n")} />}
      </header>
      {log.refused.value !== "" && <p class="is-bad">{log.refused.value}</p>}
      {rows === undefined && log.refused.value === "" && <p class="quiet">Reading…</p>}
      {rows?.length === 0 && <p class="quiet">{nothingWords[log.filter.value]}</p>}
      {rows !== undefined && rows.length > 0 && <Lines log={log} rows={rows} />}
    </section>
  );
}

const nothingWords: Readonly<Record<LogFilter, string>> = {
  all: "Nothing was logged since the daemon began.",
  trouble: "No warning and no error was logged lately.",
};

interface LinesProps {
  readonly log: FollowedLog;
  readonly rows: readonly LogRow[];
}

function Lines({ log, rows }: LinesProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLOListElement>(null);
  const { isFollowing, toEnd } = useFollowing(box, list);
  const problem = useSignal("");
  const older = async (): Promise<void> => {
    const outcome = await log.older();
    problem.value = outcome.kind === "refused" ? outcome.words : "";
  };
  return (
    <div class="log-lines-frame">
      <div ref={box} class="log-lines" role="log" aria-live="off" aria-label="Lines of the log" tabIndex={0}>
        {log.hasOlder.value && (
          <p>
            <button type="button" class="link" onClick={() => void older()}>
              Older lines
            </button>{" "}
            <span class="is-bad">{problem.value}</span>
          </p>
        )}
        <ol ref={list}>
          {rows.map((row) =>
            row.kind === "gap" ? <Gap key={`gap ${row.seq}`} row={row} /> : <Line key={row.line.seq} line={row.line} />,
          )}
        </ol>
      </div>
      {!isFollowing.value && (
        <button type="button" class="button small log-new" onClick={toEnd}>
          <Icon name="down" />
          To the end
        </button>
      )}
    </div>
  );
}

function Gap({ row }: { readonly row: Extract<LogRow, { kind: "gap" }> }): JSX.Element {
  return (
    <li class="log-gap quiet">
      <Icon name="gap" /> {gapWords(row)}
    </li>
  );
}

function gapWords({ lines }: Extract<LogRow, { kind: "gap" }>): string {
  if (lines === undefined) return "Another daemon wrote what was before.";
  return lines === 1 ? "1 line is no longer in memory." : `${lines} lines are no longer in memory.`;
}

function Line({ line }: { readonly line: LogLine }): JSX.Element {
  const { level, time, message, fields } = line;
  const isOpen = useSignal(false);
  const head = (
    <>
      <span class="log-time quiet">
        <Time at={time} />
      </span>
      <span class={`log-level ${tones[level] ?? "quiet"}`}>{level}</span>
      <span class="log-message">
        <Visible text={message} />
        {fields !== undefined && !isOpen.value && (
          <span class="quiet">
            {" "}
            <Visible text={gist(fields)} />
          </span>
        )}
      </span>
    </>
  );
  if (fields === undefined) return <li class="log-line">{head}</li>;
  return (
    <li>
      <details open={isOpen.value} onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
        <summary class="log-line">{head}</summary>
        {isOpen.value && (
          <pre class="output wrap" tabIndex={0}>
            <Visible text={whole(line)} />
          </pre>
        )}
      </details>
    </li>
  );
}

const gistChars = 200;

/** The fields in one line, ids last; of an error its message. */
function gist(fields: NonNullable<LogLine["fields"]>): string {
  const isId = ([name]: readonly [string, unknown]): boolean => name.endsWith("Id");
  const all = Object.entries(fields);
  const text = [...all.filter((field) => !isId(field)), ...all.filter(isId)]
    .map(([name, value]) => `${name}=${shown(value)}`)
    .join(" ");
  return text.length > gistChars ? `${text.slice(0, gistChars)}…` : text;
}

function shown(value: unknown): string {
  if (typeof value === "string") return value;
  const message = (value as { readonly message?: unknown } | null)?.message;
  return typeof message === "string" ? JSON.stringify(message) : JSON.stringify(value);
}

/** Everything that a line has; the stack of an error as lines. */
function whole({ fields = {}, isCut }: LogLine): string {
  const { err, ...others } = fields;
  const stack = (err as { readonly stack?: unknown } | null | undefined)?.stack;
  const rest = typeof stack === "string" ? { ...others, err: { ...(err as object), stack: undefined } } : fields;
  const text = JSON.stringify(rest, undefined, 2);
  return [
    text,
    ...(typeof stack === "string" ? [stack] : []),
    ...(isCut === true ? ["The line was shortened."] : []),
  ].join("\n");
}

function copied(row: LogRow): string {
  if (row.kind === "gap") return gapWords(row);
  const { time, level, message, fields } = row.line;
  const facts = fields === undefined ? "" : ` ${JSON.stringify(fields)}`;
  return visibleText(`${new Date(time).toISOString()} ${level.toUpperCase()} ${message}${facts}`);
}
