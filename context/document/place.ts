import type { ContextLimits } from "../../protocol/context-limits.ts";
import { contextTooLarge, type ExceededLimit, subject } from "./faults.ts";
import type { Path, ShapeFindings } from "./shape.ts";

/** State shared by all positions of a document. */
export interface Reading {
  readonly findings: ShapeFindings;
  readonly limits: ContextLimits;
}

/** Position of a value in a document, for findings and errors. Builds its path and name only on demand. */
export class Place {
  readonly limits: ContextLimits;
  readonly nodeId: string | undefined;
  readonly #reading: Reading;
  readonly #parent: Place | undefined;
  readonly #steps: Path;
  /** Index of the node or item in its list. */
  readonly #index: number;

  constructor(reading: Reading, steps: Path, index: number, nodeId: string | undefined, parent?: Place) {
    this.limits = reading.limits;
    this.nodeId = nodeId;
    this.#reading = reading;
    this.#steps = steps;
    this.#index = index;
    this.#parent = parent;
  }

  at(...steps: Path): Place {
    return new Place(this.#reading, steps, this.#index, this.nodeId, this);
  }

  get path(): Path {
    return this.#parent === undefined ? this.#steps : [...this.#parent.path, ...this.#steps];
  }

  /** Name as the start of a sentence: `Node "n3"`. */
  get name(): string {
    return subject({ nodeId: this.nodeId }, this.#index);
  }

  /** Records that another value was expected here or in a field. */
  misfit(expected: string, got: unknown, ...steps: Path): void {
    this.#reading.findings.add([...this.path, ...steps], expected, got);
  }

  /** Records an unknown role. */
  unknownRole(expected: string, got: unknown): void {
    const where = this.nodeId === undefined ? {} : { nodeId: this.nodeId };
    this.#reading.findings.add([...this.path, "role"], expected, got, { code: "unknown_role", ...where });
  }

  /** Returns the error of a limit; `what` precedes the name of the node, if there is one. */
  exceeded(what: string, limit: Omit<ExceededLimit, "what" | "nodeId">): Error {
    const { name, nodeId } = this;
    const subjectOfAll = what === "" ? name : `${what} ${name.charAt(0).toLowerCase()}${name.slice(1)}`;
    return contextTooLarge({ ...limit, what: subjectOfAll, nodeId });
  }
}
