/** What a figure's process is told. */
export interface Setting {
  /** The build that is measured. */
  readonly dist: string;
  readonly repetitions: number;
  /** Whether the whole figure, daemon and children too, runs on one core. */
  readonly pinned: boolean;
  /** For everything the figure writes; removed behind it. */
  readonly directory: string;
}

/** A bound of the specification's. */
export interface Goal {
  /** Its number there. */
  readonly id: string;
  readonly sense: "at most" | "at least";
  readonly target: number;
  readonly stretch?: number;
}

export type Unit = "x" | "us" | "ms" | "rec/s" | "1/s" | "MB/s" | "KiB" | "MiB" | "tokens" | "%";

/** One line of the report: a value for each repetition. */
export interface Row {
  readonly name: string;
  readonly unit: Unit;
  readonly values: readonly number[];
  readonly goal?: Goal;
}

/** Numbers that are read side by side. Texts stand left, numbers right. */
export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
}

export interface Measured {
  readonly rows: readonly Row[];
  readonly tables?: readonly Table[];
  /** What the reader has to know beside the numbers. */
  readonly notes: readonly string[];
}

/** One figure. Each runs in a process of its own, so that none inherits another's heap or compiled code. */
export interface Figure {
  readonly title: string;
  readonly repetitions: number;
  /** On one core, as far as the system can do that. */
  readonly pinned?: boolean;
  readonly measure: (setting: Setting, resources: Resources) => Promise<Measured>;
}

/** Where a figure registers how to release what it has acquired. */
export interface Resources {
  add<T>(resource: T, release: (resource: T) => void | Promise<void>): T;
}
