import type { LogNotification } from "../client/index.ts";
import { wildcardOf } from "../protocol/glob.ts";
import { explainLogin } from "./credentials.ts";
import { UsageError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { gist } from "./notification-gist.ts";
import type { Output } from "./output.ts";
import { endWithReader } from "./reader-end.ts";
import { findSession } from "./session-argument.ts";
import { type LogPage, logPages, seqOf } from "./session-log.ts";
import { oneLine, shorten, truncate } from "./text.ts";
import { list } from "./values.ts";
import { withClient } from "./with-client.ts";

const defaultLines = 20;

/** Prints a session's log, and follows it. */
export async function tail(invocation: Invocation<"tail">): Promise<number> {
  const { options, output, env, signal } = invocation;
  const [word = ""] = invocation.arguments;
  const { filter, since } = options;
  const wanted = filter === undefined ? undefined : wantedOf(list(filter, { option: "filter", command: "tail" }));
  const after = since === undefined ? undefined : seqGiven(since);
  const reconnect = { maxDelayMs: 1_000, giveUpAfterMs: Number.POSITIVE_INFINITY };
  return withClient({ ...invocation, reconnect }, async (client) => {
    const session = await findSession(client, word, signal);
    const deltas = wanted !== undefined && [...wanted.events].some(isHighRate);
    const newest: LogNotification[] = [];
    let last: LogPage | undefined;
    let isExplained = false;
    const show = async (notification: LogNotification): Promise<void> => {
      print(output, notification);
      if (output.json || isExplained) return;
      isExplained = await explainLogin(gist(notification), { stateDir: options["state-dir"], output, env });
    };
    for await (const page of logPages(client, session.id, { after, deltas, signal })) {
      last = page;
      const fitting = page.notifications.filter((notification) => allows(wanted, notification));
      if (after !== undefined) for (const notification of fitting) await show(notification);
      else newest.splice(0, newest.length, ...[...newest, ...fitting].slice(-defaultLines));
    }
    for (const notification of newest) await show(notification);
    if (options["no-follow"] === true || last === undefined) return exitCodes.done;
    endWithReader();
    const place = { after: last.cursor, epoch: last.epoch };
    for await (const notification of session.notifications({ ...place, signal })) {
      if (allows(wanted, notification)) await show(notification);
    }
    output.aside("The session was closed.");
    return exitCodes.done;
  });
}

/** A number of the log, which can be a time in microseconds. */
function seqGiven(text: string): number {
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
  throw new UsageError(`--since takes a sequence number of the log, not "${text}".`, "tail");
}

function print(output: Output, notification: LogNotification): void {
  const { name, params } = notification;
  if (output.json) {
    output.document({ jsonrpc: "2.0", method: name, params });
    return;
  }
  const at = "at" in params ? new Date(params.at).toISOString().slice(11, 23) : " ".repeat(12);
  const what = name === "session/event" ? params.event.type : name;
  const head = `${String(seqOf(notification)).padStart(6)}  ${at}  ${oneLine(what).padEnd(20)}`;
  const line = truncate(`${head}  ${oneLine(shorten(gist(notification), 2_000))}`, output.columns ?? 400).trimEnd();
  output.print(name === "session/gap" ? output.paint("yellow", line) : line);
}

/** The wanted notifications of a session's log; undefined: all except the high-rate events. */
interface Wanted {
  /** Names of notifications, or prefixes of names. */
  readonly names: readonly string[];
  /** Types of pi's events. */
  readonly events: ReadonlySet<string>;
}

const highRate: ReadonlySet<string> = new Set(["message_update", "tool_execution_update", "bash_execution_update"]);

function isHighRate(type: string): boolean {
  return highRate.has(type);
}

/** Parses --filter: names with a slash are notifications, others are events. */
function wantedOf(items: readonly string[]): Wanted {
  const isName = (item: string): boolean => item.includes("/");
  return {
    names: items.filter(isName),
    events: new Set(items.filter((item) => !isName(item))),
  };
}

/** A gap is always shown; otherwise the missing part would go unnoticed. */
function allows(wanted: Wanted | undefined, { name, params }: LogNotification): boolean {
  const type = name === "session/event" ? params.event.type : undefined;
  if (name === "session/gap") return params.onlyDeltas !== true || wanted?.events.has("message_update") === true;
  if (wanted === undefined) return type === undefined || !isHighRate(type);
  if (type !== undefined && wanted.events.has(type)) return true;
  const named = wanted.names.some((item) => wildcardOf(item)(name));
  return named && (type === undefined || !isHighRate(type));
}
