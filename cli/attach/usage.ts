import { usd } from "../../protocol/number-text.ts";
import { isRecord } from "../../protocol/objects.ts";
import { shortCount } from "../format.ts";

/** The usage of a run, according to pi's messages. */
export class Usage {
  /** Whether it began with its run. */
  readonly isWhole: boolean;
  #requests = 0;
  #input = 0;
  #cached = 0;
  #output = 0;
  #cost = 0;

  constructor(isWhole = false) {
    this.isWhole = isWhole;
  }

  /** Adds the `usage` of an assistant message (docs/message-types.md of pi). */
  add(usage: unknown): void {
    const { input, output, cacheRead, cacheWrite, cost } = isRecord(usage) ? usage : {};
    this.#requests += 1;
    this.#input += number(input) + number(cacheWrite) + number(cacheRead);
    this.#cached += number(cacheRead);
    this.#output += number(output);
    this.#cost += number(isRecord(cost) ? cost["total"] : 0);
  }

  /** The usage as short phrases; none if nothing was used. */
  describe(): readonly string[] {
    if (this.#requests === 0) return [];
    const cached = this.#cached > 0 ? ` (${shortCount(this.#cached)} cached)` : "";
    return [
      `${this.isWhole ? "" : "at least "}${this.#requests} ${this.#requests === 1 ? "answer" : "answers"}`,
      `${shortCount(this.#input)} tokens in${cached}, ${shortCount(this.#output)} out`,
      ...(this.#cost > 0 ? [usd(this.#cost)] : []),
    ];
  }
}

function number(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
