import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { Port, SessionNotification } from "./port.ts";
import type { PromptAnswers } from "./prompts.ts";
import type { RunUsage } from "./updates/usage.ts";

/** What a version of the protocol uses of a session. */
export interface SessionParts {
  readonly sessionId: string;
  readonly port: Port;
  /** Sends an update of version 1, in the client's version. */
  readonly update: (update: SessionUpdate) => void;
  /** Sends an update as it is. */
  readonly send: (update: object) => void;
  /** Tells the user the words of a command of ours. */
  readonly say: (words: string) => void;
  /** Resolves when everything is out that the session has said until now. */
  readonly caughtUp: () => Promise<void>;
  /** How many tools run. */
  readonly runningTools: () => number;
  readonly usageOf: (runId: string) => RunUsage;
  /** The client has left the session. Its reason is the error of what waits. */
  readonly left: AbortSignal;
}

/** What the versions of the protocol tell in different ways. Absent methods: as version 1, or nothing. */
export interface SessionVersion {
  readonly answers: PromptAnswers;
  /** Whether a client gets its own prompts as messages. */
  readonly echoes: boolean;
  /** Whether a question that belongs to no tool call gets one of its own. */
  readonly questionsAreTools: boolean;
  /** An update in this version. `block`: which of an answer's blocks a text is of. */
  encode?(update: SessionUpdate, block?: number): readonly object[];
  /** The params of a request for permission that has these in version 1. */
  permission?(params: PermissionParams): object;
  /** The session's history comes next. */
  restart?(): void;
  /** The client has the session now. `isRunning`: whether a run is on; absent: nothing was read again. */
  attached?(isRunning?: boolean): void;
  /** The client has got what it had missed. */
  missed?(isRunning: boolean): void;
  /** The client leaves the session: resolves when it has been told the end of the work that this has ended. */
  closing?(): Promise<void>;
  /** A dialog is open. */
  asked?(dialogId: string): void;
  /** The message of a prompt was told. `given`: its id in version 1. */
  inserted?(promptId: string, given: string): void;
  /** A notification was told. */
  received?(notification: SessionNotification): void;
}

export interface PermissionParams {
  readonly sessionId: string;
  readonly toolCallId: string | undefined;
  readonly title: string;
  /** The rest of the question. */
  readonly message: string | undefined;
  readonly options: readonly object[];
}
