import type { PiEvent } from "../pi/records.ts";

/** Where a client that attaches begins. */
export interface CatchUp {
  /** The number before the first message or tool that is open. */
  readonly after: number;
  /** The earlier events that still hold, in pi's order. */
  readonly present: PiEvent[];
}

interface Noted {
  readonly event: PiEvent;
  readonly seq: number;
}

/** Statuses, widgets and the title: the newest are kept. */
const limits = { maxEvents: 128, maxBytes: 256 * 1024 };
/** A record's first fields are in so many bytes. */
const headBytes = 1_024;
const headFields = /^\{"type":"(\w+)"(?:,"toolCallId":("(?:[^"\\]|\\.)*"))?/;

/** More are not remembered as open. */
const maxTools = 1_000;

/** The field that says what an event of the user interface shows; without it, it shows nothing any more. */
const shown: Readonly<Record<string, string>> = {
  setStatus: "statusText",
  setWidget: "widgetLines",
  setTitle: "title",
};

/** What {@link PresentEvents.note} needs of a record that was not parsed. */
export function headOf(record: Buffer): PiEvent {
  const [, type = "", literal] = headFields.exec(record.toString("utf8", 0, headBytes)) ?? [];
  const toolCallId = literal === undefined ? undefined : textIn(literal);
  return { type, ...(toolCallId === undefined ? {} : { toolCallId }) };
}

/** The escapes of such a record were not checked. */
function textIn(literal: string): unknown {
  try {
    return JSON.parse(literal) as unknown;
  } catch {
    return undefined;
  }
}

/** What pi's events say that still holds: what the user interface shows, the run, and what is open in it. */
export class PresentEvents {
  /** By what they set, in pi's order. */
  readonly #ui = new Map<string, Noted & { readonly bytes: number }>();
  #uiBytes = 0;
  #run: Noted | undefined;
  #message: number | undefined;
  /** By the id of their calls. */
  readonly #tools = new Map<unknown, number>();

  note(event: PiEvent, seq: number): void {
    switch (event.type) {
      case "agent_start":
        this.#settled();
        this.#run = { event, seq };
        break;
      case "agent_settled":
        this.#settled();
        break;
      case "message_start":
        this.#message = seq;
        break;
      case "message_end":
        this.#message = undefined;
        break;
      case "tool_execution_start":
        if (event["toolCallId"] !== undefined && this.#tools.size < maxTools) this.#tools.set(event["toolCallId"], seq);
        break;
      case "tool_execution_end":
        this.#tools.delete(event["toolCallId"]);
        break;
      case "extension_ui_request":
        this.#show(event, seq);
        break;
      default:
    }
  }

  /** The run of a child that goes on without its former daemon. */
  resume(agent: PiEvent | undefined): void {
    if (agent?.type === "agent_start") this.#run = { event: agent, seq: 0 };
  }

  /** pi has ended, or has another session. */
  clear(): void {
    this.#settled();
    this.#ui.clear();
    this.#uiBytes = 0;
  }

  /** `cursor`: the newest number. */
  catchUp(cursor: number): CatchUp {
    const open = [...(this.#message === undefined ? [] : [this.#message]), ...this.#tools.values()];
    const after = Math.min(cursor, ...open.map((seq) => seq - 1));
    const noted = [...this.#ui.values(), ...(this.#run === undefined ? [] : [this.#run])];
    return { after, present: noted.filter(({ seq }) => seq <= after).map(({ event }) => event) };
  }

  #settled(): void {
    this.#run = undefined;
    this.#message = undefined;
    this.#tools.clear();
  }

  #show(event: PiEvent, seq: number): void {
    const { method } = event;
    const field = typeof method === "string" && Object.hasOwn(shown, method) ? shown[method] : undefined;
    if (field === undefined) return;
    const key = JSON.stringify([method, event["statusKey"] ?? event["widgetKey"]]);
    this.#forget(key);
    if (event[field] === undefined) return;
    const bytes = Buffer.byteLength(JSON.stringify(event));
    if (bytes > limits.maxBytes) return;
    this.#ui.set(key, { event, seq, bytes });
    this.#uiBytes += bytes;
    for (const oldest of this.#ui.keys()) {
      if (this.#ui.size <= limits.maxEvents && this.#uiBytes <= limits.maxBytes) return;
      this.#forget(oldest);
    }
  }

  #forget(key: string): void {
    this.#uiBytes -= this.#ui.get(key)?.bytes ?? 0;
    this.#ui.delete(key);
  }
}
