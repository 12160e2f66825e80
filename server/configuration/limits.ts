import { availableParallelism, homedir, totalmem } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

/** Every bound of the daemon beyond those of the edge, with its unit in its name. */
export const limits = {
  /** Sessions that are not closed, children or not. */
  maxSessions: 1_000,
  /** pi reads a session file as one string, of which V8 takes no more. */
  maxSessionFileBytes: 512 * 1024 * 1024,
  /** How often a daemon looks whether its state directory is still there. */
  lookAtStateDirectoryEveryMs: 1_000,
  /** Named tokens. */
  maxTokens: 256,
  /** Calls that wait for their turn at one session. */
  maxWaitingCalls: 256,
  /** The last answers of the pi of all sessions that are in memory. */
  maxCachedAnswersBytes: 16 * 1024 * 1024,
  /** One answer that is kept. */
  maxCachedAnswerBytes: 256 * 1024,
  /** A session file that the daemon reads to answer in place of a pi. */
  maxAnsweringFileBytes: 64 * 1024 * 1024,
  /** How long pi's list of models is kept while nothing changes that it is made of. */
  keepModelsMs: 5 * 60 * 1_000,
  context: {
    /** How long a helper may take to confirm the context of an ephemeral session. */
    ackTimeoutMs: 10_000,
    /** Larger documents are prepared by another thread, of which there are so many at a time; further ones wait. */
    maxOwnBytes: 128 * 1024,
    maxThreads: 2,
    maxWaiting: 64,
    /** Of all documents and session files that are held for them at a time; further ones wait, as many and as long. */
    maxHeldBytes: 256 * 1024 * 1024,
    /** One thread's work, with its wait for a place. */
    workTimeoutMs: 60_000,
    /** Memory of one thread. */
    maxThreadMiB: 4_096,
    /** What is given in an answer: the items of an inspection, and an export. */
    maxInlineBytes: 8 * 1024 * 1024,
    /** Exports as files: how long they are kept, and how many. */
    keepExportsMs: 60 * 60 * 1_000,
    maxExports: 32,
    /** Which model pi takes for which options, while nothing changes that this follows from. */
    maxKnownTargets: 256,
  },
  calls: {
    /** Clients' commands to one session's pi that it has not answered. */
    maxUnansweredCommands: 256,
    /** Shell commands of one session that wait for the one that runs. */
    maxWaitingBash: 16,
    /** A session as an HTML page. */
    maxExportBytes: 16 * 1024 * 1024,
  },
  /** How many pi start at a time; further ones wait. */
  maxParallelStarts: availableParallelism(),
  /** A start that takes longer gives its place to the next: its extensions wait for something. */
  startPlaceMs: 10_000,
  /** An idle pi is ended after so long, and started again when it is needed. */
  idleAfterMs: 15 * 60_000,
  /** How long runs may go on when the daemon is told to end. */
  drainMs: 5_000,
  occupancy: {
    /** Of sessions, warm ones and those that start, together. Idle ones end for others; else the start waits. */
    maxChildren: 256,
    /** Their memory, without what they share, of the machine's. Idle ones end over it. */
    maxMemoryPercent: 50,
    /** How long a start may wait for a place. */
    placeTimeoutMs: 30_000,
    /** A child whose end takes longer is not waited for alone: the next idle one is ended meanwhile. */
    endPatienceMs: 1_000,
    /** How often sessions are looked at, and their memory. */
    lookEveryMs: 1_000,
    weighEveryMs: 10_000,
  },
  responsiveness: {
    /** A pi is asked whether it is there behind a call that waits, or a run that is silent, for so long. */
    probeAfterMs: 5_000,
    quietRunMs: 15_000,
    /** One that answers nothing for so long is told to be unresponsive. */
    unresponsiveAfterMs: 5_000,
  },
  /** Children that are ready before a session wants them. Each costs what an idle pi costs: 60 to 80 MiB. */
  warm: { perKind: 1, maxWarm: 4, recentMs: 5 * 60 * 1_000, minFreeBytes: 1024 * 1024 * 1024 },
  /** What is kept of each session's notifications for those who come back. */
  maxRetainedEventBytes: 8 * 1024 * 1024,
  log: {
    /** The same of all sessions; whoever has most forgets first. */
    maxRetainedBytesInAll: 256 * 1024 * 1024,
    /** How long an event waits to be stored, together with others, and how many bytes of one session wait at most. */
    storeAfterMs: 200,
    maxUnstoredBytes: 1024 * 1024,
    /** A larger event is kept in memory alone. */
    maxStoredEventBytes: 8 * 1024 * 1024,
    /** What is told and not stored yet, in files that a killed daemon leaves to the next. Beyond, it would be a gap. */
    maxTailBytes: 64 * 1024 * 1024,
  },
  /** The notifications in the store, compressed: of one session, of all, and for how long: 30 days. */
  storedEvents: { maxSessionBytes: 16 * 1024 * 1024, maxTotalBytes: 128 * 1024 * 1024 },
  /** Events of the feed of all sessions in the store, and their bytes. */
  feed: { maxFeedEvents: 100_000, maxFeedBytes: 64 * 1024 * 1024 },
  keepEventsMs: 30 * 24 * 60 * 60 * 1_000,
  /** Texts that parts inside pi have put aside: what is looked through to find those that nobody refers to any more. */
  spill: {
    maxFiles: 100_000,
    maxScanBytes: 8 * 1024 * 1024 * 1024,
    /** A younger one is left alone: what refers to it may not be on disk yet. */
    graceMs: 10 * 60 * 1_000,
    /** Directories in which sessions lie. One that is away for so long, 30 days, is taken for gone. */
    maxDirectories: 4_096,
    keepAwayMs: 30 * 24 * 60 * 60 * 1_000,
  },
  /** What is read of the end of pi's session file, for what the log lacks of it. */
  maxRefillBytes: 16 * 1024 * 1024,
  /** The messages of a snapshot, as JSON. */
  maxSnapshotBytes: 16 * 1024 * 1024,
  /** A request's message list or payload, as JSON, that subscribers are told of; a larger one is left out. */
  maxProviderBodyBytes: 4 * 1024 * 1024,
  /** How long deliveries are kept in the store after they were settled, and prompts after they were lost: 30 days. */
  keepSettledDeliveriesMs: 30 * 24 * 60 * 60 * 1_000,
  keepLostPromptsMs: 30 * 24 * 60 * 60 * 1_000,
  /** How often the store is looked through for what is to be forgotten: when a daemon starts, and every hour. */
  sweepStoreEveryMs: 60 * 60 * 1_000,
  /** Free pages of 4 KiB that are given back to the file system each time. */
  maxShrinkPages: 2_560,
  /** Settled deliveries in the store, and their bytes as JSON. Looked at whenever a sixteenth of it was added. */
  settled: { maxSettled: 100_000, maxSettledBytes: 128 * 1024 * 1024 },
  /** How long a client may be without a connection before its control of sessions ends. */
  controlGraceMs: 10_000,
  /** Of connections to sessions: of all tokens, and of one named token. */
  subscriptions: { maxSubscriptions: 32_768, maxSubscriptionsPerToken: 8_192 },
  /** Ids of clients: of one token, connected or gone; and of those that have gone, of all tokens. */
  clients: { maxClientsPerToken: 2_048, maxGoneClients: 10_000 },
  /** Prompts of one session that pi has and that are not over, and the characters of their texts. */
  prompts: { maxOpen: 256, maxOpenChars: 64 * 1024 * 1024 },
  /** Prompts whose fate is known and that are not lost: how long they can be asked for, and how many of all sessions. */
  keepSettledPromptsMs: 24 * 60 * 60 * 1_000,
  maxSettledPrompts: 10_000,
  delivery: {
    /** One push as JSON. */
    maxPushBytes: 8 * 1024 * 1024,
    /** Pushes of one session that are on their way, and their bytes. */
    maxOpenPerSession: 1_000,
    maxOpenBytesPerSession: 64 * 1024 * 1024,
    /** Settled deliveries held in memory; others are read from the store. */
    maxSettledInMemory: 1_000,
    maxSettledBytesInMemory: 16 * 1024 * 1024,
  },
  dialogs: {
    /** Open at a time: of one session, and of all. */
    maxDialogsPerSession: 64,
    maxDialogs: 1_000,
    /** One dialog as JSON, and all that are open. */
    maxDialogBytes: 1024 * 1024,
    maxDialogsBytes: 32 * 1024 * 1024,
    /** Of a `select`. */
    maxDialogOptions: 1_000,
    maxAnswerBytes: 1024 * 1024,
    /** Of one answer to `dialog/list`, beside its first dialog. */
    maxDialogPageBytes: 4 * 1024 * 1024,
    /** Dialogs that have ended, in the store and in memory. */
    maxEndedDialogs: 10_000,
    maxEndedDialogsInMemory: 1_000,
    /** Before pi's own timeout. */
    beforePiTimeoutMs: 500,
    /** The longest that any is open, where the session's policy says nothing else: a day. */
    maxDialogMs: 24 * 60 * 60 * 1_000,
    /** How long the last one who can answer may be away. */
    maxAwayMs: 30_000,
    /** How long a dialog is open to its owner alone, where the owner can answer. */
    dialogDelayMs: 5_000,
    /** How long pi waits for its answer until the extensions have been told that no client can answer. */
    announceMs: 1_000,
  },
  store: {
    /** Writes that wait for the disk, and their bytes. The bytes do not count for changes of what exists already. */
    maxQueued: 100_000,
    maxQueuedBytes: 32 * 1024 * 1024,
    /** Changes that a failing store owes, and their bytes. From the half on nothing new is taken. */
    maxUnwritten: 100_000,
    maxUnwrittenBytes: 256 * 1024 * 1024,
  },
  /** How late the daemon's event loop may be before it says that it is not ready. */
  maxLoopDelayMs: 1_000,
  /**
   * In a window of time. Calls of one token: those that may start a pi of their own, those that give a model something to
   * do, and pushes. And the starts of one session's pi, whoever wants it.
   */
  rates: { windowMs: 10_000, maxStarts: 200, maxPrompts: 1_000, maxPushes: 200_000, maxWakes: 100 },
  /** The daemon's log; one older file of this size is kept beside it. */
  maxLogBytes: 16 * 1024 * 1024,
  /** The same of the file of the calls that have changed something. */
  maxCallLogBytes: 128 * 1024 * 1024,
  child: {
    /** A longer record of pi is skipped and reported. */
    maxRecordBytes: 64 * 1024 * 1024,
    /** What may wait in front of a pi that does not read. */
    maxStdinBacklogBytes: 64 * 1024 * 1024,
    /** The end of pi's stderr. */
    maxStderrBytes: 8 * 1024,
    /** pi answers only when its extensions' start hooks have ended. */
    startTimeoutMs: 120_000,
    /** What dialogs with a timeout of their own may add to that, in all. */
    maxStartupDialogMs: 300_000,
    /** From a dialog without a timeout to the first answer: some extensions do not wait for theirs. */
    startupDialogGraceMs: 1_000,
    /** The end of stdin to SIGTERM, and SIGTERM to SIGKILL: 15 s in all. */
    afterEofMs: 10_000,
    afterTermMs: 5_000,
  },
} as const;

/** `--state-dir`, else `PI_RPCD_STATE_DIR`, else `$XDG_STATE_HOME/pi-rpcd`, else `~/.local/state/pi-rpcd`. */
export function stateDirectory(option: string | undefined, env: NodeJS.ProcessEnv): string {
  const chosen = option ?? nonEmpty(env["PI_RPCD_STATE_DIR"]);
  if (chosen !== undefined) return resolve(chosen);
  const stateHome = nonEmpty(env["XDG_STATE_HOME"]);
  // The specification of XDG says that a relative path is to be ignored.
  if (stateHome !== undefined && isAbsolute(stateHome)) return join(stateHome, "pi-rpcd");
  return join(env["HOME"] ?? homedir(), ".local", "state", "pi-rpcd");
}

function nonEmpty(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}

interface LifeLimits {
  readonly idleAfterMs: number;
  readonly occupancy: {
    readonly maxChildren: number;
    readonly maxChildrenBytes: number;
    readonly placeTimeoutMs: number;
    readonly endPatienceMs: number;
    readonly lookEveryMs: number;
    readonly weighEveryMs: number;
  };
}

/** With what is configured of it. */
export function lifeLimits(configured: {
  readonly idleAfterMs?: number;
  readonly maxChildren?: number;
  readonly maxChildrenMiB?: number | undefined;
}): LifeLimits {
  const { maxChildren, maxMemoryPercent, ...occupancy } = limits.occupancy;
  const { maxChildrenMiB: mebibytes } = configured;
  return {
    idleAfterMs: configured.idleAfterMs ?? limits.idleAfterMs,
    occupancy: {
      ...occupancy,
      maxChildren: configured.maxChildren ?? maxChildren,
      maxChildrenBytes: mebibytes === undefined ? (totalmem() / 100) * maxMemoryPercent : mebibytes * 1024 * 1024,
    },
  };
}
