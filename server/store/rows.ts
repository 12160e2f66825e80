import { isRecord } from "../../protocol/objects.ts";
import { PromptState } from "../../protocol/prompt.ts";
import { isSound } from "./sums.ts";

/** A row as SQLite returns it. */
export type Row = Readonly<Record<string, unknown>>;

const promptStates: ReadonlySet<string> = new Set(PromptState.enum);

/** What the rows of a table must satisfy beyond SQLite's own checks. */
const checks: Readonly<Record<string, (row: Row) => boolean>> = {
  sessions: ({ record, record_sum, session_id, file }) => {
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
  prompts: ({ text, text_sum, state, record, record_sum }) =>
    isSound(text, text_sum) &&
    promptStates.has(String(state)) &&
    ((record ?? null) === null || (isSound(record, record_sum) && parsed(String(record)) !== undefined)),
  deliveries: ({ push, push_sum, record, record_sum, delivery_id, session_id }) => {
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
};

/** The tables whose rows are checked at a start. */
export const checkedTables: readonly string[] = Object.keys(checks);

/** Whether a row, of any schema version, is unchanged since it was written, and consistent. */
export function isSoundRow(table: string, row: Row): boolean {
  return checks[table]?.(row) ?? true;
}

export function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
