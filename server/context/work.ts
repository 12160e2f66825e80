import { createHash } from "node:crypto";
import type { PreparedContext } from "../../context/document/built.ts";
import type { ContextSource, ContextTarget } from "../../context/document/document.ts";
import type { ExportDiagnostics } from "../../context/document/export.ts";
import type { ContextOptions } from "../../context/document/options.ts";
import type { SessionHeaderFacts } from "../../context/document/session-entries.ts";
import type { ContextLimits } from "../../protocol/context-limits.ts";
import type { HelperContext } from "../../protocol/link-context.ts";

// Work on documents and its outcome, as bytes, so that any thread can do it: `perform.ts`, which is loaded at the first work.

/** The source of a context: a document, or the lines of a pi session file. */
export type WorkSource =
  | { readonly kind: "document"; readonly bytes: Uint8Array }
  | {
      readonly kind: "session";
      readonly bytes: Uint8Array;
      readonly leafId?: string;
      readonly source: ContextSource;
      /** For an ephemeral session, its stored `helperLines`. The bytes are its pi's current entries. */
      readonly kept?: Uint8Array;
    };

export interface PrepareWork {
  readonly kind: "prepare";
  readonly source: WorkSource;
  readonly options: ContextOptions;
  readonly target: ContextTarget;
  /** In tokens; `null`: none. */
  readonly budget: number | null;
  /** pi compacts above this number of tokens. */
  readonly threshold?: number;
  readonly limits: ContextLimits;
  /** The output in addition to the facts. */
  readonly as:
    | { readonly kind: "facts" }
    | { readonly kind: "items" }
    /** The lines of a session file. */
    | { readonly kind: "session"; readonly header: SessionHeaderFacts }
    /** The output of `helperLines`. */
    | { readonly kind: "helper"; readonly afterCompaction: HelperContext["afterCompaction"] };
}

export interface ExportWork {
  readonly kind: "export";
  readonly from: WorkSource & { readonly kind: "session" };
  readonly options: {
    readonly leafId?: string;
    readonly view?: "projected" | "full";
    readonly includeSystem?: boolean;
    readonly includeReasoning?: boolean;
    readonly includeImages?: boolean;
  };
}

export type Work = PrepareWork | ExportWork;

/** Facts about a prepared context, without text of the document. */
export interface PreparedFacts
  extends Pick<PreparedContext, "counts" | "repairs" | "tokens" | "dropped" | "warnings" | "hash"> {
  readonly messages: number;
  /** SHA-256 in hex of the last message's text, if it is the user's and unanswered. */
  readonly unanswered?: string;
}

export interface Prepared {
  readonly facts: PreparedFacts;
  /** The output requested by `as`. */
  readonly bytes: Uint8Array;
}

export interface Exported {
  readonly diagnostics: ExportDiagnostics;
  /** The document as JSON. */
  readonly bytes: Uint8Array;
  readonly sha256: string;
}

export type Outcome<W extends Work> = W extends PrepareWork ? Prepared : Exported;

/** The input of the work. */
export function bytesIn(work: Work): readonly Uint8Array[] {
  const source = work.kind === "prepare" ? work.source : work.from;
  return source.kind === "session" && source.kept !== undefined ? [source.bytes, source.kept] : [source.bytes];
}

/** The same comparison as for prompts. */
export function sumOfText(text: string): string {
  return createHash("sha256").update(text.trim()).digest("hex");
}
