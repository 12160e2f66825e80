import { questionOf } from "../dialogs/dialog-question.ts";
import type { ChildSinks } from "../pi/child.ts";
import type { Hello } from "../pi/link.ts";

/** Cost of a report in addition to its bytes. */
const reportBytes = 256;

interface HeldReport {
  readonly passTo: (sinks: ChildSinks) => void;
  readonly hello: Hello | undefined;
}

export interface HeldReportsOptions {
  readonly sinks: ChildSinks;
  readonly maxBytes: number;
  /** The limit is exceeded. Later reports are dropped. */
  readonly onFull: () => void;
}

/**
 * A child's reports after its `hello` for another session, until pi has confirmed that session. They are then
 * forwarded in order, or dropped, because any extension can send a `hello`, and the reports after a false one do not
 * belong to that session.
 */
export class HeldReports implements ChildSinks {
  readonly #options: HeldReportsOptions;
  #held: HeldReport[] = [];
  #bytes = 0;

  constructor(options: HeldReportsOptions) {
    this.#options = options;
  }

  readonly onEvent: ChildSinks["onEvent"] = (record, event, isDelta) => {
    // pi confirms nothing while a start hook waits for an answer.
    if (event !== undefined && questionOf(event) !== undefined) {
      this.#options.sinks.onEvent(record, event, isDelta);
      return;
    }
    // The record may be a view of the read buffer.
    const copy = Buffer.from(record);
    this.#hold(copy.length, (sinks) => sinks.onEvent(copy, event, isDelta));
  };

  readonly onFrame: ChildSinks["onFrame"] = (frame) => {
    const hello = frame.kind === "hello" ? frame : undefined;
    this.#hold(JSON.stringify(frame).length, (sinks) => sinks.onFrame(frame), hello);
  };

  /** The next daemon gets them again. */
  readonly onHandled = (): void => {};

  readonly onDiagnostic: ChildSinks["onDiagnostic"] = (diagnostic) => {
    this.#hold(0, (sinks) => sinks.onDiagnostic(diagnostic));
  };

  /** The first `hello` for another file than this one. It and all earlier reports are dropped. */
  takeOther(own: string): Hello | undefined {
    const at = this.#held.findIndex(({ hello }) => hello?.sessionFile !== undefined && hello.sessionFile !== own);
    return at === -1 ? undefined : this.#held.splice(0, at + 1).at(-1)?.hello;
  }

  /**
   * Forwards the held reports. A `hello` among them changes the receiver of the rest: `current` has the child's sinks
   * by then.
   */
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
