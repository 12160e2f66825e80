/** The settings of a figure's process. */
export interface Setting {
  /** The measured build. */
  readonly dist: string;
  readonly repetitions: number;
  /** For all files of the figure; removed afterwards. */
  readonly directory: string;
}

/** A limit in the specification. */
export interface Goal {
  /** Its number in the specification. */
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

/** Numbers for comparison in rows. Texts are left-aligned, numbers right-aligned. */
export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
}

export interface Measured {
  readonly rows: readonly Row[];
  readonly tables?: readonly Table[];
  /** Explanations for the reader. */
  readonly notes: readonly string[];
}

/** One figure. Each runs in a separate process, so that none inherits another's heap or compiled code. */
export interface Figure {
  readonly title: string;
  readonly repetitions: number;
  readonly measure: (setting: Setting, resources: Resources) => Promise<Measured>;
}

/** Where a figure registers how to release its resources. */
export interface Resources {
  add<T>(resource: T, release: (resource: T) => void | Promise<void>): T;
}
