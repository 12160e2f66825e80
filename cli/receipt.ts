import type { Delivery } from "../client/index.ts";
import type { HistoryStep } from "../protocol/delivery.ts";
import type { Output } from "./output.ts";

const styles: Readonly<Record<string, "green" | "yellow" | "red">> = {
  delivered: "green",
  answered: "green",
  parked: "yellow",
  dropped: "red",
  cancelled: "red",
  expired: "red",
  failed: "red",
  unknown: "red",
};

/** Prints the states of one delivery as they come: each once, with its time since the push and what it rests on. */
export class Receipt {
  readonly #output: Output;
  #shown = 0;

  constructor(output: Output) {
    this.#output = output;
  }

  show(delivery: Delivery): void {
    for (const step of delivery.history.slice(this.#shown)) this.#output.line(this.#line(step, delivery));
    this.#shown = Math.max(this.#shown, delivery.history.length);
  }

  #line(step: HistoryStep, delivery: Delivery): string {
    const style = styles[step.state];
    const name = step.state.padEnd(9);
    const after = `+${step.at - delivery.createdAt} ms`.padStart(9);
    return `  ${this.#output.style("dim", after)}  ${style === undefined ? name : this.#output.style(style, name)}  ${explain(step, delivery)}`.trimEnd();
  }
}

function explain({ state, requestId, evidence, reason }: HistoryStep, { attempts }: Delivery): string {
  if (reason !== undefined) return reason.message;
  const attempt = attempts.find((candidate) => candidate.requestId === requestId);
  const which = attempt === undefined ? "" : `request ${requestId}, attempt ${attempt.n}`;
  switch (state) {
    case "accepted":
      return "on disk";
    case "held":
      return "the helper inside pi has it";
    case "inserted":
      return "it stands in the transcript";
    case "prepared":
      return which;
    case "delivered":
      return `${which}; evidence: ${evidence}${attempt?.status === undefined ? "" : ` ${attempt.status}`}; payload ${attempt?.payload}`;
    case "answered":
      return `evidence: ${evidence}`;
    default:
      return "";
  }
}
