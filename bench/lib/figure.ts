import type { GoalId, Unit } from "../goals.ts";

/** The settings of a figure's process. */
export interface Setting {
  /** The measured build. */
  readonly dist: string;
  readonly repetitions: number;
  /** For all files of the figure; removed afterwards. */
  readonly directory: string;
  /** A regular expression for the names of the wanted cells, for figures with many. Default: all. */
  readonly only?: string;
  /** The executable of opencode, to compare with. */
  readonly opencode?: string;
}

/** One line of the report: a value for each repetition. */
export interface Row {
  readonly name: string;
  readonly unit: Unit;
  readonly values: readonly number[];
  /** The goals that the median must reach. */
  readonly goals?: readonly GoalId[];
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
  /** Why goals have no row. */
  readonly unmeasured?: Partial<Record<GoalId, string>>;
}

/** One figure. Each runs in a separate process, so that none inherits another's heap or compiled code. */
export interface Figure {
  readonly title: string;
  /** The goals that it measures. */
  readonly goals: readonly GoalId[];
  readonly repetitions: number;
  /** It counts tokens and prices instead of timing, the same on every machine: it runs only when it is named. */
  readonly isCounted?: boolean;
  /** The figure fails after this time. Default: 180. */
  readonly deadlineSeconds?: number;
  readonly measure: (setting: Setting, resources: Resources) => Promise<Measured>;
}

/** Where a figure registers how to release its resources. */
export interface Resources {
  add<T>(resource: T, release: (resource: T) => void | Promise<void>): T;
}

export const defaultDeadlineSeconds = 180;
