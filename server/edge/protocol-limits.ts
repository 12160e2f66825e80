import { limits as daemonLimits } from "../configuration/limits.ts";
import { type DispatcherLimits, defaultDispatcherLimits } from "../rpc/dispatcher.ts";
import { defaultEdgeLimits, type EdgeLimits } from "./limits.ts";

// What a client meets of the daemon's bounds, in words. A bound without words does not compile.

export interface Limit {
  readonly name: string;
  readonly value: string;
  /** What it bounds, and what happens then. */
  readonly meaning: string;
}

const edge: Readonly<Record<keyof EdgeLimits, string>> = {
  maxFrameBytes: "A WebSocket message to the daemon. A larger one closes the connection with 1009.",
  maxBodyBytes: "An HTTP body. A larger one is answered with 413.",
  maxDiscardedBytes:
    "What a peer may still send after its request was refused: it is read and thrown away, so that the peer can read the refusal. Beyond, or when nothing comes for `closeTimeoutMs`, the socket is closed.",
  maxHeaderBytes: "The head of an HTTP request. A larger one is answered with 431.",
  maxSockets: "Sockets of each transport. Further ones are closed as they come.",
  maxSocketsWithoutToken:
    "Sockets of a TCP port that have not shown a token. A further one takes the place of the oldest, so they keep nobody out who has a token.",
  maxSocketsWithoutTokenPerAddress: "The same from one address with TLS.",
  tokenTimeoutMs: "Until such a socket has shown a token. Then 408, or the socket is closed.",
  maxConnections: "WebSocket connections. Further upgrades are answered with 503.",
  maxEventStreams: "Streams of server-sent events. Further ones are answered with 503.",
  maxConnectionsPerToken: "WebSocket connections of one named token. Further upgrades are answered with 503.",
  maxEventStreamsPerToken: "Streams of server-sent events of one named token. Further ones are answered with 503.",
  maxSocketsPerAddress: "Sockets from one address with TLS. Further ones are closed as they come.",
  maxHttpRequests: "HTTP requests of all sockets that wait for their answer. Further ones are answered with 503.",
  maxHttpBytes:
    "Their bodies together; one in chunks counts as `maxBodyBytes` until it has come. Further ones are answered with 503.",
  maxHttpRequestsPerToken: "HTTP requests of one named token that wait for their answer. As above.",
  maxHttpBytesPerToken: "Their bodies together. As above.",
  maxUnreadHttpBytes:
    "HTTP answers that were sent and are not read, over all sockets. A further one is answered with 503, if it is longer than 16 KiB; one alone may be longer.",
  maxUnreadHttpBytesPerToken: "The same of one named token.",
  maxInboundBytes:
    "What has come over all WebSockets and is kept: messages that are not whole, and those over 64 KiB that are not answered. The connection on which more comes is closed with 1013.",
  maxInboundBytesPerToken: "The same of one named token.",
  messageTimeoutMs:
    "From the first byte of a WebSocket message to its last, looked at with each ping. Then the connection is closed with 1013.",
  namedTokensPercent:
    "What all named tokens together may have of `maxConnections`, `maxEventStreams`, `maxHttpRequests`, `maxHttpBytes`, `maxUnreadHttpBytes`, `maxInboundBytes`, `maxCallBytes`, `maxBatchBytes` and `maxSubscriptions`, in percent. The rest is the main token's. `GET /healthz` needs none of it.",
  maxRequestsPerSocket: "HTTP requests of one socket that wait for their answer. Further ones are answered with 503.",
  socketWindowBytes:
    "What a connection's socket is given at a time; more waits in the daemon. A longer message comes in fragments.",
  mergeDeltasAboveBytes:
    "What waits for one connection beside what its socket has. Over it, consecutive deltas of a content block are merged.",
  dropDeltasAboveBytes: "The same. Over it, deltas are left out and told as gaps with the reason `slow_reader`.",
  maxBufferedBytes: "The same, beside the last frame. Over it, the connection is closed with 1013.",
  maxBufferedBytesAllConnections:
    "What waits for all connections. As it fills, deltas are merged and left out earlier. Over it, the connection for which most waits is closed with 1013.",
  slowReaderDeadlineMs:
    "How long a connection may take for `socketWindowBytes` while more waits. Then it is closed with 1013.",
  headersTimeoutMs: "Until the head of a request has come. Then 408.",
  requestTimeoutMs: "Until a whole request has come. Then 408. Also how long an HTTP answer may stay unread.",
  keepAliveTimeoutMs: "How long an HTTP socket may be idle between two requests. Then it is closed.",
  eventRetryMs: "How long a client waits before it asks for a stream of events again: its `retry:`.",
  pingIntervalMs:
    "How often each connection gets a ping, and each silent stream of events a comment. A connection from which no byte has come since the last ping is ended.",
  maxRefusedTokensPerMinute:
    "Refused tokens a minute that are answered with 401. Beyond, the socket is closed. A right token is let in all the same.",
  closeTimeoutMs: "How long a peer may take to answer a close. Then its socket is cut off.",
};

const dispatcher: Readonly<Record<keyof DispatcherLimits, string>> = {
  maxNestingDepth: "Brackets within brackets in one text. Deeper ones are answered with `invalid_request`.",
  maxJsonParts:
    "Commas, colons and opening brackets of one text, outside its strings. More are answered with `invalid_request`.",
  maxObjectKeys: "Keys of one object. More are answered with `invalid_request`.",
  maxBatchLength: "Requests in one batch. A longer batch is answered with one `invalid_request`.",
  maxBatchAnswerBytes:
    "The answers to one batch together, beside those of at most 16 KiB; one alone may be longer. Further ones are `too_large`; a call that only reads is then not made, where the answers before it show that there is no room.",
  maxBatchBytes:
    "The answers of all batches that are not complete yet. A further one over 16 KiB is answered with `overloaded`, or with `too_large` where its call has changed something.",
  maxBatchBytesPerToken: "The same of one named token.",
  maxCallsInFlight: "Calls of one connection that wait for their answer. Further ones are answered with `overloaded`.",
  maxBytesInFlight:
    "The texts of these calls together. Further ones are answered with `overloaded`; one alone may be longer.",
  maxCallBytes:
    "What the calls of all connections and HTTP requests take that wait for their answer: 8 KiB each, and their texts. Further ones are answered with `overloaded`.",
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
      | "log"
      | "settled"
      | "spill"
      | "storedEvents"
      | "prompts"
      | "warm"
      | "occupancy"
      | "responsiveness"
      | "rates"
      | "clients"
      | "subscriptions"
      | "store"
    >,
    string
  >
> = {
  maxSessions: "Sessions that are not closed. `session/create` is then answered with `overloaded`.",
  maxSessionFileBytes: "A session file; pi cannot load a longer one: `session_file_unusable` (`too_large`).",
  lookAtStateDirectoryEveryMs:
    "How often a daemon looks whether its state directory is still the one that it has locked. One that was removed, moved or replaced ends the daemon in order; until then nothing is stored (`store_failed`).",
  maxTokens: "Named tokens; beyond: `overloaded`.",
  maxWaitingCalls: "Prompts, steers and pushes that wait for their turn at one session. Further ones are `overloaded`.",
  maxParallelStarts: "How many pi start at a time. Further ones wait for their turn.",
  startPlaceMs: "A start that takes longer goes on, but gives its turn to the next.",
  idleAfterMs:
    "An idle session's pi is ended after so long. `PI_RPCD_IDLE_AFTER_MS` sets it for all sessions that do not say it themselves; 0: never.",
  drainMs: "How long runs may go on when the daemon is told to end. Then they are interrupted.",
  maxRetainedEventBytes:
    "A session's notifications that are kept in memory for replay. The oldest are forgotten first, and the high-rate ones with it.",
  keepEventsMs: "How long the other notifications are kept in the store for replay: 30 days.",
  maxRefillBytes: "What is read of the end of pi's session file for what the log lacks of it, as `rpcd_entry`.",
  maxSnapshotBytes: "The messages of a snapshot. The oldest are left out, and `omitted` counts them.",
  maxProviderBodyBytes:
    "A request's message list or payload in `provider/requestPrepared`. A larger one is left out, and `truncated` says so.",
  maxCachedAnswersBytes:
    "The last answers of the pi of all sessions that are in memory. Beyond, those of the sessions that were asked about longest ago are read from the store again.",
  maxCachedAnswerBytes: "One answer of a pi that is kept for questions about the session without it.",
  maxAnsweringFileBytes:
    "A session file from which questions about a session without a pi are answered. With a longer one they are `session_asleep`.",
  keepModelsMs:
    "How long `model/list` gives what pi has said before. Less where pi's settings, models or logins change.",
  keepSettledDeliveriesMs: "How long a delivery can be asked for after it was settled: 30 days.",
  keepLostPromptsMs: "How long a lost prompt stays in `session/get`, at most: 30 days.",
  keepSettledPromptsMs: "How long a prompt that is over and not lost can be asked for: a day.",
  maxSettledPrompts: "Prompts of all sessions that are over. Beyond, the oldest are forgotten: `prompt_not_found`.",
  controlGraceMs: "How long a session's controller may be without a connection. Then its lease ends.",
  sweepStoreEveryMs: "How often the daemon looks for what is to be forgotten, beside its start.",
  maxShrinkPages: "Pages of 4 KiB that the store gives back to the file system each time.",
  maxLoopDelayMs: "How late the daemon's event loop may be. Beyond, `daemon/ready` is `not_ready`.",
  maxLogBytes:
    "The daemon's log file. One older file of this size is kept beside it. Where no file can be begun, it grows to twice this; lines beyond are lost, and counted in `daemon/ready`.",
  maxCallLogBytes: "The file of the calls that have changed something. As above.",
};

const prompts: Readonly<Record<keyof typeof daemonLimits.prompts, string>> = {
  maxOpen: "Prompts of one session that are not over. Further ones are answered with `overloaded`.",
  maxOpenChars: "The characters of their texts together. As above; one alone may be longer.",
};

const delivery: Readonly<Record<keyof typeof daemonLimits.delivery, string>> = {
  maxPushBytes: "One push as JSON. A larger one is answered with `too_large`.",
  maxOpenPerSession: "Pushes of one session that are on their way. Further ones are answered with `overloaded`.",
  maxOpenBytesPerSession: "Their bytes together. Further ones are answered with `overloaded`.",
  maxSettledInMemory: "Settled deliveries in memory. Others are read from the store; nothing is lost.",
  maxSettledBytesInMemory: "Their bytes together. As above.",
};

const subscriptions: Readonly<Record<keyof typeof daemonLimits.subscriptions, string>> = {
  maxSubscriptions: "Subscriptions of all connections to sessions. A further one is `overloaded`.",
  maxSubscriptionsPerToken: "The same of one named token.",
};

const clients: Readonly<Record<keyof typeof daemonLimits.clients, string>> = {
  maxClientsPerToken:
    "Ids of one token's clients. Those that have gone longest are forgotten first; where all are connected, a further one is `overloaded`.",
  maxGoneClients:
    "Ids of clients that have gone, of all tokens. Beyond, the token that has most of them loses its oldest. An id that is forgotten is nobody's.",
};

const calls: Readonly<Record<keyof typeof daemonLimits.calls, string>> = {
  maxUnansweredCommands: "Commands to one session's pi that it has not answered. Further ones are `overloaded`.",
  maxWaitingBash: "Shell commands of one session that wait for the one that runs. Further ones are `overloaded`.",
  maxExportBytes: "The page that `session/export` gives. A larger one is `too_large`.",
};

const settled: Readonly<Record<keyof typeof daemonLimits.settled, string>> = {
  maxSettled: "Settled deliveries in the store. Beyond, the oldest are forgotten: `delivery_not_found`.",
  maxSettledBytes: "Their bytes together, as JSON. As above.",
};

const log: Readonly<Record<keyof typeof daemonLimits.log, string>> = {
  maxRetainedBytesInAll: "The same of all sessions. Whoever has most forgets first.",
  storeAfterMs: "How long a notification waits to be stored. A daemon that is killed loses these: `daemon_restart`.",
  maxUnstoredBytes: "So much of one session does not wait.",
  maxStoredEventBytes: "A larger event is kept in memory alone; later it is a gap.",
  maxTailBytes:
    "What was told and is not stored yet, on disk for a daemon that comes behind a killed one. Beyond, while the store fails, it would be a gap: `daemon_restart`.",
};

const store: Readonly<Record<keyof typeof daemonLimits.store, string>> = {
  maxQueued: "Writes that wait for the disk. Further ones are `overloaded`; of a change that waits the newest is kept.",
  maxQueuedBytes: "Their bytes together. New work is `overloaded` beyond; changes of what exists already are not.",
  maxUnwritten:
    "Changes that a store owes that cannot be written, the newest of each. From the half on new work is `overloaded`; beyond, a further change is not made again.",
  maxUnwrittenBytes: "Their bytes together. As above.",
};

const storedEvents: Readonly<Record<keyof typeof daemonLimits.storedEvents, string>> = {
  maxSessionBytes: "What the store keeps of a session's notifications, compressed. Beyond, the oldest are a gap.",
  maxTotalBytes: "The same of all sessions.",
};

const feed: Readonly<Record<keyof typeof daemonLimits.feed, string>> = {
  maxFeedEvents: "Events of the feed of all sessions that the store keeps. Beyond, the oldest are a gap.",
  maxFeedBytes: "Their bytes together. As above.",
};

const dialogs: Readonly<Record<keyof typeof daemonLimits.dialogs, string>> = {
  maxDialogsPerSession: "Dialogs of one session that are open. Further ones are cancelled: `too_many`.",
  maxDialogs: "Of all sessions. As above.",
  maxDialogBytes: "The texts of one dialog, as JSON. A larger one is cancelled: `too_large`.",
  maxDialogsBytes: "Those of all that are open. Further ones are cancelled: `too_many`.",
  maxDialogOptions: "Options of one `select`. One with more is cancelled: `too_large`.",
  maxAnswerBytes: "An answer's text. A longer one is `invalid_params`, and the dialog stays open.",
  maxDialogPageBytes: "One answer to `dialog/list`, beside its first dialog. The others are on the next page.",
  maxEndedDialogs: "Ended dialogs in the store. The oldest are forgotten: `dialog_not_found` instead of `stale`.",
  maxEndedDialogsInMemory: "Ended dialogs in memory. Others are read from the store; nothing is lost.",
  beforePiTimeoutMs: "A dialog ends so long before pi's own timeout: an answer behind that would reach nobody.",
  maxDialogMs: "How long a dialog is open, unless the session's `dialogPolicy` or pi's timeout says otherwise.",
  dialogDelayMs:
    "How long only its owner may answer a dialog. A setting; at most a third of the time until `deadline`.",
  announceMs: "How long pi waits for its answer until extensions have been told that no client can answer.",
  maxAwayMs: "Under the policy `cancel`: how long the last one who can answer may be away from an open dialog.",
};

const warm: Readonly<Record<keyof typeof daemonLimits.warm, string>> = {
  perKind:
    "Children that are ready for sessions of the same directory and options. `PI_RPCD_WARM_CHILDREN` sets it; 0 turns it off.",
  maxWarm: "Of all kinds together. Further ones are not kept.",
  recentMs:
    "A kind is kept warm when it was wanted twice within this time, and until nobody has wanted it for so long.",
  minFreeBytes: "With less memory free, nothing more is kept warm.",
};

const occupancy: Readonly<Record<keyof typeof daemonLimits.occupancy, string>> = {
  maxChildren:
    "Running pi processes. Idle ones hibernate for others; where all are needed, a start waits. `PI_RPCD_MAX_CHILDREN` sets it.",
  maxMemoryPercent:
    "The memory that they do not share, of the machine's. Over it, idle ones hibernate. `PI_RPCD_MAX_CHILDREN_MIB` sets a number instead.",
  placeTimeoutMs: "How long a start waits for one of these places. Then it fails with `overloaded`.",
  endPatienceMs: "An idle one whose end takes longer keeps no start waiting: the next idle one hibernates meanwhile.",
  lookEveryMs: "How often the daemon looks for sessions that have been idle for too long.",
  weighEveryMs: "How often it looks at the memory of their processes.",
};

const responsiveness: Readonly<Record<keyof typeof daemonLimits.responsiveness, string>> = {
  probeAfterMs: "A call that has waited for so long has pi asked whether it is there.",
  quietRunMs: "So does a run in which pi has reported nothing for so long.",
  unresponsiveAfterMs: "A pi that does not answer that for so long is `unresponsive` in `session/get`.",
};

const rates: Readonly<Record<keyof typeof daemonLimits.rates, string>> = {
  windowMs: "The time in which one token may make so many of the following calls:",
  maxStarts:
    "`session/create`, `session/open`, `session/fork`, `session/clone`, `session/reload`, `model/list` with `refresh`, and whatever starts the pi of a session that has none: what tells pi something, prompts, and `awake` of a subscription. Further ones are `overloaded`, and `retryAfterMs` says when there is room.",
  maxPrompts:
    "`session/prompt`, `session/steer`, `session/followUp`, `session/compact`, `pruning/compress`, `delivery/resend`. As above.",
  maxPushes: "`delivery/push`. As above.",
  maxWakes:
    "How often one session's pi may be started in that time, by whatever calls. A further call that needs a pi is `overloaded`, with `retryAfterMs`; pushes wait.",
};

const child: Readonly<Record<keyof typeof daemonLimits.child, string>> = {
  maxRecordBytes: "One record of pi. A longer one is skipped and reported by an `rpcd_diagnostic` event.",
  maxStdinBacklogBytes: "What waits for a pi that does not read. Over it, the call fails with `overloaded`.",
  maxStderrBytes: "The end of pi's stderr, in `exit.stderrTail`.",
  startTimeoutMs:
    "From starting pi until it is ready. Then `start_failed`. A pi into which another session was put has as long to say so; then it is ended.",
  maxStartupDialogMs: "What dialogs with a timeout of their own, asked while pi starts, may add to that in all.",
  startupDialogGraceMs:
    "From a dialog without a timeout, asked while pi starts, to pi's first answer. Then `startup_dialog`.",
  afterEofMs: "After the end of its stdin, pi has this long to end. Then SIGTERM.",
  afterTermMs: "After SIGTERM, its process group has this long to end. Then SIGKILL.",
};

const context: Readonly<Record<keyof typeof daemonLimits.context, string>> = {
  ackTimeoutMs:
    "How long a helper may take to confirm the context of an ephemeral session (`context.ackTimeoutMs`). Then `context_transport_failed`.",
  maxOwnBytes: "Larger documents of contexts are worked on by a thread of their own.",
  maxThreads: "How many such threads there are at a time. Further documents wait.",
  maxWaiting: "How many of them may wait or be under way. Further ones are `overloaded`.",
  maxHeldBytes:
    "Documents and session files that the daemon holds for contexts at a time, and what it makes of them until it is on the disk. Larger ones are held alone. Others wait before they are read, `maxWaiting` of them and for `workTimeoutMs`. Then `overloaded`.",
  workTimeoutMs: "How long one may be worked on. Then `context_too_large`.",
  maxThreadMiB: "MiB of memory of one such thread. Beyond: `context_too_large`.",
  maxInlineBytes:
    "The items of `context/inspect`, and the document of `context/export`, in an answer. Beyond: `too_large`.",
  keepExportsMs: "How long the file of `context/export` is kept.",
  maxExports: "How many such files are kept; the oldest go first.",
  maxKnownTargets: "For how many sets of options the daemon remembers which model pi takes.",
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
  ...described(daemonLimits.log, log),
  ...described(daemonLimits.store, store),
  ...described(daemonLimits.storedEvents, storedEvents),
  ...described(daemonLimits.feed, feed),
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
    // What depends on the machine is said as its rule.
    if (name === "maxParallelStarts") return { name, value: "one for each processor", meaning: String(meaning) };
    return { name, value: quantity(name, Number(value)), meaning: String(meaning) };
  });
}

/** A number with the unit that its name tells. */
export function quantity(name: string, value: number): string {
  if (name.includes("Bytes")) return bytes(value);
  if (name.endsWith("Ms")) return value % 1_000 === 0 ? `${value / 1_000} s` : `${value} ms`;
  return String(value);
}

function bytes(value: number): string {
  const mebi = 1024 * 1024;
  return value % mebi === 0 ? `${value / mebi} MiB` : `${value / 1024} KiB`;
}
