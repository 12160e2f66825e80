import type { ContextSummary } from "../../protocol/context-option.ts";
import type { ControlPolicy } from "../../protocol/control.ts";
import type { OnForeignWrite } from "../../protocol/custody.ts";
import type { DialogPolicy } from "../../protocol/dialog.ts";
import type { PruningOptions } from "../../protocol/pruning/options.ts";
import type { Labels, Profile } from "../../protocol/session-options.ts";

export type StoredOptions = Readonly<Omit<Profile, "provider" | "ephemeral" | "labels" | "thinking">> & {
  /** pi's own name of the level. */
  readonly thinking?: string;
};

/** The context of a session, without its text. */
export interface StoredContext {
  readonly summary: ContextSummary;
  /** SHA-256 of the text of the user's last message, until a prompt follows it. */
  readonly unanswered?: string;
  /**
   * In ephemeral mode: the size and hash of the context in the daemon's directory, which each pi of the session
   * loads.
   */
  readonly kept?: { readonly bytes: number; readonly sha256: string };
}

/** The part of a session that survives the daemon. */
export interface StoredSession {
  readonly sessionId: string;
  readonly cwd: string;
  readonly file: string;
  /** The file existed before the session: it is never deleted. */
  readonly isOpened?: boolean;
  readonly name?: string;
  readonly generation: number;
  /** The highest number that the session's log may have used. */
  readonly reservedSeq: number;
  /** The epoch of that log. */
  readonly logEpoch?: string;
  /** The options of pi's start, to start it the same way again. */
  readonly options: StoredOptions;
  /** It exists only in its pi's memory; `file` is never created. */
  readonly ephemeral?: true;
  readonly profile?: string;
  readonly labels?: Labels;
  readonly context?: StoredContext;
  /** The session on whose behalf it works. */
  readonly delegatedBy?: string;
  /** The part of `options.pruning` that callers gave, to apply it to changed layers again. */
  readonly ownPruning?: PruningOptions;
  /** Default: `reload`. */
  readonly onForeignWrite?: OnForeignWrite;
  /** The file as the session's children left it; see `server/custody/file-watch.ts`. */
  readonly fileMark?: {
    readonly size: number;
    readonly inode: number;
    readonly mtimeMs: number;
    readonly read: number;
    readonly tailSum: number;
    readonly lastId?: string;
    readonly isOpen: boolean;
  };
  /** Absent: control is shared by all clients. */
  readonly control?: ControlPolicy;
  /** The outcome of a dialog without a responder. Default: see `dialog-policy.ts`. */
  readonly dialogPolicy?: DialogPolicy;
  /** It is being created, and no client knows it. If the daemon is killed meanwhile, the next one lists it. */
  readonly isBeginning?: true;
  /** How long its child may be idle; 0: without limit. Absent: the daemon's setting. */
  readonly idleAfterMs?: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}
