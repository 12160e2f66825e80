import type { EventEmitter } from "node:events";
import type { Logger } from "pino";
import type { OutwardFrame } from "../../protocol/link-outward.ts";
import type { NotificationName } from "../../protocol/notifications.ts";
import type { RunOutcome } from "../../protocol/prompt.ts";
import type { ChildExit, LostPrompt, SessionSummary } from "../../protocol/session.ts";
import type { SerialQueue } from "../lib/serial-queue.ts";
import type { Child, ChildSinks } from "../pi/child.ts";
import type { Hello } from "../pi/link.ts";
import type { PiEvent } from "../pi/records.ts";
import type { RecordDiagnostic } from "../pi/router.ts";
import type { Attribution } from "./attribution.ts";
import type { StartPurpose } from "./session-core.ts";
import type { SessionRecord } from "./session-record.ts";
import type { SessionState } from "./session-state.ts";

/** What the parts of a session share. It exists before them. */
export interface SessionContext {
  readonly sessionId: string;
  readonly record: SessionRecord;
  readonly journal: SessionJournal;
  readonly events: SessionEmitter;
  readonly attribution: Attribution;
  /** Serialises all writes to the session's pi. */
  readonly scope: SerialQueue;
  readonly log: Logger;
}

type Params = Readonly<Record<string, unknown>>;

/** The numbered notifications of a session. */
export interface SessionJournal {
  /** Whether the session is closed permanently. */
  readonly isClosed: boolean;
  say(method: NotificationName, params: Readonly<Record<string, unknown>>): void;
  /** The first such notification that a former daemon told and this one has not. */
  findSaid(method: NotificationName, isIt: (params: Params) => boolean): Params | undefined;
  /** As {@link ChildSinks} requires. */
  stage(record: Buffer): Promise<void>;
  room(bytes?: number): Promise<void> | undefined;
}

/** Listeners are called synchronously, in the order of their subscriptions. */
export type SessionEmitter = EventEmitter<SessionEvents>;

export interface SessionEvents {
  /** Clients must be told the new state of the session. */
  changed: [details?: SessionChange];
  /** Work of the session has begun or ended, so that it may be idle. */
  workChanged: [];
  stateChanged: [state: SessionState];
  /** The control lease or policy has changed. */
  controlChanged: [];
  /** A failed action is due again. */
  retryDue: [];
  childStarting: [];
  /** The child reads its stdin and is not in use yet. */
  childReady: [child: Child];
  /** Follows `childReady` for a child that this session has started. */
  childStarted: [start: ChildStarted];
  /** The child is about to be ended, so pi can no longer receive answers. */
  childLeaving: [];
  childEnded: [end: ChildEnded];
  runEnded: [outcome: RunOutcome, said: RunWords];
  /** pi has compacted the context. */
  compacted: [];
  /** A record of pi. `isDelta`: a high-rate record, whose `event` is undefined. */
  record: [generation: number, record: Buffer, event: PiEvent | undefined, isDelta: boolean];
  /** The child's commands may have changed. */
  childChanged: [];
  /** A record of the child was handled. */
  handled: [generation: number];
  /** The log cannot continue that of a former daemon. */
  renumbered: [];
  /** The next notification is told and was not written: the next daemon will not find its number. */
  unwritten: [];
  /** The child's reports, from the current one on, are held; or were just passed on. */
  reportsHeld: [isHolding: boolean];
  /** A frame of the helper. */
  frame: [generation: number, frame: OutwardFrame];
  diagnostic: [generation: number, diagnostic: RecordDiagnostic];
  /** A hello of the child names another session, with this file. */
  sessionSwitched: [child: Child, hello: Hello, file: string];
  /** The context with which the session began is lost. Emitted during the start that fails for it. */
  contextLost: [];
}

/** What an assistant said in a run, and the context that it then had. */
export interface RunWords extends Pick<SessionSummary, "lastText"> {
  /** Absent: not known since the run began, or since a compaction in it. */
  readonly usedTokens?: number;
}

/** Details of a change, in addition to the session's state. */
export interface SessionChange {
  readonly lostPrompts?: readonly LostPrompt[];
  /** The current pi has the context of the session, but nothing of the later conversation. */
  readonly restored?: true;
}

export interface ChildStarted {
  readonly child: Child;
  readonly purpose: StartPurpose;
  /** Callers that wait for the child also wait for this work. Its rejection is the outcome of their wait. */
  readonly waitUntil: (work: Promise<void>) => void;
}

export interface ChildEnded {
  readonly child: Child;
  readonly exit: ChildExit;
  /** Whether a run was active. */
  readonly hadRun: boolean;
}

/** Sinks that emit the reports of a child as events of its session. */
export function childSinks({ events, journal }: SessionContext, generation: number): ChildSinks {
  return {
    stage: (record) => journal.stage(record),
    room: (bytes) => journal.room(bytes),
    onEvent: (record, event, isDelta) => events.emit("record", generation, record, event, isDelta),
    onFrame: (frame) => events.emit("frame", generation, frame),
    onDiagnostic: (diagnostic) => events.emit("diagnostic", generation, diagnostic),
    onChanged: () => events.emit("childChanged"),
    onHandled: () => events.emit("handled", generation),
  };
}
