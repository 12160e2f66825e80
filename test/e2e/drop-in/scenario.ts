import type { Allowance } from "./allowances.ts";
import type { FrontEnd } from "./front-end.ts";
import type { WorldOptions } from "./world.ts";

/** What a front end does with pi, and what the model answers. */
export interface Scenario extends WorldOptions {
  readonly name: string;
  /** Arguments after `--mode rpc`. Default: none. `<root>` in them is the run's root directory. */
  readonly args?: readonly string[];
  /** The steps. When they have ended, stdin is closed and the end of the program is awaited. */
  readonly play: (front: FrontEnd) => Promise<void>;
  /** Whether the drop-in becomes pi, which then says and does what pi does. Default: false. */
  readonly becomesPi?: true;
  /**
   * A difference that the drop-in still has with a version of pi. The scenario fails when it no longer has it.
   */
  readonly known?: Readonly<Partial<Record<string, RegExp>>>;
  /** The differences of the drop-in that this scenario shows. Default: none. */
  readonly allow?: readonly Allowance[];
}
