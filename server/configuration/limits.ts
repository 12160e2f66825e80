import { availableParallelism, homedir, totalmem } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

/** The daemon's limits, except those of the edge and of calls in flight (`server/rpc/dispatcher.ts`). Names have the units. */
export const limits = {
  /** Sessions that are not closed, with or without a child. */
  maxSessions: 1_000,
  /** pi reads a session file as one string, which V8 limits to this size. */
  maxSessionFileBytes: 512 * 1024 * 1024,
  /** Interval at which a daemon checks that its state directory still exists. */
  lookAtStateDirectoryEveryMs: 1_000,
  /** Named tokens. */
  maxTokens: 256,
  /** The web console. */
  web: {
    /** How long a code for a browser is valid, and one that a person copies. */
    webCodeMs: 60_000,
    webPrintedCodeMs: 10 * 60 * 1_000,
    /** Unused codes. */
    maxWebCodes: 16,
    /** Tokens of browsers: their number, and how long one is valid after its last connection. */
    maxWebTokens: 32,
    webTokenIdleMs: 12 * 60 * 60 * 1_000,
    /** The page's files in memory. */
    maxWebFilesBytes: 3 * 1024 * 1024,
    /** A request with a code. */
    maxExchangeBytes: 1_024,
  },
  /** Calls that wait for their turn at one session. */
  maxWaitingCalls: 256,
  /** The last answers of pi, of all sessions in memory. */
  maxCachedAnswersBytes: 16 * 1024 * 1024,
  /** One cached answer. */
  maxCachedAnswerBytes: 256 * 1024,
  /** A session file that the daemon reads to answer instead of a pi. */
  maxAnsweringFileBytes: 64 * 1024 * 1024,
  /** How long the last subscriber of a session without a message may be away. */
  leftSessionMs: 60_000,
  /** How long pi's list of models is cached while its sources do not change. */
  keepModelsMs: 5 * 60 * 1_000,
  context: {
    /** How long a helper may take to confirm the context of an ephemeral session. */
    ackTimeoutMs: 10_000,
    /** Larger documents are prepared in worker threads, of which this many run at a time; further documents wait. */
    maxOwnBytes: 128 * 1024,
    maxThreads: 2,
    maxWaiting: 64,
    /** All documents and session files in memory for these threads; further ones wait, with the same bounds. */
    maxHeldBytes: 256 * 1024 * 1024,
    /** One thread's work, including its wait for a place. */
    workTimeoutMs: 60_000,
    /** The heap of one thread. */
    maxThreadMiB: 4_096,
    /** The inline content of an answer: the items of an inspection, or an export. */
    maxInlineBytes: 8 * 1024 * 1024,
    /** Exports as files: how long they are kept, and their number. */
    keepExportsMs: 60 * 60 * 1_000,
    maxExports: 32,
    /** Cached results of which model pi selects for which options, valid while the inputs do not change. */
    maxKnownTargets: 256,
  },
  calls: {
    /** Unanswered commands of clients to one session's pi. */
    maxUnansweredCommands: 256,
    /** Shell commands of one session that wait for the running one. */
    maxWaitingBash: 16,
    /** A session as an HTML page. */
    maxExportBytes: 16 * 1024 * 1024,
  },
  /** How many pi processes start at a time; further starts wait. */
  maxParallelStarts: availableParallelism(),
  /**
   * A start that takes longer frees its place for the next one: its extensions are probably waiting for something.
   */
  startPlaceMs: 10_000,
  /** An idle pi is stopped after this time, and started again when it is needed. */
  idleAfterMs: 15 * 60_000,
  /** How long runs may continue during a shutdown. */
  drainMs: 5_000,
  /** How long a pi without a daemon waits for the next one: while it is idle, and while it is at work. */
  orphanIdleMs: 60_000,
  orphanRunMs: 30 * 60_000,
  occupancy: {
    /**
     * Children of sessions, warm children and starting ones together. Idle children are stopped to make room;
     * otherwise the start waits.
     */
    maxChildren: 256,
    /** Their unshared memory, as a share of the machine's. Beyond it idle children are stopped. */
    maxMemoryPercent: 50,
    /** How long a start may wait for a place. */
    placeTimeoutMs: 30_000,
    /** If a child takes longer to stop, the next idle one is stopped in parallel. */
    endPatienceMs: 1_000,
    /** Interval at which sessions and their memory are checked. */
    lookEveryMs: 1_000,
    weighEveryMs: 10_000,
  },
  responsiveness: {
    /** A pi is probed if a call has waited, or a run has been silent, for this long. */
    probeAfterMs: 5_000,
    quietRunMs: 15_000,
    /** A pi that does not answer the probe for this long is reported as unresponsive. */
    unresponsiveAfterMs: 5_000,
  },
  /** Children that are started before a session needs them. Each takes 60 to 80 MiB, like an idle pi. */
  warm: { perKind: 1, maxWarm: 4, recentMs: 5 * 60 * 1_000, minFreeBytes: 1024 * 1024 * 1024 },
  /** Notifications of one session that are kept in memory for reconnecting clients. */
  maxRetainedEventBytes: 8 * 1024 * 1024,
  log: {
    /** The same for all sessions; the session with the most forgets first. */
    maxRetainedBytesInAll: 256 * 1024 * 1024,
    /**
     * How long an event waits so that it is stored together with others, and the bytes of one session that may wait.
     */
    storeAfterMs: 200,
    maxUnstoredBytes: 1024 * 1024,
    /** A larger event is kept in memory only. */
    maxStoredEventBytes: 8 * 1024 * 1024,
    /**
     * Events that were sent and are not stored yet, in files that survive a killed daemon. Beyond this size they
     * become a gap.
     */
    maxTailBytes: 64 * 1024 * 1024,
  },
  /** Compressed bytes of stored notifications: of one session, and of all sessions. */
  storedEvents: { maxSessionBytes: 16 * 1024 * 1024, maxTotalBytes: 128 * 1024 * 1024 },
  /** Stored events of the feed of all sessions, and their bytes. */
  feed: { maxFeedEvents: 100_000, maxFeedBytes: 64 * 1024 * 1024 },
  /** The age at which stored notifications are deleted: 30 days. */
  keepEventsMs: 30 * 24 * 60 * 60 * 1_000,
  /** Texts that parts inside pi moved out of transcripts: bounds of the search for texts without references. */
  spill: {
    maxFiles: 100_000,
    maxScanBytes: 8 * 1024 * 1024 * 1024,
    /** A younger text is kept: its reference may not be on disk yet. */
    graceMs: 10 * 60 * 1_000,
    /** Directories that contain sessions. A directory that is missing for 30 days is considered deleted. */
    maxDirectories: 4_096,
    keepAwayMs: 30 * 24 * 60 * 60 * 1_000,
  },
  /** How much of the end of pi's session file is read to fill in entries that are missing in the log. */
  maxRefillBytes: 16 * 1024 * 1024,
  transcript: {
    /** Bytes of a session file that one call reads. */
    maxFileReadBytes: 16 * 1024 * 1024,
    /** Of a longer entry only its place in the tree is read. */
    maxEntryLineBytes: 14 * 1024 * 1024,
    /** A string that is longer as JSON is cut to its beginning. */
    wholeTextBytes: 64 * 1024,
    shownTextBytes: 8 * 1024,
    /** One entry in a page, as JSON. */
    maxPageEntryBytes: 256 * 1024,
    /** Values of an entry that are looked at: near its root, and below these. */
    maxEntryValues: 20_000,
    /** Children of branch points in one page. */
    maxBranchChildren: 1_000,
    /** Known places of entries in memory: of one file, and of all files. */
    maxFilePlacesBytes: 16 * 1024 * 1024,
    maxPlacesBytes: 64 * 1024 * 1024,
    /** Calls that read a file, one after the other: of all tokens, and of one named token. */
    maxReads: 256,
    maxReadsPerToken: 32,
  },
  search: {
    /** What one call of a search reads, and how long. It then answers with what it has. */
    maxSearchBytes: 128 * 1024 * 1024,
    maxSearchMs: 2_000,
    /** A thread that takes longer is ended: its disk does not answer. */
    maxSearchThreadMs: 30_000,
    /** The heap of one thread, which parses an entry at a time. */
    maxSearchThreadMiB: 1_536,
    /** Searches at a time, and with those that wait: of all tokens, and of one named token. */
    maxSearchThreads: 2,
    maxSearches: 64,
    maxSearchesPerToken: 8,
    /** Sessions and entries in one answer that were not searched. */
    maxUnsearched: 100,
  },
  /** The messages of a snapshot, as JSON. */
  maxSnapshotBytes: 16 * 1024 * 1024,
  /** A request's message list or payload, as JSON, that subscribers receive; larger ones are omitted. */
  maxProviderBodyBytes: 4 * 1024 * 1024,
  /** How long settled deliveries and lost prompts are stored: 30 days. */
  keepSettledDeliveriesMs: 30 * 24 * 60 * 60 * 1_000,
  keepLostPromptsMs: 30 * 24 * 60 * 60 * 1_000,
  /** How often expired rows of the store are deleted: at each start, and every hour. */
  sweepStoreEveryMs: 60 * 60 * 1_000,
  /** Free pages of 4 KiB that are returned to the file system each time. */
  maxShrinkPages: 2_560,
  /** Settled deliveries in the store, and their bytes as JSON. Checked each time a sixteenth was added. */
  settled: { maxSettled: 100_000, maxSettledBytes: 128 * 1024 * 1024 },
  /** How long a client may be without a connection before its control of sessions ends. */
  controlGraceMs: 10_000,
  /** Subscriptions of connections to sessions: of all tokens, and of one named token. */
  subscriptions: { maxSubscriptions: 32_768, maxSubscriptionsPerToken: 8_192 },
  /** Client ids: of one token, connected or not; and disconnected ones of all tokens. */
  clients: { maxClientsPerToken: 2_048, maxGoneClients: 10_000 },
  /** Open prompts of one session that pi has received, and the characters of their texts. */
  prompts: { maxOpen: 256, maxOpenChars: 64 * 1024 * 1024 },
  /**
   * Prompts whose outcome is known and that are not lost: how long they can be queried, and their number over all
   * sessions.
   */
  keepSettledPromptsMs: 24 * 60 * 60 * 1_000,
  maxSettledPrompts: 10_000,
  delivery: {
    /** One push as JSON. */
    maxPushBytes: 8 * 1024 * 1024,
    /** Open pushes of one session, and their bytes. */
    maxOpenPerSession: 1_000,
    maxOpenBytesPerSession: 64 * 1024 * 1024,
    /** Settled deliveries held in memory; others are read from the store. */
    maxSettledInMemory: 1_000,
    maxSettledBytesInMemory: 16 * 1024 * 1024,
  },
  dialogs: {
    /** Open dialogs: of one session, and of all sessions. */
    maxDialogsPerSession: 64,
    maxDialogs: 1_000,
    /** One dialog as JSON, and all open dialogs. */
    maxDialogBytes: 1024 * 1024,
    maxDialogsBytes: 32 * 1024 * 1024,
    /** Options of a `select`. */
    maxDialogOptions: 1_000,
    maxAnswerBytes: 1024 * 1024,
    /** One page of `dialog/list`, in addition to its first dialog. */
    maxDialogPageBytes: 4 * 1024 * 1024,
    /** Ended dialogs, in the store and in memory. */
    maxEndedDialogs: 10_000,
    maxEndedDialogsInMemory: 1_000,
    /** How long before pi's own timeout a dialog ends. */
    beforePiTimeoutMs: 500,
    /** The longest life of a dialog if the session's policy does not limit it: a day. */
    maxDialogMs: 24 * 60 * 60 * 1_000,
    /** How long a dialog stays open after its last responder has gone. */
    maxAwayMs: 30_000,
    /** How long only its owner may answer a dialog, if the owner can answer. */
    dialogDelayMs: 5_000,
    /** How long pi waits for its answer while extensions are told that no client can answer. */
    announceMs: 1_000,
  },
  store: {
    /** Writes that wait for the disk, and their bytes. Updates of existing rows do not count towards the bytes. */
    maxQueued: 100_000,
    maxQueuedBytes: 32 * 1024 * 1024,
    /**
     * Updates that a failing store has not written yet, and their bytes. New work is refused from half of this on.
     */
    maxUnwritten: 100_000,
    maxUnwrittenBytes: 256 * 1024 * 1024,
  },
  storeCopies: {
    /** How long after a start the store is copied, and a failed copy is repeated. */
    copyAfterMs: 60_000,
    copyEveryMs: 60 * 60 * 1_000,
    /** The log of changes since the last copy: the store is copied, and beyond the second limit nothing is logged. */
    copyAtLogBytes: 64 * 1024 * 1024,
    maxChangeLogBytes: 256 * 1024 * 1024,
  },
  /** How late the daemon's event loop may be before it reports that it is not ready. */
  maxLoopDelayMs: 1_000,
  /**
   * Within one window. Calls of one token: calls that may start a pi, calls that give a model work, and pushes. And
   * starts of one session's pi, by all tokens.
   */
  rates: { windowMs: 10_000, maxStarts: 200, maxPrompts: 1_000, maxPushes: 200_000, maxWakes: 100 },
  /** The daemon's log; one older file of this size is kept. */
  maxLogBytes: 16 * 1024 * 1024,
  /** The same for the log of changing calls. */
  maxCallLogBytes: 128 * 1024 * 1024,
  /** The newest lines of the daemon's log in memory. A longer line is shortened. */
  recentLog: {
    maxRecentLines: 5_000,
    maxRecentBytes: 1024 * 1024,
    /** Reports of parts inside pi among them, in addition. */
    maxReportLines: 1_000,
    maxReportBytes: 256 * 1024,
    maxLogLineBytes: 8 * 1024,
    /** The lines of one answer, in addition to its first. */
    maxLogAnswerBytes: 256 * 1024,
  },
  child: {
    /** A longer record of pi is skipped and reported. */
    maxRecordBytes: 64 * 1024 * 1024,
    /** Bytes that may wait for a pi that does not read. */
    maxStdinBacklogBytes: 64 * 1024 * 1024,
    /** The end of pi's stderr. */
    maxStderrBytes: 8 * 1024,
    /** pi answers only after its extensions' start hooks have ended. */
    startTimeoutMs: 120_000,
    /** Time that dialogs with their own timeout may add to it, in total. */
    maxStartupDialogMs: 300_000,
    /** From a dialog without a timeout to the first answer: some extensions do not wait for the answer. */
    startupDialogGraceMs: 1_000,
    /** From the end of stdin to SIGTERM, and from SIGTERM to SIGKILL: 15 s in total. */
    afterEofMs: 10_000,
    afterTermMs: 5_000,
  },

  /** The module inside pi that keeps its output while there is no daemon. */
  keeper: {
    /** Output that no daemon has acknowledged; pi waits when there is more. */
    maxHeldBytes: 8 * 1024 * 1024,
    /** A longer line to pi ends the connection. */
    maxLineBytes: 64 * 1024 * 1024,
    /** From the start of a pi to the first connection of its daemon. */
    firstConnectionMs: 120_000,
    /** How often it looks whether it should end a pi that has no daemon. */
    lookEveryMs: 1_000,
    /** From the end of its stdin to SIGTERM, and from there to the exit, of a pi without a daemon. */
    endStepMs: 10_000,
    /** From the start of a pi until the module listens. */
    listenWithinMs: 10_000,
  },
} as const;

/** `--state-dir`, else `PI_RPCD_STATE_DIR`, else `$XDG_STATE_HOME/pi-rpcd`, else `~/.local/state/pi-rpcd`. */
export function stateDirectory(option: string | undefined, env: NodeJS.ProcessEnv): string {
  const chosen = option ?? nonEmpty(env["PI_RPCD_STATE_DIR"]);
  if (chosen !== undefined) return resolve(chosen);
  const stateHome = nonEmpty(env["XDG_STATE_HOME"]);
  // The XDG specification says to ignore a relative path.
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

/** With the configured values. */
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
