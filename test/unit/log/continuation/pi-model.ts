import type { Random } from "../../../soak/random.ts";

/** A line of pi's output. */
export interface PiRecord {
  readonly start: number;
  readonly end: number;
  readonly bytes: Buffer;
  /**
   * `receipt`: the daemon stores a change and tells it afterwards. `run`: the daemon tells an id of its own at once.
   * `unparsable`: it is told as a diagnostic only. `response`: it is not told.
   */
  readonly kind: "event" | "delta" | "large" | "receipt" | "run" | "unparsable" | "response";
  /** The number of a receipt or run. */
  readonly n: number;
  /** The message or tool call that it belongs to. */
  readonly part: string | undefined;
}

const unparsable = Buffer.from("not json");
export const diagnostic = {
  type: "rpcd_diagnostic",
  kind: "unparsable",
  bytes: unparsable.length,
  excerpt: "not json",
};

/** A pi with a keeper: its output stays until it is acknowledged, whatever happens to daemons. */
export class PiModel {
  readonly records: PiRecord[] = [];
  /** The first byte that is kept, the end of pi's output, and the end of what any daemon was sent. */
  base = 0;
  head = 0;
  everSent = 0;
  isInexact = false;
  readonly #random: Random;
  readonly #tooLarge: number | undefined;
  #open: string[] = [];
  #parts = 0;
  #numbers = 0;

  /** `tooLarge`: some records have this size. */
  constructor(random: Random, tooLarge?: number) {
    this.#random = random;
    this.#tooLarge = tooLarge;
  }

  /** The first record that starts at or after an offset. */
  indexAt(offset: number): number {
    let low = 0;
    for (let high = this.records.length; low < high; ) {
      const middle = (low + high) >> 1;
      if ((this.records[middle] as PiRecord).start < offset) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** pi writes something. */
  write(): void {
    const random = this.#random;
    const message = this.#open.find((part) => part.startsWith("m"));
    const tools = this.#open.filter((part) => part.startsWith("t"));
    const choice = random.integer(1, 100);
    // Equal records in a row: only their order tells them apart.
    if (choice <= 40 && message !== undefined) {
      const text = random.pick(["a", "a", "bb"]);
      this.#add("delta", { type: "message_update", part: message, text }, message);
    } else if (choice <= 45 && message !== undefined) {
      this.#add("event", { type: "message_end", part: message }, message);
      this.#close(message);
    } else if (choice <= 50 && message === undefined) {
      const part = this.#begin("m");
      this.#add("event", { type: "message_start", part }, part);
    } else if (choice <= 60 && tools.length > 0) {
      const part = random.pick(tools);
      this.#add("delta", { type: "tool_execution_update", part, text: random.pick(["x", "yy"]) }, part);
    } else if (choice <= 65 && tools.length > 0) {
      const part = random.pick(tools);
      this.#add("event", { type: "tool_execution_end", part }, part);
      this.#close(part);
    } else if (choice <= 70 && tools.length === 0) {
      // The calls of one turn run at the same time.
      for (let i = random.integer(1, 3); i > 0; i -= 1) {
        const part = this.#begin("t");
        this.#add("event", { type: "tool_execution_start", part }, part);
      }
    } else if (choice <= 80) this.#add("receipt", { type: "receipt", n: this.#numbers });
    else if (choice <= 83) this.#add("run", { type: "agent_start", n: this.#numbers });
    else if (choice <= 86) this.#line("unparsable", unparsable);
    // An extension can write what looks like an event of the daemon.
    else if (choice <= 88) this.#add("event", diagnostic);
    else if (choice <= 90) this.#add("response", { type: "response", id: "1" });
    else if (choice <= 93) this.#add("large", { type: "turn_end", text: "z".repeat(random.integer(1, 200)) });
    else if (choice <= 95 && this.#tooLarge !== undefined)
      this.#add("event", { type: "x", text: "z".repeat(this.#tooLarge) });
    else this.#add("event", { type: random.pick(["x", "x", "queue_update"]) });
  }

  #begin(kind: string): string {
    this.#parts += 1;
    const part = `${kind}${this.#parts}`;
    this.#open.push(part);
    return part;
  }

  #close(part: string): void {
    this.#open = this.#open.filter((each) => each !== part);
  }

  #add(kind: PiRecord["kind"], value: object, part?: string): void {
    this.#line(kind, Buffer.from(JSON.stringify(value)), part);
  }

  #line(kind: PiRecord["kind"], bytes: Buffer, part?: string): void {
    const start = this.head;
    this.head += bytes.length + 1;
    this.records.push({ start, end: this.head, bytes, kind, n: this.#numbers, part });
    this.#numbers += 1;
  }
}
