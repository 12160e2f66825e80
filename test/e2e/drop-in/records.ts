/** A line of the program's stdout. */
export interface PiRecord {
  readonly type?: string;
  readonly id?: unknown;
  readonly command?: string;
  readonly success?: boolean;
  readonly data?: Readonly<Record<string, unknown>>;
  readonly message?: { readonly role?: string; readonly content?: unknown; readonly stopReason?: string };
  readonly assistantMessageEvent?: {
    readonly type?: string;
    readonly contentIndex?: number;
    readonly delta?: string;
  };
  readonly [field: string]: unknown;
}

/** A line that is not a JSON object becomes a record of the type `not_a_record`. */
export function readRecord(line: string): PiRecord {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as PiRecord;
  } catch {
    // Returned below.
  }
  return { type: "not_a_record", line };
}

/** What a record is, in a few words. */
export function describeRecord(record: PiRecord): string {
  const { type, command, success, message, assistantMessageEvent: event } = record;
  const id = record.id === undefined ? "" : ` ${JSON.stringify(record.id)}`;
  if (type === "response") return `response ${command}${id} ${success}`;
  if (type === "message_update")
    return `message_update ${event?.type} ${JSON.stringify(event?.delta?.slice(0, 60) ?? "")}`;
  if (type === "message_start" || type === "message_end") {
    return `${type} ${message?.role} ${message?.stopReason ?? ""}`.trimEnd();
  }
  if (type === "extension_ui_request") return `${type} ${record["method"]} ${record["title"] ?? ""}`.trimEnd();
  if (type?.startsWith("tool_execution")) return `${type} ${record["toolName"]}`;
  return String(type);
}
