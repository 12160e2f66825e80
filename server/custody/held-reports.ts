import { questionOf } from "../dialogs/dialog-question.ts";
import type { ChildSinks } from "../pi/child.ts";
import type { Hello } from "../pi/link.ts";

/** What is charged for a report beyond its bytes. */
const reportBytes = 256;

interface HeldReport {
  readonly passTo: (sinks: ChildSinks) => void;
  readonly hello: Hello | undefined;
}

export interface HeldReportsOptions {
  readonly sinks: ChildSinks;
  readonly maxBytes: number;
  /** There is more than may be held. What follows is dropped. */
  readonly onFull: () => void;
}

/**
 * What a child reports from its `hello` for another session until pi has confirmed it. Passed on in its order then, or dropped:
 * any extension can send a `hello`, and what follows a false one is not that session's.
 */
export class HeldReports implements ChildSinks {
  readonly #options: HeldReportsOptions;
  #held: HeldReport[] = [];
  #bytes = 0;

  constructor(options: HeldReportsOptions) {
    this.#options = options;
  }

  readonly onEvent: ChildSinks["onEvent"] = (record, event, isDelta) => {
    // pi confirms nothing while a start hook waits for the answer to its question.
    if (event !== undefined && questionOf(event) !== undefined) {
      this.#options.sinks.onEvent(record, event, isDelta);
      return;
    }
    // The record may be a view of what was read.
    const copy = Buffer.from(record);
    this.#hold(copy.length, (sinks) => sinks.onEvent(copy, event, isDelta));
  };

  readonly onFrame: ChildSinks["onFrame"] = (frame) => {
    const hello = frame.kind === "hello" ? frame : undefined;
    this.#hold(JSON.stringify(frame).length, (sinks) => sinks.onFrame(frame), hello);
  };

  readonly onDiagnostic: ChildSinks["onDiagnostic"] = (diagnostic) => {
    this.#hold(0, (sinks) => sinks.onDiagnostic(diagnostic));
  };

  /** The first `hello` of another file than this. It and what was reported before it are dropped. */
  takeOther(own: string): Hello | undefined {
    const at = this.#held.findIndex(({ hello }) => hello?.sessionFile !== undefined && hello.sessionFile !== own);
    return at === -1 ? undefined : this.#held.splice(0, at + 1).at(-1)?.hello;
  }

  /** Passes on what is held. A `hello` among it changes who hears the rest: `current` has the child's sinks by then. */
  release(current: () => ChildSinks): void {
    const held = this.#held;
    this.#held = [];
    for (const { passTo } of held) passTo(current());
  }

  #hold(bytes: number, passTo: HeldReport["passTo"], hello?: Hello): void {
    if (this.#bytes > this.#options.maxBytes) return;
    this.#bytes += bytes + reportBytes;
    if (this.#bytes > this.#options.maxBytes) this.#options.onFull();
    else this.#held.push({ passTo, hello });
  }
}
