import type { By } from "../../client/browser.ts";
import type { NoteAbout, NoteItem, Who } from "./items.ts";
import { wholeText } from "./long-texts.ts";
import { numberOf, oneLine, type PiValue, textOf } from "./pi-values.ts";

const maxWords = 2_000;

type NoteOptions = Partial<Pick<NoteItem, "tone" | "detail" | "who" | "action" | "entryId">>;

export const unknownWho: Who = { kind: "unknown" };

export function note(about: NoteAbout, words: string, at: number | undefined, options: NoteOptions = {}): NoteItem {
  return { kind: "note", about, tone: "plain", words: oneLine(words, maxWords), who: unknownWho, at, ...options };
}

/** Who did something. `ownId`: this page's client id. */
export function whoOf(by: By | undefined, ownId: string): Who {
  if (by === undefined) return unknownWho;
  return by.clientId === ownId ? { kind: "you" } : { kind: "client", name: by.name, by };
}

/** For a sentence: "you", a client's name, or "another client". */
export function nameOf(who: Who): string {
  if (who.kind === "you") return "You";
  return who.kind === "client" ? (who.name ?? "Another client") : "Someone";
}

/** A note about an entry of the session's file that is no message. Undefined: it needs none. */
export function entryNote(entry: PiValue, at: number | undefined, summary: NoteItem["detail"]): NoteItem | undefined {
  const { type } = entry;
  const detail = summary === undefined ? {} : { detail: summary };
  switch (type) {
    case "model_change":
      return note("model", `The model is ${textOf(entry["provider"])}/${textOf(entry["modelId"])}.`, at);
    case "thinking_level_change":
      return note("level", `The thinking level is ${textOf(entry["thinkingLevel"])}.`, at);
    case "session_info":
      return note("name", namedWords(textOf(entry["name"])), at);
    case "compaction":
      return note("compaction", compactedWords(entry["tokensBefore"]), at, detail);
    case "branch_summary":
      return note("summary", "A summary of the branch that was left.", at, detail);
    default:
      return undefined;
  }
}

export function namedWords(name: string): string {
  return name === "" ? "The session has no name any more." : `The session is named “${oneLine(name, 200)}”.`;
}

export function compactedWords(tokensBefore: unknown): string {
  const tokens = numberOf(tokensBefore);
  const many = tokens === undefined ? "" : ` It had ${tokens.toLocaleString("en")} tokens.`;
  return `The context was compacted: a summary replaces its beginning.${many}`;
}

/** What an answer says of its own end. Undefined: it is complete. */
export function answerEndNote(message: PiValue, at: number | undefined): NoteItem | undefined {
  const error = textOf(message["errorMessage"]);
  switch (message["stopReason"]) {
    case "aborted":
      return note("abort", "The answer was stopped.", at);
    case "error":
      // pi 0.87.1 reports so the request of a run that was aborted.
      if (error === "This operation was aborted") return note("abort", "The answer was stopped.", at);
      return note("failure", `The request failed: ${error === "" ? "no reason was given" : error}`, at, {
        tone: "error",
      });
    case "length":
      return note("failure", "The answer ended at the model's limit of tokens.", at, { tone: "warning" });
    default:
      return undefined;
  }
}

/** What pi's stderr said last, as foreign text. */
export function stderrDetail(text: string): Pick<NoteItem, "detail"> {
  return text.trim() === "" ? {} : { detail: wholeText(text) };
}
