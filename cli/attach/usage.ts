/** The usage of a run, according to pi's messages. */
export class Usage {
  #requests = 0;
  #input = 0;
  #cached = 0;
  #output = 0;
  #cost = 0;

  /** Adds the `usage` of an assistant message (docs/message-types.md of pi). */
  add(usage: unknown): void {
    const { input, output, cacheRead, cacheWrite, cost } = fields(usage);
    this.#requests += 1;
    this.#input += number(input) + number(cacheWrite) + number(cacheRead);
    this.#cached += number(cacheRead);
    this.#output += number(output);
    this.#cost += number(fields(cost)["total"]);
  }

  /** The usage as short phrases; none if nothing was used. */
  describe(): readonly string[] {
    if (this.#requests === 0) return [];
    const cached = this.#cached > 0 ? ` (${count(this.#cached)} cached)` : "";
    return [
      `${this.#requests} ${this.#requests === 1 ? "answer" : "answers"}`,
      `${count(this.#input)} tokens in${cached}, ${count(this.#output)} out`,
      ...(this.#cost > 0 ? [`$${this.#cost.toFixed(this.#cost < 0.1 ? 4 : 2)}`] : []),
    ];
  }
}

function fields(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function number(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

function count(tokens: number): string {
  if (tokens < 1_000) return String(Math.round(tokens));
  return tokens < 1_000_000 ? `${(tokens / 1_000).toFixed(1)}k` : `${(tokens / 1_000_000).toFixed(1)}M`;
}
