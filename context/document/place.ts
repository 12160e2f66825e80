import type { ContextLimits } from "../../protocol/context-limits.ts";
import { contextTooLarge, type ExceededLimit, subject } from "./faults.ts";
import type { Path, ShapeFindings } from "./shape.ts";

/** What all places of a document share. */
export interface Reading {
  readonly findings: ShapeFindings;
  readonly limits: ContextLimits;
}

/** Where something is read, for findings and errors. Its path and name are made only when they are told. */
export class Place {
  readonly limits: ContextLimits;
  readonly nodeId: string | undefined;
  readonly #reading: Reading;
  readonly #parent: Place | undefined;
  readonly #steps: Path;
  /** Of the node or item in its list. */
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

  /** As a sentence begins: `Node "n3"`. */
  get name(): string {
    return subject({ nodeId: this.nodeId }, this.#index);
  }

  /** Notes that something else was expected here, or at a field of this. */
  misfit(expected: string, got: unknown, ...steps: Path): void {
    this.#reading.findings.add([...this.path, ...steps], expected, got);
  }

  /** A role that is none. */
  noRole(expected: string, got: unknown): void {
    const where = this.nodeId === undefined ? {} : { nodeId: this.nodeId };
    this.#reading.findings.add([...this.path, "role"], expected, got, { code: "unknown_role", ...where });
  }

  /** The error of a limit; `what` comes before the name of the node, if there is one. */
  exceeded(what: string, limit: Omit<ExceededLimit, "what" | "nodeId">): Error {
    const { name, nodeId } = this;
    const subjectOfAll = what === "" ? name : `${what} ${name.charAt(0).toLowerCase()}${name.slice(1)}`;
    return contextTooLarge({ ...limit, what: subjectOfAll, nodeId });
  }
}
