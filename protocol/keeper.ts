/**
 * The connection between the daemon and the keeper inside pi. Internal: not part of the clients' protocol.
 *
 * Lines that begin with 0x01 belong to the protocol; all others are pi's input and output. The daemon says
 * `from <offset> <version>` and gets a {@link KeeperAnswer}, after which only pi's output follows. Then it may say
 * `ack <offset>`, `mark <id>`, `forget <id>`, `inexact` and `end`. A daemon that ends with its children first leaves a file `mortal` in
 * {@link KeeperConfig.directory}: from then on the keeper ends a pi without a daemon at once. The keeper ignores other words.
 *
 * This module has only types: the keeper imports nothing of ours.
 */

/** The keeper reads it from descriptor 3. */
export interface KeeperConfig {
  readonly childId: string;
  readonly socket: string;
  /** For the file that is written at the end of the process. */
  readonly directory: string;
  readonly limits: KeeperLimits;
}

export interface KeeperLimits {
  /** Bytes of output that may wait for their acknowledgement; pi's next write waits then. */
  readonly maxHeldBytes: number;
  /** A longer line of input ends the connection. */
  readonly maxLineBytes: number;
  /** From the start to the first connection. */
  readonly firstConnectionMs: number;
  /** A pi without work and without a daemon is ended after this time. */
  readonly orphanIdleMs: number;
  /** Any pi without a daemon is ended after this time. */
  readonly orphanRunMs: number;
  /** How often the keeper compares these times, and looks at the length of its stderr. */
  readonly lookEveryMs: number;
  /** Without a daemon: from the end of stdin to SIGTERM, and from there to the exit. */
  readonly endStepMs: number;
}

/** Offsets count the bytes of pi's output. */
export interface KeeperAnswer {
  /** Version of this protocol. */
  readonly keeper: 1;
  readonly childId: string;
  readonly pid: number;
  /** The first byte that the keeper still has. */
  readonly base: number;
  /** The end of the output. */
  readonly head: number;
  /** The furthest byte that any daemon was sent. */
  readonly everSent: number;
  /** Number of lines of input that were handed on to pi. */
  readonly taken: number;
  /** Ids of prompts that were handed on to pi, and not forgotten. */
  readonly given: readonly string[];
  /** A daemon told something that it could not write down. */
  readonly inexact: boolean;
  /** The end of pi's input was handed on. */
  readonly ending: boolean;
}

/** The first line of the file that an ended pi leaves; the output from `base` on follows. */
export interface KeeperRest extends KeeperAnswer {
  readonly code: number;
}
