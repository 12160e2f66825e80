import { WireError } from "../../protocol/errors.ts";
import { quoted } from "./faults.ts";

/** One finding of `invalid_params`. */
export interface ShapeFinding {
  /** JSON pointer into the params. */
  readonly pointer: string;
  readonly expected: string;
  /** A scalar (long texts shortened), otherwise the kind of value. */
  readonly got: string | number | boolean | null;
}

export type Path = readonly (string | number)[];

const mostFindings = 20;
const longestText = 80;

/** Collects values of the wrong shape; `settle` throws `invalid_params` with the first 20 findings. */
export class ShapeFindings {
  readonly #findings: ShapeFinding[] = [];
  #message: string | undefined;
  readonly #details: Record<string, unknown> = {};

  /** Throws when the number of reported findings is reached. */
  add(path: Path, expected: string, got: unknown, details: Readonly<Record<string, unknown>> = {}): void {
    const shown = shownValue(got);
    if (this.#message === undefined) {
      this.#message = `${dotted(path)}: expected ${expected}; got ${typeof got === "string" ? quoted(got) : String(shown)}`;
      Object.assign(this.#details, details);
    }
    this.#findings.push({ pointer: pointerOf(path), expected, got: shown });
    if (this.#findings.length >= mostFindings) this.settle();
  }

  settle(): void {
    if (this.#message === undefined) return;
    throw new WireError("invalid_params", this.#message, { ...this.#details, errors: this.#findings });
  }
}

function dotted(path: Path): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else text += text === "" ? step : `.${step}`;
  }
  return text;
}

function pointerOf(path: Path): string {
  return path.map((step) => `/${String(step).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

function shownValue(value: unknown): string | number | boolean | null {
  if (value === null || typeof value === "boolean") return value;
  if (typeof value === "string") {
    return value.length > longestText ? `${value.slice(0, longestText).toWellFormed()}…` : value.toWellFormed();
  }
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (value === undefined) return "nothing";
  return Array.isArray(value) ? "an array" : typeof value === "object" ? "an object" : `a ${typeof value}`;
}
