import type { ReadonlySignal } from "@preact/signals";
import type { Outcome } from "./outcome.ts";

/** Something that only pi knows. */
export type Known<Value> =
  | { readonly kind: "unknown" }
  | { readonly kind: "asking" }
  | { readonly kind: "known"; readonly value: Value }
  | { readonly kind: "refused"; readonly words: string };

export interface ModelChoice {
  readonly provider: string;
  readonly id: string;
  readonly name: string;
}

export interface CommandChoice {
  /** Without its slash. */
  readonly name: string;
  readonly description: string;
  readonly source: string;
}

/** The model, the level of thinking and the commands of a session: what is known, without starting a pi. */
export interface Choices {
  readonly model: ReadonlySignal<ModelChoice | undefined>;
  readonly level: ReadonlySignal<string | undefined>;
  readonly models: ReadonlySignal<Known<readonly ModelChoice[]>>;
  readonly levels: ReadonlySignal<Known<readonly string[]>>;
  readonly commands: ReadonlySignal<Known<readonly CommandChoice[]>>;
  /** Whether {@link ask} would start the session's pi. */
  readonly isAsleep: ReadonlySignal<boolean>;
  /** Asks pi for all three; starts it if it sleeps. */
  ask(): Promise<Outcome>;
  setModel(model: ModelChoice): Promise<Outcome>;
  setLevel(level: string): Promise<Outcome>;
}
