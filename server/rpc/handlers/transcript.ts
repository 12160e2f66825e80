import { WireError } from "../../../protocol/errors.ts";
import { isRecord } from "../../../protocol/objects.ts";
import type { transcriptMethods } from "../../../protocol/transcript-methods.ts";
import { limits } from "../../configuration/limits.ts";
import { byAge } from "../../core/session-record.ts";
import { type SearchedSession, Searches } from "../../custody/search/searches.ts";
import { noEntries } from "../../custody/stored-entries.ts";
import { type LogPlace, type TranscriptSource, Transcripts, type Unwritten } from "../../custody/transcript.ts";
import { unlessAborted } from "../../lib/deadline.ts";
import type { Registry } from "../../session/registry.ts";
import type { Session } from "../../session/session.ts";
import { isAsleep, unknownAsleep } from "../asleep.ts";
import type { Call, HandlersOf } from "../call.ts";
import { namedTokensPercent, Quota } from "../quota.ts";

const { maxReads, maxReadsPerToken } = limits.transcript;
const { maxSearches, maxSearchesPerToken } = limits.search;

export function transcriptHandlers(registry: Registry): HandlersOf<typeof transcriptMethods> {
  const transcripts = new Transcripts();
  const searches = new Searches();
  const reads = new Quota({
    what: "calls that read session files",
    max: maxReads,
    maxPerToken: maxReadsPerToken,
    namedTokensPercent,
  });
  const searching = new Quota({
    what: "searches that run or wait",
    max: maxSearches,
    maxPerToken: maxSearchesPerToken,
    namedTokensPercent,
  });
  const source = async (sessionId: string, { signal, grant }: Call): Promise<TranscriptSource> => {
    const session = registry.get(sessionId);
    // The last pi can write until it has been cleaned up.
    if (isAsleep(session)) await unlessAborted(session.cleaned(), signal);
    const sessionOf = (file: string): string | undefined => {
      const found = registry.all().find((other) => other.file === file);
      return found === undefined || grant?.limits?.(found.stored) === false ? undefined : found.sessionId;
    };
    return sourceOf(session, sessionOf);
  };
  const readNow = async <T>(sessionId: string, call: Call, use: (from: TranscriptSource) => Promise<T>): Promise<T> => {
    try {
      return await use(await source(sessionId, call));
    } catch (error) {
      const session = registry.get(sessionId);
      const isOlder = error instanceof WireError && error.kind === "session_asleep";
      if (!isOlder || session.state.kind !== "starting") throw error;
      // The pi that starts converts the file.
      await unlessAborted(session.startOver(), call.signal);
      return await use(await source(sessionId, call));
    }
  };
  const read = <T>(sessionId: string, call: Call, use: (from: TranscriptSource) => Promise<T>): Promise<T> =>
    within(reads, call, () => readNow(sessionId, call, use));
  return {
    "transcript/page": ({ sessionId, ...params }, call) =>
      read(sessionId, call, (from) => transcripts.page(from, params, call.signal)),
    "transcript/outline": ({ sessionId, ...params }, call) =>
      read(sessionId, call, (from) => transcripts.outline(from, params, call.signal)),
    "transcript/entry": ({ sessionId, ...params }, call) =>
      read(sessionId, call, (from) => transcripts.piece(from, params, call.signal)),
    "transcript/search": async ({ sessionId, ...params }, call) => {
      const { limits: covers = () => true } = call.grant ?? {};
      const sessions = sessionId === undefined ? registry.all() : [registry.get(sessionId)];
      const seen = sessions.filter(({ stored }) => covers(stored)).sort((a, b) => byAge(b.stored, a.stored));
      return await within(searching, call, () => searches.search(seen.map(searchedSession), params, call.signal));
    },
  };
}

/** Counts a call while it runs. Throws `overloaded`. */
async function within<T>(quota: Quota, { grant }: Call, run: () => Promise<T>): Promise<T> {
  const full = quota.refusal(grant, 1);
  if (full !== undefined) throw full;
  quota.add(grant, 1);
  try {
    return await run();
  } finally {
    quota.add(grant, -1);
  }
}

function searchedSession({ sessionId, file, stored }: Session): SearchedSession {
  const { createdAt, fileMark } = stored;
  return {
    sessionId,
    file,
    createdAt,
    isEphemeral: stored.ephemeral === true,
    hasEntries: fileMark?.lastId !== undefined,
  };
}

function sourceOf(session: Session, sessionOf: TranscriptSource["sessionOf"]): TranscriptSource {
  const { sessionId, stored } = session;
  return {
    sessionId,
    get file() {
      return session.file;
    },
    isEphemeral: stored.ephemeral === true,
    get place() {
      return { cursor: session.journal.cursor, epoch: session.journal.epoch };
    },
    unwritten: (since) => unwritten(session, since),
    requireNoEntries: () => {
      if (stored.ephemeral === true) throw session.loss ?? unknownAsleep(session, "not_known");
      noEntries(session.stored);
    },
    olderForm: () => unknownAsleep(session, "file_older_form"),
    sessionOf,
  };
}

/** How often a waiting call looks whether pi still responds. */
const lookEveryMs = 500;

async function unwritten(session: Session, since: string | undefined): Promise<Unwritten | undefined> {
  const { calls, supervisor } = session;
  const isSilent = (): boolean => supervisor.silentSince !== undefined;
  // What a pi that does not respond has written is in the file.
  if (isSilent()) return undefined;
  const { promise: silence, resolve } = Promise.withResolvers<undefined>();
  const looking = setInterval(() => isSilent() && resolve(undefined), lookEveryMs);
  try {
    let at: LogPlace | undefined;
    const command = { type: "get_entries", ...(since !== undefined && { since }) };
    const onResponse = (): void => {
      at = logPlace(session);
    };
    const data = await Promise.race([calls.askNow(command, onResponse), silence]);
    if (at === undefined) return undefined;
    const { entries, leafId } = data ?? {};
    return {
      entries: Array.isArray(entries) ? entries.filter(isRecord) : undefined,
      leafId: typeof leafId === "string" ? leafId : null,
      at,
    };
  } finally {
    clearInterval(looking);
  }
}

function logPlace({ journal, runId }: Session): LogPlace {
  const { cursor, epoch } = journal;
  const { after } = journal.catchUp();
  return { cursor, epoch, ...(runId !== undefined && after < cursor && { openAfter: after }) };
}
