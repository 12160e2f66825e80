import { within } from "../lib/deadline.ts";

export interface StopTimes {
  /** From the end of stdin to SIGTERM. */
  readonly afterEofMs: number;
  /** From SIGTERM to SIGKILL. */
  readonly afterTermMs: number;
}

export interface Stoppable {
  readonly exited: Promise<unknown>;
  endInput(): void;
  /** Sends a signal to its process group. */
  signal(name: NodeJS.Signals): void;
  /** Called before each step: a tool that cleared its environment can be found only while its parents live. */
  beforeStep(): Promise<void>;
}

/**
 * Ends a child as pi documents it: end of stdin, then SIGTERM, then SIGKILL to its group. pi needs time for its
 * shutdown (killing it during a token refresh has lost logins). Resolves when the child has exited.
 */
export async function stopGracefully(child: Stoppable, times: StopTimes): Promise<"eof" | "sigterm" | "sigkill"> {
  await child.beforeStep();
  child.endInput();
  if ((await within(child.exited, times.afterEofMs)).kind === "done") return "eof";
  child.signal("SIGTERM");
  if ((await within(child.exited, times.afterTermMs)).kind === "done") return "sigterm";
  await child.beforeStep();
  child.signal("SIGKILL");
  await child.exited;
  return "sigkill";
}
