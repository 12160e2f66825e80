import { createHash } from "node:crypto";
import type { ContextCounts, PreparedContext } from "../../context/document/built.ts";
import type { Repair } from "../../context/document/document.ts";
import { exportContext } from "../../context/document/export.ts";
import type { ExportNote, NoteCounts } from "../../context/document/export-notes.ts";
import { prepareContext } from "../../context/document/prepare.ts";
import { sessionEntries } from "../../context/document/session-entries.ts";
import { WireError } from "../../protocol/errors.ts";
import type { BuiltMessage } from "../../protocol/link-context.ts";
import { helperLines, type WithHeld, withHeld } from "./helper-lines.ts";
import { refuseParts } from "./json-parts.ts";
import {
  bytesIn,
  type Exported,
  type ExportWork,
  type Outcome,
  type Prepared,
  type PreparedFacts,
  type PrepareWork,
  sumOfText,
  type Work,
  type WorkSource,
} from "./work.ts";

const nothing = new Uint8Array();

/**
 * Throws only errors of contexts if the document is invalid: `context_too_large` if it has more than `maxParts`
 * commas, colons and brackets.
 */
export function perform<W extends Work>(work: W, maxParts = Number.POSITIVE_INFINITY): Outcome<W> {
  for (const bytes of bytesIn(work)) refuseParts(bytes, maxParts);
  return (work.kind === "prepare" ? prepare(work) : exported(work)) as Outcome<W>;
}

function prepare({ source, options, target, budget, threshold, limits, as }: PrepareWork): Prepared {
  const { value, notes } = source.kind === "document" ? { value: parsed(source.bytes), notes: {} } : documentOf(source);
  const prepared = prepareContext(value, { ...options, budget }, target, limits);
  const { messages, repairs, tokens, dropped, hash } = prepared;
  const counts = withNotes(prepared.counts, notes);
  const isAbove = threshold !== undefined && tokens.structured > threshold;
  const warnings = [...new Set([...prepared.warnings, ...(isAbove ? ["above_threshold" as const] : [])])];
  const unanswered = unansweredText(messages);
  const facts: PreparedFacts = {
    counts,
    repairs: repairs.map(shortened),
    tokens,
    dropped,
    warnings,
    hash,
    messages: messages.length,
    ...(unanswered === undefined ? {} : { unanswered: sumOfText(unanswered) }),
  };
  return { facts, bytes: bytesOf(prepared, as, budget) };
}

function bytesOf(prepared: PreparedContext, as: PrepareWork["as"], budget: number | null): Uint8Array {
  switch (as.kind) {
    case "facts":
      return nothing;
    case "items":
      return Buffer.from(JSON.stringify(prepared.items));
    case "session":
      return linesOf(sessionEntries(prepared, as.header));
    case "helper":
      return helperLines(prepared, { budget, afterCompaction: as.afterCompaction });
  }
}

function exported({ from, options }: ExportWork): Exported {
  const { leafId = from.leafId, ...more } = options;
  const { entries, ...held } = entriesOf(from, leafId);
  const leaf = leafId === undefined ? {} : { leafId };
  const { document, diagnostics } = exportContext(entries, { ...more, ...leaf, ...held, source: from.source });
  const text = Buffer.from(JSON.stringify(document));
  return { diagnostics, bytes: text, sha256: createHash("sha256").update(text).digest("hex") };
}

function documentOf(from: WorkSource & { readonly kind: "session" }): {
  readonly value: unknown;
  readonly notes: NoteCounts;
} {
  const { leafId, source } = from;
  const { entries, ...held } = entriesOf(from, leafId);
  const options = {
    includeReasoning: true,
    includeInstructions: true,
    source,
    ...held,
    ...(leafId === undefined ? {} : { leafId }),
  };
  const { document, diagnostics } = exportContext(entries, options);
  return { value: document, notes: diagnostics.notes };
}

/** Including omissions of an earlier export. */
function withNotes(counts: ContextCounts, before: NoteCounts): ContextCounts {
  const { notes = {} } = counts;
  const sums = [...new Set([...Object.keys(before), ...Object.keys(notes)] as ExportNote[])].map((note) => [
    note,
    (before[note] ?? 0) + (notes[note] ?? 0),
  ]);
  return sums.length === 0 ? counts : { ...counts, notes: Object.fromEntries(sums) as NoteCounts };
}

/** V8's error texts quote their input. */
function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new WireError("invalid_params", "context.document: expected JSON in UTF-8; got something else.", {
      errors: [{ pointer: "", expected: "JSON in UTF-8", got: "something else" }],
    });
  }
}

/** A session's entries; for an ephemeral one, preceded by its past that is visible at the leaf. */
function entriesOf({ bytes, kept }: WorkSource & { readonly kind: "session" }, leafId: string | undefined): WithHeld {
  const own = entriesIn(bytes);
  return kept === undefined
    ? { entries: own }
    : withHeld(Buffer.from(kept.buffer, kept.byteOffset, kept.byteLength), own, leafId);
}

/** The objects of a file's complete lines: text after the last line break is still being written. */
function entriesIn(bytes: Uint8Array): readonly unknown[] {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const entries: unknown[] = [];
  for (let start = 0, end = buffer.indexOf(10); end !== -1; start = end + 1, end = buffer.indexOf(10, start)) {
    if (end === start) continue;
    try {
      entries.push(JSON.parse(buffer.toString("utf8", start, end)));
    } catch {
      // A line torn by a crash, followed by further ones: pi skips it too.
      entries.push(null);
    }
  }
  return entries;
}

function linesOf(entries: Iterable<object>): Uint8Array {
  const parts: Buffer[] = [];
  for (const entry of entries) parts.push(Buffer.from(`${JSON.stringify(entry)}\n`));
  return Buffer.concat(parts);
}

function unansweredText(messages: readonly BuiltMessage[]): string | undefined {
  const last = messages.findLast(({ role }) => role === "user" || role === "assistant" || role === "toolResult");
  if (last?.role !== "user" || last.content.some(({ type }) => type !== "text")) return undefined;
  return last.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** Ids are untrusted texts of any length. */
function shortened({ code, nodeId, detail }: Repair): Repair {
  return {
    code,
    ...(nodeId === undefined ? {} : { nodeId: nodeId.slice(0, maxShown) }),
    detail: detail.slice(0, maxShown),
  };
}

const maxShown = 256;
