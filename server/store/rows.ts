import type { DatabaseSync } from "node:sqlite";
import { isRecord } from "../../protocol/objects.ts";
import { PromptState } from "../../protocol/prompt.ts";
import { isSound } from "./sums.ts";

/** A row as SQLite returns it; `row` is its number. */
export type Row = Readonly<Record<string, unknown>> & { readonly row: number };

/** What a table's rows must satisfy beyond SQLite's own checks. */
export interface Table {
  readonly name: "sessions" | "prompts" | "deliveries";
  readonly id: string;
  readonly columns: readonly string[];
  /** Columns that older versions lack. */
  readonly newColumns: readonly string[];
  /** Whether a row is unchanged since it was written, and consistent. */
  readonly isSound: (row: Row) => boolean;
}

const promptStates: ReadonlySet<string> = new Set(PromptState.enum);

export const tables: readonly Table[] = [
  {
    name: "sessions",
    id: "session_id",
    columns: ["session_id", "cwd", "file", "record", "created_at", "updated_at"],
    newColumns: ["record_sum"],
    isSound: ({ record, record_sum, session_id, file }) => {
      const session = isSound(record, record_sum) ? parsed(record) : undefined;
      return (
        session !== undefined &&
        session["sessionId"] === session_id &&
        session["file"] === file &&
        typeof session["cwd"] === "string" &&
        isRecord(session["options"]) &&
        Number.isSafeInteger(session["reservedSeq"]) &&
        Number.isSafeInteger(session["generation"])
      );
    },
  },
  {
    name: "prompts",
    id: "prompt_id",
    columns: ["prompt_id", "session_id", "text", "state", "created_at"],
    newColumns: ["text_sum", "record", "record_sum", "settled_at", "number"],
    isSound: ({ text, text_sum, state, record, record_sum }) =>
      isSound(text, text_sum) &&
      promptStates.has(String(state)) &&
      ((record ?? null) === null || (isSound(record, record_sum) && parsed(String(record)) !== undefined)),
  },
  {
    name: "deliveries",
    id: "delivery_id",
    columns: ["delivery_id", "session_id", "settled", "push", "record", "created_at"],
    newColumns: ["push_sum", "record_sum", "settled_at", "bytes", "number"],
    isSound: ({ push, push_sum, record, record_sum, delivery_id, session_id }) => {
      const pushed = isSound(push, push_sum) ? parsed(push) : undefined;
      const delivery = isSound(record, record_sum) ? parsed(record) : undefined;
      return (
        pushed?.["deliveryId"] === delivery_id &&
        delivery !== undefined &&
        delivery["deliveryId"] === delivery_id &&
        delivery["sessionId"] === session_id &&
        typeof delivery["state"] === "string" &&
        Array.isArray(delivery["history"]) &&
        Array.isArray(delivery["attempts"])
      );
    },
  },
];

/** Selects a table's rows by their number, in any schema version. */
export function rowsSql(database: DatabaseSync, { name, columns, newColumns }: Table, clauses: string): string {
  const present = new Set(
    database
      .prepare(`PRAGMA table_info(${name})`)
      .all()
      .map((column) => column["name"]),
  );
  const added = newColumns.filter((column) => present.has(column));
  return `SELECT rowid AS row, ${[...columns, ...added].join(", ")} FROM ${name} NOT INDEXED ${clauses}`;
}

export function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
