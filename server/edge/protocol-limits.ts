import type { MethodRow, RateClass } from "../../protocol/method-row.ts";
import { methods } from "../../protocol/methods.ts";
import { limits as daemonLimits } from "../configuration/limits.ts";
import { type DispatcherLimits, defaultDispatcherLimits } from "../rpc/dispatcher.ts";
import { defaultEdgeLimits, type EdgeLimits } from "./limits.ts";

// Describes the bounds that a client can reach. A bound without a description does not compile.

export interface Limit {
  readonly name: string;
  readonly value: string;
  /** What it bounds, and what happens at the bound. */
  readonly meaning: string;
}

const edge: Readonly<Record<keyof EdgeLimits, string>> = {
  maxFrameBytes: "A WebSocket message to the daemon. A larger one closes the connection with 1009.",
  maxBodyBytes: "An HTTP body. A larger one is answered with 413.",
  maxDiscardedBytes:
    "Bytes that a peer may send after its request was refused: they are discarded, so that the peer can read the refusal. Above it, or when nothing arrives for `closeTimeoutMs`, the socket is closed.",
  maxHeaderBytes: "The head of an HTTP request. A larger one is answered with 431.",
  maxSockets: "Sockets of each transport. Further ones are closed when they are accepted.",
  maxSocketsWithoutToken:
    "Sockets of a TCP port without a token. A further one replaces the oldest, so they cannot keep out clients that have a token.",
  maxSocketsWithoutTokenPerAddress: "The same from one address with TLS.",
  tokenTimeoutMs: "The time until such a socket must send a token. Then 408, or the socket is closed.",
  maxConnections: "WebSocket connections. Further upgrades are answered with 503.",
  maxEventStreams: "Streams of server-sent events. Further ones are answered with 503.",
  maxConnectionsPerToken: "WebSocket connections of one named token. Further upgrades are answered with 503.",
  maxEventStreamsPerToken: "Streams of server-sent events of one named token. Further ones are answered with 503.",
  maxSocketsPerAddress: "Sockets from one address with TLS. Further ones are closed when they are accepted.",
  maxHttpRequests: "HTTP requests of all sockets that wait for their answer. Further ones are answered with 503.",
  maxHttpBytes:
    "The bodies of these requests; one in chunks counts as `maxBodyBytes` until it is complete. Further ones are answered with 503.",
  maxHttpRequestsPerToken: "HTTP requests of one named token that wait for their answer. As above.",
  maxHttpBytesPerToken: "The bodies of these requests. As above.",
  maxUnreadHttpBytes:
    "Unread bytes of HTTP answers on all sockets. A further answer over 16 KiB becomes 503; one alone may be longer.",
  maxUnreadHttpBytesPerToken: "The same of one named token.",
  maxInboundBytes:
    "Received bytes that all WebSockets hold: incomplete messages, and unanswered ones of more than 64 KiB. A connection that sends more is closed with 1013.",
  maxInboundBytesPerToken: "The same of one named token.",
  messageTimeoutMs:
    "The time from the first byte of a WebSocket message to its last, checked with each ping. Then the connection is closed with 1013.",
  namedTokensPercent:
    "The part that all named tokens together may use of `maxConnections`, `maxEventStreams`, `maxHttpRequests`, `maxHttpBytes`, `maxUnreadHttpBytes`, `maxInboundBytes`, `maxCallBytes`, `maxBatchBytes` and `maxSubscriptions`, in percent. The rest is for the main token. `GET /healthz` needs none of it.",
  maxRequestsPerSocket: "HTTP requests of one socket that wait for their answer. Further ones are answered with 503.",
  socketWindowBytes:
    "Bytes handed to a connection's socket at a time; the rest waits in the daemon. A longer message is sent in fragments.",
  mergeDeltasAboveBytes:
    "Bytes that wait for one connection, without those in its socket. Above it, consecutive deltas of a content block are merged.",
  dropDeltasAboveBytes: "The same. Above it, deltas are replaced by gaps with the reason `slow_reader`.",
  maxBufferedBytes: "The same, without the last frame. Above it, the connection is closed with 1013.",
  maxBufferedBytesAllConnections:
    "Bytes that wait for all connections. As it fills, deltas are merged and replaced by gaps earlier. Above it, the connection with most waiting bytes is closed with 1013.",
  slowReaderDeadlineMs:
    "The time for a connection to read `socketWindowBytes` while more waits. Then it is closed with 1013.",
  headersTimeoutMs: "The time for the head of a request. Then 408.",
  requestTimeoutMs: "The time for a whole request. Then 408. Also how long an HTTP answer may stay unread.",
  keepAliveTimeoutMs: "How long an HTTP socket may be idle between two requests. Then it is closed.",
  eventRetryMs: "How long a client waits before it reopens a stream of events: its `retry:`.",
  pingIntervalMs:
    "How often each connection gets a ping, and each silent stream of events a comment. A connection that sent no byte since the last ping is closed.",
  maxRefusedTokensPerMinute:
    "Refused tokens per minute that are answered with 401. Above it, the socket is closed. A correct token is always admitted.",
  closeTimeoutMs: "The time for a peer to answer a close. Then its socket is destroyed.",
};

const dispatcher: Readonly<Record<keyof DispatcherLimits, string>> = {
  maxNestingDepth: "The depth of nested brackets in one text. A deeper text is answered with `invalid_request`.",
  maxJsonParts:
    "Commas, colons and opening brackets of one text, outside its strings. More are answered with `invalid_request`.",
  maxObjectKeys: "Keys of one object. More are answered with `invalid_request`.",
  maxBatchLength: "Requests in one batch. A longer batch is answered with one `invalid_request`.",
  maxBatchAnswerBytes:
    "The answers to one batch together, without those of at most 16 KiB; one alone may be longer. Further ones are `too_large`; a call that only reads is not made if earlier answers show that its answer would not fit.",
  maxBatchBytes:
    "The answers of all incomplete batches. A further one over 16 KiB becomes `overloaded`, or `too_large` if its call has changed something.",
  maxBatchBytesPerToken: "The same of one named token.",
  maxCallsInFlight: "Calls of one connection that wait for their answer. Further ones are answered with `overloaded`.",
  maxBytesInFlight:
    "The texts of these calls together. Further ones are answered with `overloaded`; one alone may be longer.",
  maxCallBytes:
    "The memory of all waiting calls of connections and HTTP requests: 8 KiB each, and their texts. Further ones are answered with `overloaded`.",
  maxCallBytesPerToken: "The same of one named token.",
};

const daemon: Readonly<
  Record<
    Exclude<
      keyof typeof daemonLimits,
      | "calls"
      | "child"
      | "context"
      | "delivery"
      | "dialogs"
      | "feed"
      | "keeper"
      | "log"
      | "settled"
      | "spill"
      | "storeCopies"
      | "storedEvents"
      | "transcript"
      | "prompts"
      | "recentLog"
      | "warm"
      | "occupancy"
      | "responsiveness"
      | "rates"
      | "search"
      | "clients"
      | "subscriptions"
      | "store"
      | "web"
    >,
    string
  >
> = {
  maxSessions: "Sessions that are not closed. `session/create` is then answered with `overloaded`.",
  maxSessionFileBytes: "A session file; pi cannot load a longer one: `session_file_unusable` (`too_large`).",
  lookAtStateDirectoryEveryMs:
    "How often a daemon checks that its state directory is still the one that it locked. If it was removed, moved or replaced, the daemon ends in order; until then nothing is stored (`store_failed`).",
  maxTokens: "Named tokens. Further ones are `overloaded`.",
  maxWaitingCalls: "Prompts, steers and pushes that wait for their turn at one session. Further ones are `overloaded`.",
  maxParallelStarts: "How many pi processes start at a time. Further ones wait for their turn.",
  startPlaceMs: "A start that takes longer continues, but its turn goes to the next.",
  idleAfterMs:
    "How long a session's pi may be idle before it is ended. `PI_RPCD_IDLE_AFTER_MS` sets it for all sessions without an own value; 0: never.",
  orphanIdleMs:
    "With `liveRestore`: how long an idle pi waits for the next daemon after its daemon has died. Then it ends by itself.",
  orphanRunMs: "The same of a pi at work.",
  drainMs: "How long runs may continue when the daemon is told to end. Then they are interrupted.",
  maxRetainedEventBytes:
    "A session's notifications in memory for replay. The oldest are removed first, and the high-rate ones with them.",
  keepEventsMs: "How long the other notifications are kept in the store for replay: 30 days.",
  maxRefillBytes: "Bytes read from the end of pi's session file to fill the log with missing entries, as `rpcd_entry`.",
  maxSnapshotBytes: "The messages of a snapshot. The oldest are omitted, and `omitted` counts them.",
  maxProviderBodyBytes:
    "A request's message list or payload in `provider/requestPrepared`. A larger one is omitted, and `truncated` says so.",
  maxCachedAnswersBytes:
    "The last answers of pi in memory, of all sessions. Above it, those of the least recently used sessions are read from the store.",
  maxCachedAnswerBytes: "One answer of pi that is kept for calls about the session while it has no pi.",
  maxAnsweringFileBytes:
    "A session file that answers calls about a session without a pi. With a longer one they are `session_asleep`.",
  leftSessionMs:
    "How long the last subscriber of a session with `whenLeft: close` may be away after a lost connection before a session without a message is closed.",
  keepModelsMs:
    "How long `model/list` returns pi's last answer. A change of pi's settings, models or logins ends this time.",
  keepSettledDeliveriesMs: "How long a delivery can be read after it was settled: 30 days.",
  keepLostPromptsMs: "How long a lost prompt stays in `session/get`, at most: 30 days.",
  keepSettledPromptsMs: "How long a settled prompt that is not lost can be read: a day.",
  maxSettledPrompts: "Settled prompts of all sessions. Above it, the oldest are removed: `prompt_not_found`.",
  controlGraceMs: "How long a session's controller may be without a connection. Then its lease ends.",
  sweepStoreEveryMs: "How often the daemon removes expired records, in addition to its start.",
  maxShrinkPages: "Pages of 4 KiB that the store gives back to the file system each time.",
  maxLoopDelayMs: "How late the daemon's event loop may be. Above it, `daemon/ready` is `not_ready`.",
  maxLogBytes:
    "The daemon's log file. One older file of this size is kept. If no new file can be created, the file grows to twice this size; further lines are lost, and counted in `daemon/ready`.",
  maxCallLogBytes: "The log of the calls that have changed something. As above.",
};

const prompts: Readonly<Record<keyof typeof daemonLimits.prompts, string>> = {
  maxOpen: "Unsettled prompts of one session. Further ones are answered with `overloaded`.",
  maxOpenChars: "The characters of their texts together. As above; one alone may be longer.",
};

const delivery: Readonly<Record<keyof typeof daemonLimits.delivery, string>> = {
  maxPushBytes: "One push as JSON. A larger one is answered with `too_large`.",
  maxOpenPerSession: "Unsettled pushes of one session. Further ones are answered with `overloaded`.",
  maxOpenBytesPerSession: "Their bytes together. Further ones are answered with `overloaded`.",
  maxSettledInMemory: "Settled deliveries in memory. Others are read from the store; nothing is lost.",
  maxSettledBytesInMemory: "Their bytes together. As above.",
};

const subscriptions: Readonly<Record<keyof typeof daemonLimits.subscriptions, string>> = {
  maxSubscriptions: "Subscriptions of all connections to sessions. A further one is `overloaded`.",
  maxSubscriptionsPerToken: "The same of one named token.",
};

const web: Readonly<Record<keyof typeof daemonLimits.web, string>> = {
  webCodeMs: "How long a code for the web console is valid. It is used once.",
  webPrintedCodeMs: "The same of a code with `print`.",
  maxWebCodes: "Unused codes. A further `web/open` is `overloaded`.",
  maxWebTokens:
    "Tokens of browsers. Above it, the one without a connection that was used least recently ends; if all are connected, signing in is `overloaded`.",
  webTokenIdleMs: "How long such a token is valid after its last connection: 12 hours.",
  maxWebFilesBytes: "The files of the web console. With larger ones `web/open` is `web_not_built`.",
  maxExchangeBytes: "A browser's request with a code. A larger one is answered with 413.",
};

const clients: Readonly<Record<keyof typeof daemonLimits.clients, string>> = {
  maxClientsPerToken:
    "Ids of one token's clients. Those that disconnected longest ago are removed first; if all are connected, a further one is `overloaded`.",
  maxGoneClients:
    "Ids of disconnected clients, of all tokens. Above it, the token with most of them loses its oldest. A removed id belongs to no token.",
};

const calls: Readonly<Record<keyof typeof daemonLimits.calls, string>> = {
  maxUnansweredCommands: "Commands to one session's pi that it has not answered. Further ones are `overloaded`.",
  maxWaitingBash: "Shell commands of one session that wait for the running one. Further ones are `overloaded`.",
  maxExportBytes: "The page that `session/export` returns. A larger one is `too_large`.",
};

const settled: Readonly<Record<keyof typeof daemonLimits.settled, string>> = {
  maxSettled: "Settled deliveries in the store. Above it, the oldest are removed: `delivery_not_found`.",
  maxSettledBytes: "Their bytes together, as JSON. As above.",
};

const log: Readonly<Record<keyof typeof daemonLimits.log, string>> = {
  maxRetainedBytesInAll: "The same of all sessions. The session with most loses its oldest first.",
  storeAfterMs: "How long a notification waits to be stored. A killed daemon loses these: `daemon_restart`.",
  maxUnstoredBytes: "Unstored bytes of one session that are written at once, without waiting.",
  maxStoredEventBytes: "A larger event is kept only in memory; later it is a gap.",
  maxTailBytes:
    "Sent notifications that are not stored yet, on disk for the start after a daemon was killed. Above it, while the store fails, they become a gap: `daemon_restart`.",
};

const store: Readonly<Record<keyof typeof daemonLimits.store, string>> = {
  maxQueued: "Writes that wait for the disk. Further ones are `overloaded`; of a repeated change the newest is kept.",
  maxQueuedBytes: "Their bytes together. Above it, new work is `overloaded`; changes of existing records are not.",
  maxUnwritten:
    "Changes that a failing store could not write, the newest of each. From half of it new work is `overloaded`; above it, a further change is not retried.",
  maxUnwrittenBytes: "Their bytes together. As above.",
};

const storeCopies: Readonly<Record<keyof typeof daemonLimits.storeCopies, string>> = {
  copyAfterMs: "How long after its start the daemon copies the store, and when it repeats a failed copy.",
  copyEveryMs: "How often a changed store is copied. A damaged one is rebuilt from its copy and its log.",
  copyAtLogBytes: "The log of changes since the last copy. Above it, the store is copied.",
  maxChangeLogBytes: "Above it, because copies fail, changes are not logged: `copyFailure` in `daemon/info`.",
};

const storedEvents: Readonly<Record<keyof typeof daemonLimits.storedEvents, string>> = {
  maxSessionBytes: "A session's notifications in the store, compressed. Above it, the oldest are a gap.",
  maxTotalBytes: "The same of all sessions.",
};

const feed: Readonly<Record<keyof typeof daemonLimits.feed, string>> = {
  maxFeedEvents: "Events of the feed of all sessions in the store. Above it, the oldest are a gap.",
  maxFeedBytes: "Their bytes together. As above.",
};

const recentLog: Readonly<Record<keyof typeof daemonLimits.recentLog, string>> = {
  maxRecentLines: "Lines of the daemon's log in memory, for `daemon/log`. Above it, the oldest are no longer there.",
  maxRecentBytes: "Their bytes together. As above.",
  maxReportLines: "Lines with reports of parts inside pi, in addition to the other lines. As above.",
  maxReportBytes: "Their bytes together. As above.",
  maxLogLineBytes: "One line. A longer one is shortened, and says so.",
  maxLogAnswerBytes: "The lines of one `daemon/log`. Further ones are left to the next call.",
};

const transcript: Readonly<Record<keyof typeof daemonLimits.transcript, string>> = {
  maxFileReadBytes:
    "Bytes of a session's file that one `transcript/page`, `transcript/outline` or `transcript/entry` reads.",
  maxEntryLineBytes: "An entry in the file. A page has only the type and the ids of a longer one.",
  wholeTextBytes: "A string of an entry, as JSON. A page has only the beginning of a longer one.",
  shownTextBytes: "That beginning.",
  maxPageEntryBytes: "One entry in a page, as JSON. More of a longer one is cut.",
  maxEntryValues:
    "Values of an entry that are looked at: near its root, and as many below these. Of an entry with more, a page has these, and `transcript/entry` only these and the whole.",
  maxBranchChildren: "Children in the `branchPoints` of one page. Further ones are left out.",
  maxFilePlacesBytes:
    "What the daemon remembers of the places of entries in one file. Earlier pages of a file with more have no `branchPoints`.",
  maxPlacesBytes: "The same of all files. Above it, the file that was read longest ago is read again.",
  maxReads: "Calls that read a session's file or wait for their turn. Further ones are `overloaded`.",
  maxReadsPerToken: "The same of one named token.",
};

const search: Readonly<Record<keyof typeof daemonLimits.search, string>> = {
  maxSearchBytes: "Bytes of files that one `transcript/search` reads. It then answers with `before`.",
  maxSearchMs: "How long it reads. As above.",
  maxSearchThreadMs: "A search that takes longer, because its disk does not answer, is `overloaded`.",
  maxSearchThreadMiB: "The heap of the thread of one search.",
  maxSearchThreads: "Searches at a time. Further ones wait for their turn.",
  maxSearches: "Searches that run or wait. Further ones are `overloaded`.",
  maxSearchesPerToken: "The same of one named token.",
  maxUnsearched: "Entries in `unsearched` of one answer. It then has `before`.",
};

const dialogs: Readonly<Record<keyof typeof daemonLimits.dialogs, string>> = {
  maxDialogsPerSession: "Dialogs of one session that are open. Further ones are cancelled: `too_many`.",
  maxDialogs: "Open dialogs of all sessions. As above.",
  maxDialogBytes: "The texts of one dialog, as JSON. A larger one is cancelled: `too_large`.",
  maxDialogsBytes: "The texts of all open dialogs. Further dialogs are cancelled: `too_many`.",
  maxDialogOptions: "Options of one `select`. One with more is cancelled: `too_large`.",
  maxAnswerBytes: "An answer's text. A longer one is `invalid_params`, and the dialog stays open.",
  maxDialogPageBytes: "One answer to `dialog/list`, without its first dialog. The others are on the next page.",
  maxEndedDialogs: "Ended dialogs in the store. The oldest are removed: `dialog_not_found` instead of `stale`.",
  maxEndedDialogsInMemory: "Ended dialogs in memory. Others are read from the store; nothing is lost.",
  beforePiTimeoutMs: "A dialog ends this long before pi's own timeout, because a later answer would have no effect.",
  maxDialogMs: "How long a dialog is open, unless the session's `dialogPolicy` or pi's timeout says otherwise.",
  dialogDelayMs:
    "How long only its owner may answer a dialog. A setting; at most a third of the time until `deadline`.",
  announceMs: "How long pi's answer waits until extensions know that no client can answer.",
  maxAwayMs: "Under the policy `cancel`: how long the last client that can answer may be away from an open dialog.",
};

const warm: Readonly<Record<keyof typeof daemonLimits.warm, string>> = {
  perKind:
    "Children that are ready for sessions of the same directory and options. `PI_RPCD_WARM_CHILDREN` sets it; 0 turns it off.",
  maxWarm: "Such children of all kinds together. Further ones are not kept.",
  recentMs: "A kind is kept warm when it was used twice within this time, until it is unused for this time.",
  minFreeBytes: "With less free memory, no further child is kept warm.",
};

const occupancy: Readonly<Record<keyof typeof daemonLimits.occupancy, string>> = {
  maxChildren:
    "Running pi processes. Idle ones hibernate for others; if all are needed, a start waits. `PI_RPCD_MAX_CHILDREN` sets it.",
  maxMemoryPercent:
    "Their unshared memory, in percent of the machine's. Above it, idle ones hibernate. `PI_RPCD_MAX_CHILDREN_MIB` sets a number instead.",
  placeTimeoutMs: "How long a start waits for one of these places. Then it fails with `overloaded`.",
  endPatienceMs: "How long a start waits for an idle process to end, before the next idle one hibernates too.",
  lookEveryMs: "How often the daemon looks for sessions that have been idle for too long.",
  weighEveryMs: "How often it measures the memory of their processes.",
};

const responsiveness: Readonly<Record<keyof typeof daemonLimits.responsiveness, string>> = {
  probeAfterMs: "After a call has waited this long, the daemon probes whether pi responds.",
  quietRunMs: "The same after a run without reports of pi.",
  unresponsiveAfterMs: "A pi that does not answer the probe in this time is `unresponsive` in `session/get`.",
};

const rates: Readonly<Record<keyof typeof daemonLimits.rates, string>> = {
  windowMs: "The time window of the following limits, each for one token:",
  maxStarts: `${methodsOf("starts")}, \`model/list\` with \`refresh\`, and every call that starts the pi of a session without one: commands to pi, prompts, and \`awake\` of a subscription. Further ones are \`overloaded\`, and \`retryAfterMs\` says when to retry.`,
  maxPrompts: `${methodsOf("prompts")}. As above.`,
  maxPushes: `${methodsOf("pushes")}. As above.`,
  maxWakes:
    "How often one session's pi may be started in that time, by any calls. A further call that needs a pi is `overloaded`, with `retryAfterMs`; pushes wait.",
};

const child: Readonly<Record<keyof typeof daemonLimits.child, string>> = {
  maxRecordBytes: "One record of pi. A longer one is skipped and reported by an `rpcd_diagnostic` event.",
  maxStdinBacklogBytes: "Bytes that wait for a pi that does not read. Above it, the call fails with `overloaded`.",
  maxStderrBytes: "The end of pi's stderr, in `exit.stderrTail`.",
  startTimeoutMs:
    "From starting pi until it is ready. Then `start_failed`. A pi that gets another session has the same time to confirm it; then it is ended.",
  maxStartupDialogMs: "The time that dialogs with an own timeout, opened while pi starts, may add to that in all.",
  startupDialogGraceMs:
    "From a dialog without a timeout, opened while pi starts, to pi's first answer. Then `startup_dialog`.",
  afterEofMs: "After the end of its stdin, pi has this long to end. Then SIGTERM.",
  afterTermMs: "After SIGTERM, its process group has this long to end. Then SIGKILL.",
};

const context: Readonly<Record<keyof typeof daemonLimits.context, string>> = {
  ackTimeoutMs:
    "How long a helper may take to confirm the context of an ephemeral session (`context.ackTimeoutMs`). Then `context_transport_failed`.",
  maxOwnBytes: "Larger documents of contexts are processed in a thread of their own.",
  maxThreads: "The number of such threads. Further documents wait.",
  maxWaiting: "Documents that wait or are being processed. Further ones are `overloaded`.",
  maxHeldBytes:
    "Documents and session files that the daemon holds for contexts at a time, with their results until these are on the disk. Larger ones are held alone. Others wait before they are read, `maxWaiting` of them and for `workTimeoutMs`. Then `overloaded`.",
  workTimeoutMs: "The processing time of one document. Then `context_too_large`.",
  maxThreadMiB: "MiB of memory of one such thread. Above it: `context_too_large`.",
  maxInlineBytes:
    "The items of `context/inspect`, and the document of `context/export`, in an answer. Above it: `too_large`.",
  keepExportsMs: "How long the file of `context/export` is kept.",
  maxExports: "How many such files are kept; the oldest are removed first.",
  maxKnownTargets: "For how many sets of options the daemon remembers which model pi uses.",
};

export const protocolLimits: readonly Limit[] = [
  ...described(defaultEdgeLimits, edge),
  ...described(defaultDispatcherLimits, dispatcher),
  ...described(daemonLimits, daemon),
  ...described(daemonLimits.calls, calls),
  ...described(daemonLimits.context, context),
  ...described(daemonLimits.prompts, prompts),
  ...described(daemonLimits.subscriptions, subscriptions),
  ...described(daemonLimits.clients, clients),
  ...described(daemonLimits.web, web),
  ...described(daemonLimits.log, log),
  ...described(daemonLimits.store, store),
  ...described(daemonLimits.storeCopies, storeCopies),
  ...described(daemonLimits.storedEvents, storedEvents),
  ...described(daemonLimits.feed, feed),
  ...described(daemonLimits.recentLog, recentLog),
  ...described(daemonLimits.transcript, transcript),
  ...described(daemonLimits.search, search),
  ...described(daemonLimits.settled, settled),
  ...described(daemonLimits.delivery, delivery),
  ...described(daemonLimits.dialogs, dialogs),
  ...described(daemonLimits.warm, warm),
  ...described(daemonLimits.occupancy, occupancy),
  ...described(daemonLimits.responsiveness, responsiveness),
  ...described(daemonLimits.rates, rates),
  ...described(daemonLimits.child, child),
];

function described<T extends object>(values: T, meanings: Readonly<Partial<Record<keyof T, string>>>): Limit[] {
  return Object.entries(meanings).map(([name, meaning]) => {
    const value: unknown = values[name as keyof T];
    // This limit depends on the machine, so its rule is shown.
    if (name === "maxParallelStarts") return { name, value: "one for each processor", meaning: String(meaning) };
    return { name, value: quantity(name, Number(value)), meaning: String(meaning) };
  });
}

/** Returns a number with the unit in its name. */
export function quantity(name: string, value: number): string {
  if (name.includes("Bytes")) return bytes(value);
  if (name.endsWith("Ms")) return value % 1_000 === 0 ? `${value / 1_000} s` : `${value} ms`;
  return String(value);
}

function bytes(value: number): string {
  const mebi = 1024 * 1024;
  return value % mebi === 0 ? `${value / mebi} MiB` : `${value / 1024} KiB`;
}

function methodsOf(rate: RateClass): string {
  const counted = Object.entries<MethodRow>(methods).filter(([, row]) => row.rate === rate);
  return counted.map(([name]) => `\`${name}\``).join(", ");
}
