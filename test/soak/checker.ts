import type { Attempt, Delivery, DeliveryState, HistoryStep } from "../../protocol/delivery.ts";
import type { History, PushFact, RequestFact, Violation, ViolationKind } from "./history.ts";

// Invariants from the text of PROTOCOL.md, not from the daemon's code: receipts are compared with the provider's log
// and
// pi's session files.

/** The clocks of several processes of one machine, in whole milliseconds. */
const clockSlackMs = 2;
/** On a busy machine the provider may record requests and answers with a delay. */
const noteSlackMs = 500;
/** A killed process does not report the events around the moment of its death. */
const deathShadowMs = 2_000;
/** The limit of steps and attempts in a record; the oldest are dropped. */
const fullHistory = 64;
const fullAttempts = 32;

/** The states that may precede each state. A repeated state is a step of its own only for `prepared`. */
const mayFollow: Readonly<Record<DeliveryState, readonly DeliveryState[]>> = {
  accepted: [],
  held: ["accepted", "parked"],
  inserted: ["accepted", "held", "parked"],
  prepared: ["inserted", "prepared", "parked"],
  delivered: ["prepared"],
  answered: ["delivered"],
  parked: ["held", "inserted", "prepared"],
  dropped: ["accepted", "held", "inserted", "prepared", "parked"],
  cancelled: ["accepted", "held", "parked"],
  expired: ["accepted", "held", "parked"],
  failed: ["accepted", "held", "parked"],
  unknown: ["inserted", "prepared", "parked"],
};

const ends: ReadonlySet<DeliveryState> = new Set(["answered", "dropped", "cancelled", "expired", "failed", "unknown"]);

/** Whether a record can no longer change. */
export function isEnd({ state, reason }: Pick<Delivery, "state" | "reason">): boolean {
  return ends.has(state) || (state === "delivered" && reason !== undefined);
}

/** All faults in a history. */
export function check(history: History): readonly Violation[] {
  const byPush = groupByPush(history);
  return history.pushes.flatMap((push) => checkPush(byPush(push)));
}

/** All facts about one push. */
export interface Case {
  readonly push: PushFact;
  readonly final: Delivery | undefined;
  readonly sightings: History["sightings"];
  readonly claims: History["claims"];
  /** The requests that contain the push's text or marker, in the order of arrival. */
  readonly requests: readonly RequestFact[];
  readonly entries: History["entries"];
  /** The deaths that may have lost a receipt of the push. */
  readonly deaths: History["deaths"];
  /** Whether the daemon has reported a damaged store after the push. Nothing may be duplicated even then. */
  readonly isForgotten: boolean;
  /** Whether steps that were written but not synced may be gone. */
  readonly isCut: boolean;
}

/** Finds all facts about a push. */
export function groupByPush(history: History): (push: PushFact) => Case {
  const sightings = Map.groupBy(history.sightings, ({ delivery }) => delivery.deliveryId);
  const claims = Map.groupBy(history.claims, ({ deliveryId }) => deliveryId);
  const entries = Map.groupBy(history.entries, ({ deliveryId }) => deliveryId);
  const requests = new Map<string, RequestFact[]>();
  for (const request of history.requests) {
    for (const id of new Set([...Object.keys(request.carried), ...request.altered])) {
      requests.set(id, [...(requests.get(id) ?? []), request]);
    }
  }
  const begun = (push: PushFact): number => sightings.get(push.id)?.[0]?.at ?? 0;
  return (push) => ({
    isForgotten: history.damages.some((at) => at >= begun(push)),
    isCut: history.cuts.some((at) => at >= begun(push)),
    push,
    final: history.final.get(push.id),
    sightings: sightings.get(push.id) ?? [],
    claims: claims.get(push.id) ?? [],
    requests: (requests.get(push.id) ?? []).toSorted((a, b) => a.receivedAt - b.receivedAt),
    entries: entries.get(push.id) ?? [],
    deaths: history.deaths.filter(({ session }) => session === undefined || session === push.session),
  });
}

function checkPush(known: Case): Violation[] {
  const found: Violation[] = [];
  const say = (kind: ViolationKind, message: string): void => {
    found.push({ kind, message, deliveryId: known.push.id, session: known.push.session });
  };
  doubled(known, say);
  if (known.isForgotten) return found;
  if (known.push.answer === "accepted" && known.final === undefined) {
    say("lost", "it was accepted, and the daemon does not know it");
  }
  if (known.final === undefined) {
    if (known.entries.length > 0) say("lost", "it stands in the transcript, and no receipt tells of it");
    return found;
  }
  const records = [...known.sightings.map(({ delivery }) => delivery), known.final];
  for (const message of new Set(records.flatMap(({ history }) => wrongSteps(history)))) say("wrong", message);
  for (const message of changes(known)) say("wrong", message);
  for (const attempt of new Map(records.flatMap((record) => record.attempts.map(keyed))).values()) {
    for (const message of wrongAttempt(attempt, known)) say("wrong", message);
  }
  for (const message of wrongEnd(known.final, known)) say("wrong", message);
  for (const message of whereabouts(known.final, known)) say("lost", message);
  return found;
}

type Say = (kind: ViolationKind, message: string) => void;

function doubled({ entries, requests, push }: Case, say: Say): void {
  if (entries.length > 1) {
    say("doubled", `${entries.length} entries carry it: ${entries.map(({ entryId }) => entryId).join(", ")}`);
  }
  for (const { n, carried } of requests) {
    const count = carried[push.id] ?? 0;
    if (count > 1) say("doubled", `request ${n} has it ${count} times`);
  }
  for (const { n, altered } of requests) {
    if (altered.includes(push.id)) say("wrong", `request ${n} has its marker with another text`);
  }
}

/** One attempt with its end, so that each is judged once. */
function keyed(attempt: Attempt): [string, Attempt] {
  return [`${attempt.requestId} ${attempt.outcome ?? "open"}`, attempt];
}

function wrongSteps(history: readonly HistoryStep[]): string[] {
  const states = history.map(({ state }) => state);
  const found: string[] = [];
  if (states[0] !== "accepted" && states.length < fullHistory) found.push(`its history begins with ${states[0]}`);
  for (let i = 1; i < states.length; i += 1) {
    const [before, after] = [states[i - 1] as DeliveryState, states[i] as DeliveryState];
    if (!mayFollow[after].includes(before)) found.push(`its history has ${after} after ${before}`);
  }
  return found;
}

/** Histories only grow, whichever client or daemon reports them; a final state does not change. */
function changes({ sightings, final, isCut }: Case): string[] {
  const found = new Set<string>();
  let longest: readonly HistoryStep[] = [];
  const stepsOf = ({ history }: Delivery): readonly HistoryStep[] =>
    isCut ? history.filter(({ state }) => state !== "held" && state !== "inserted") : history;
  const told = (where: string, delivery: Delivery): void => {
    const history = stepsOf(delivery);
    const shared = Math.min(longest.length, history.length);
    if (history.length < fullHistory && longest.length < fullHistory) {
      for (let i = 0; i < shared; i += 1) {
        if (JSON.stringify(longest[i]) === JSON.stringify(history[i])) continue;
        found.add(`step ${i + 1} of its history was ${step(longest[i])} and is ${step(history[i])} (${where})`);
        break;
      }
    }
    if (history.length > longest.length) longest = history;
  };
  let end: { readonly at: number; readonly text: string; readonly from: string } | undefined;
  for (const { at, askedAt, from, life, delivery } of sightings) {
    told(`${from}, life ${life}`, delivery);
    if (end !== undefined && askedAt !== undefined && askedAt > end.at && JSON.stringify(delivery) !== end.text) {
      found.add(`it had ended (${end.from}) and ${from} of life ${life} says ${delivery.state}`);
    }
    if (end === undefined && isEnd(delivery))
      end = { at, text: JSON.stringify(delivery), from: `${from}, life ${life}` };
  }
  if (final !== undefined) {
    told("the last word", final);
    const last = stepsOf(final);
    if (longest.length > last.length) {
      found.add(`it was ${step(longest.at(-1))} and the last word is ${step(last.at(-1))}`);
    }
    if (end !== undefined && JSON.stringify(final) !== end.text) found.add("its end has changed");
  }
  return [...found];
}

function step(at: HistoryStep | undefined): string {
  return at === undefined ? "nothing" : at.state;
}

/**
 * The possible requests of an attempt, in order: those that carry the push and arrived between its start and
 * its end. The provider records a request's arrival before it answers, so an accepted one is always among them.
 */
function candidatesOf(attempt: Attempt, { push, requests, final }: Case): readonly RequestFact[] {
  const next = final?.attempts.find(({ preparedAt }) => preparedAt > attempt.preparedAt);
  const until =
    Math.min(attempt.endedAt ?? Number.POSITIVE_INFINITY, next?.preparedAt ?? Number.POSITIVE_INFINITY) + clockSlackMs;
  return requests.filter(
    ({ receivedAt, carried }) =>
      (carried[push.id] ?? 0) > 0 && receivedAt >= attempt.preparedAt - clockSlackMs && receivedAt <= until,
  );
}

/** Of a delivered attempt. One without a status was aborted: the provider saw an earlier attempt's request late. */
function acceptedRequest(attempt: Attempt, known: Case): RequestFact | undefined {
  const candidates = candidatesOf(attempt, known);
  return candidates.find(({ status }) => status !== undefined) ?? candidates[0];
}

function wrongAttempt(attempt: Attempt, known: Case): string[] {
  const { outcome, status, evidence, n } = attempt;
  const request = outcome === "delivered" ? acceptedRequest(attempt, known) : candidatesOf(attempt, known)[0];
  const found: string[] = [];
  if (outcome === "delivered") {
    if (request === undefined) found.push(`attempt ${n} is delivered, and no request has the push`);
    else if (!isAccepted(request)) {
      found.push(
        `attempt ${n} is delivered, and request ${request.n} was answered with ${request.status ?? "nothing"}`,
      );
    } else if ((request.headersSentAt ?? 0) > (attempt.endedAt ?? 0) + noteSlackMs) {
      found.push(`attempt ${n} was delivered before the provider answered request ${request.n}`);
    }
    if (attempt.payload === "unverified") found.push(`attempt ${n} is delivered, and its payload is unverified`);
    const allowed = evidenceOf[known.push.api];
    if (evidence === undefined || !allowed.includes(evidence)) {
      found.push(`attempt ${n} rests on ${evidence ?? "nothing"}, which is no evidence for ${known.push.api}`);
    }
  }
  if (outcome === "failed" && request?.outcome === "answered") {
    found.push(`attempt ${n} is failed, and request ${request.n} was answered in full`);
  }
  if (status !== undefined && request?.status !== undefined && request.status !== status) {
    found.push(`attempt ${n} has status ${status}, and request ${request.n} was answered with ${request.status}`);
  }
  return found;
}

const evidenceOf: Readonly<Record<PushFact["api"], readonly string[]>> = {
  openai: ["headers"],
  "openai-responses": ["headers"],
  anthropic: ["headers"],
  google: ["content", "message"],
  eager: ["content", "message"],
};

function isAccepted({ status, headersSentAt }: RequestFact): boolean {
  return status !== undefined && status >= 200 && status < 300 && headersSentAt !== undefined;
}

/** The last record's claims about the model, compared with the provider's actions. */
function wrongEnd(final: Delivery, known: Case): string[] {
  const isReached = final.state === "delivered" || final.state === "answered";
  return [...(isReached ? wrongReached(final, known) : unreported(final, known)), ...wrongRedelivered(final)];
}

function wrongReached(final: Delivery, known: Case): string[] {
  if (final.attempts.length >= fullAttempts || final.history.length >= fullHistory) return [];
  const attemptOf = (state: DeliveryState): Attempt | undefined => {
    const requestId = final.history.findLast((at) => at.state === state)?.requestId;
    return final.attempts.find((attempt) => attempt.requestId === requestId);
  };
  const found: string[] = [];
  if (attemptOf("delivered")?.outcome !== "delivered") found.push("no attempt of its own says that it was delivered");
  if (final.state !== "answered") return found;
  const attempt = attemptOf("answered");
  const request = attempt === undefined ? undefined : acceptedRequest(attempt, known);
  if (request === undefined) found.push("it is answered, and no request has the push");
  else if (request.outcome !== "answered" && request.outcome !== "closed_by_client") {
    found.push(`it is answered, and the answer to request ${request.n} ended ${request.outcome ?? "never"}`);
  }
  return found;
}

/** A complete answer that no receipt reports. Only the death of the reporting process excuses that. */
function unreported(final: Delivery, { push, requests, deaths }: Case): string[] {
  return requests.flatMap(({ n, outcome, receivedAt, endedAt, carried }) => {
    if (outcome !== "answered" || (carried[push.id] ?? 0) === 0) return [];
    const isShadowed = deaths.some(
      ({ at }) => at >= receivedAt - deathShadowMs && at <= (endedAt ?? receivedAt) + deathShadowMs,
    );
    return isShadowed ? [] : [`request ${n} with it was answered in full, and it is ${final.state}`];
  });
}

function wrongRedelivered({ attempts, redelivered }: Delivery): string[] {
  const unknown = attempts.findIndex(({ outcome }) => outcome === "unknown");
  return unknown !== -1 && unknown < attempts.length - 1 && redelivered !== true
    ? ["an attempt of unknown outcome was followed by another, and it does not say redelivered"]
    : [];
}

/** Never both, never neither: compares the transcript with the record. */
function whereabouts(final: Delivery, { push, entries, requests, claims, deaths }: Case): string[] {
  const found: string[] = [];
  const saysInserted = final.history.some(({ state }) => state === "inserted");
  const isKept = final.history.length < fullHistory;
  if (push.answer === "refused") found.push("it was refused, and the daemon knows it");
  if (!isEnd(final)) found.push(`all has settled, and it is still ${final.state}`);
  const isUnwritten = deaths.some(({ at, unwritten }) => unwritten?.includes(push.session) && at >= final.createdAt);
  if (saysInserted && entries.length === 0 && !isUnwritten) found.push(`it is ${final.state}, and no entry carries it`);
  if (isKept && !saysInserted && entries.length > 0)
    found.push(`it is ${final.state} without insertion, and stands in the transcript`);
  if (isKept && !saysInserted && requests.some(({ carried }) => (carried[push.id] ?? 0) > 0)) {
    found.push(`it is ${final.state} without insertion, and a request has it`);
  }
  for (const { state, from } of claims) {
    if (ends.has(state) && state !== final.state) found.push(`${from} said ${state}, and it is ${final.state}`);
  }
  return found;
}
