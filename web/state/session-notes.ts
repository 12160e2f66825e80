import type { SessionInfo } from "../../client/browser.ts";
import type { SessionNotification } from "./daemon.ts";
import type { NoteItem } from "./items.ts";
import { compactedWords, namedWords, nameOf, note, stderrDetail, whoOf } from "./notes.ts";
import type { Outcome } from "./outcome.ts";
import { isRecord, numberOf, oneLine, type PiValue, textOf } from "./pi-values.ts";

type Params<Name extends SessionNotification["name"]> = Extract<SessionNotification, { name: Name }>["params"];

/** A note about something that the daemon says of a session. Undefined: it needs none. */
export function noteOf({ name, params }: SessionNotification, ownId: string): NoteItem | undefined {
  const { at } = params;
  switch (name) {
    case "session/replaced":
      return note("session", "Another session took over this session's pi.", at);
    case "session/foreignWrite":
      return note("file", foreignWords(params), at, { tone: "warning" });
    case "session/controlChanged":
      return controlNote(params, ownId);
    case "dialog/resolved":
      return questionNote(params, ownId);
    case "dialog/unsupported":
      return note("question", "An extension asked for something that needs a terminal.", at, { tone: "warning" });
    case "context/failed":
      return note("session", `The session has no context: ${params.error.message}`, at, { tone: "warning" });
    case "cost/budgetReached":
      return note("cost", budgetWords(params), at, { tone: params.level === "spent" ? "error" : "warning" });
    case "pruning/changed":
      return params.blocks.length === 0 && params.pruned.length === 0
        ? undefined
        : note("block", blockWords(params), at);
    case "pruning/degraded":
    case "optimisation/degraded":
      return note("block", degradedWords(params), at, { tone: "warning" });
    default:
      return undefined;
  }
}

/** Notes about what has changed between two states of a session. */
export function changeNotes(
  { at, by, session, lostPrompts = [], restored }: Params<"session/updated">,
  before: SessionInfo | undefined,
  { ownId, resend }: { readonly ownId: string; readonly resend: (promptId: string) => Promise<Outcome> },
): readonly NoteItem[] {
  const who = whoOf(by, ownId);
  const notes: NoteItem[] = [];
  const { model, thinkingLevel, name, state, exit } = session;
  if (before !== undefined) {
    if (model !== undefined && (model.id !== before.model?.id || model.provider !== before.model.provider))
      notes.push(note("model", `The model is ${model.provider}/${model.id}.`, at, { who }));
    if (thinkingLevel !== undefined && thinkingLevel !== before.thinkingLevel)
      notes.push(note("level", `The thinking level is ${thinkingLevel}.`, at, { who }));
    if ((name ?? "") !== (before.name ?? "")) notes.push(note("name", namedWords(name ?? ""), at, { who }));
    if (state === "crashed" && before.state !== "crashed" && exit !== undefined) {
      const detail = stderrDetail(exit.stderrTail);
      notes.push(note("session", `pi has ended unexpectedly (${exitWords(exit)}).`, at, { tone: "error", ...detail }));
    }
  }
  if (restored === true)
    notes.push(note("session", "The session has a new pi. It has the context, but not what came later.", at));
  for (const { text, promptId } of lostPrompts) {
    const words = `A message was lost with pi, and is not sent again by itself: “${oneLine(text, 200)}”`;
    const action = { words: "Send again", run: () => resend(promptId) };
    notes.push(note("session", words, at, { tone: "error", action }));
  }
  return notes;
}

export function exitWords({ code, signal }: NonNullable<SessionInfo["exit"]>): string {
  if (signal !== null) return `signal ${signal}`;
  return code === null ? "no exit code" : `exit code ${code}`;
}

function foreignWords({ action, write, to }: Params<"session/foreignWrite">): string {
  const what = write.kind === "grown" ? "has written to" : write.kind === "removed" ? "has removed" : "has rewritten";
  const then = {
    reloaded: "pi has loaded it again.",
    refused: "The session waits until its file is loaded again.",
    forked: `Its own branch goes on in the session ${to ?? ""}.`,
    allowed: "The session goes on.",
    noticed: "Nothing was done yet.",
  }[action];
  return `Another program ${what} the session's file. ${then}`;
}

function controlNote({ at, by, control, change }: Params<"session/controlChanged">, ownId: string): NoteItem {
  const who = whoOf(control.controller ?? by, ownId);
  const name = nameOf(who);
  const policy = control.policy === "exclusive" ? " No other client can change the session." : "";
  const words = {
    acquired: `${name} controls the session.`,
    taken_over: `${name} took over the control of the session.`,
    handed_over: `${name} got the control of the session.`,
    released: "The control of the session was released.",
    expired: "The control of the session has expired.",
    disconnected: "The session's controller has disconnected.",
    policy:
      control.policy === "exclusive"
        ? "Only a controller can change the session now."
        : "All clients can change the session now.",
  }[change];
  return note("control", change === "policy" ? words : `${words}${policy}`, at, { who });
}

function questionNote({ at, title, how, by, client }: Params<"dialog/resolved">, ownId: string): NoteItem {
  const who = whoOf(client, ownId);
  return note("question", `The question “${oneLine(title, 200)}” ${questionEnd({ how, by }, nameOf(who))}`, at, {
    who,
  });
}

/** How a question ended, as the end of a sentence. */
export function questionEnd({ how, by }: Pick<Params<"dialog/resolved">, "how" | "by">, name: string): string {
  if (by === "client")
    return how === "answered" ? `was answered by ${named(name)}.` : `was dismissed by ${named(name)}.`;
  const why = {
    no_responder: "was dismissed: no client could answer it.",
    deadline: "was dismissed: nobody answered in time.",
    pi: "has ended: pi waits no longer.",
    abort: "has ended with its run.",
    clear_queue: "has ended with the queue.",
    hibernate: "has ended: the session was put to sleep.",
    close: "has ended: the session was closed.",
    child_exited: "has ended: pi has ended.",
    daemon_restart: "has ended: the daemon was started again.",
    too_many: "was dismissed: there were too many.",
    too_large: "was dismissed: it was too large.",
  }[by];
  return why;
}

function named(name: string): string {
  return name === "You" ? "you" : name === "Someone" ? "a client" : name;
}

function budgetWords({ level, spentUsd, budgetUsd, label, action }: Params<"cost/budgetReached">): string {
  const of = `$${spentUsd.toFixed(2)} of $${budgetUsd.toFixed(2)}${label === undefined ? "" : ` for “${label}”`}`;
  const then = action === "stop" ? " The next run is refused." : "";
  return level === "spent" ? `The budget is spent: ${of}.${then}` : `The budget is nearly spent: ${of}.`;
}

function blockWords({ cause, tokens, blocks, pruned }: Params<"pruning/changed">): string {
  const many = Math.abs(tokens).toLocaleString("en");
  if (cause === "decompress")
    return `${blocks.length === 1 ? "A summary was" : "Summaries were"} opened: ${many} tokens are back.`;
  if (blocks.length > 0) return `${blocks.length === 1 ? "A summary replaces" : "Summaries replace"} ${many} tokens.`;
  return `${pruned.length === 1 ? "An output has" : "Outputs have"} left the context: ${many} tokens.`;
}

function degradedWords(params: Params<"pruning/degraded"> | Params<"optimisation/degraded">): string {
  return "part" in params
    ? `The part “${params.part}” does not work fully: ${params.reason}`
    : `Pruning does not work fully: ${params.message}`;
}

/** A note about one of pi's events. Undefined: it needs none. */
export function eventNote(event: PiValue, at: number): NoteItem | undefined {
  switch (event["type"]) {
    case "compaction_start":
      return note("compaction", "The context is being compacted…", at);
    case "compaction_end":
      return compactionEnd(event, at);
    case "auto_retry_start":
    case "summarization_retry_scheduled":
      return note("retry", retryWords(event), at, { tone: "warning" });
    case "auto_retry_end":
      if (event["success"] !== false) return undefined;
      return note("retry", `pi tries no more: ${textOf(event["finalError"])}`, at, { tone: "error" });
    case "extension_error": {
      const where = `${textOf(event["extensionPath"])}, ${textOf(event["event"])}`;
      return note("extension", `An extension failed (${where}): ${textOf(event["error"])}`, at, { tone: "warning" });
    }
    case "extension_ui_request":
      return event["method"] === "notify" ? notifyNote(event, at) : undefined;
    case "rpcd_diagnostic":
      return note("session", `A record of pi could not be read: ${textOf(event["kind"])}.`, at, { tone: "warning" });
    default:
      return undefined;
  }
}

function compactionEnd({ result, aborted, errorMessage }: PiValue, at: number): NoteItem {
  if (isRecord(result)) {
    return note("compaction", compactedWords(result["tokensBefore"]), at, stderrDetail(textOf(result["summary"])));
  }
  if (aborted === true) return note("compaction", "The compaction was stopped.", at);
  return note("compaction", `The compaction failed: ${textOf(errorMessage) || "no reason was given"}`, at, {
    tone: "error",
  });
}

function retryWords({ attempt, maxAttempts, delayMs, errorMessage, type }: PiValue): string {
  const delay = numberOf(delayMs);
  const after = delay === undefined ? "" : ` after ${(delay / 1_000).toFixed(1)} s`;
  const count = `attempt ${numberOf(attempt) ?? "?"} of ${numberOf(maxAttempts) ?? "?"}`;
  const what = type === "auto_retry_start" ? "The request was refused" : "The summary failed";
  return `${what}: ${textOf(errorMessage) || "no reason was given"} pi tries again${after}, ${count}.`;
}

function notifyNote({ message, notifyType }: PiValue, at: number): NoteItem {
  const tone = notifyType === "error" || notifyType === "warning" ? notifyType : "plain";
  return note("extension", textOf(message), at, { tone });
}
