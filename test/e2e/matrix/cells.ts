import { Gate } from "../../../provider/gate.ts";
import { answer, behind, errorEvent, hold, overflow, type Reply, reset, status } from "../../../provider/reply.ts";

/** How a push has to end, whatever its agent was doing. */
export interface Expected {
  readonly state: "answered" | "delivered" | "parked";
  readonly reason?: string;
  /** Outcome, evidence and status of each attempt, in order. */
  readonly attempts: readonly (readonly [outcome: string, evidence: string | undefined, status: number | undefined])[];
}

/** What the provider does with the requests that carry the push. */
export interface Behaviour {
  readonly title: string;
  /** The replies to these requests, in order; further ones are answered. */
  readonly replies: () => readonly Reply[];
  /** The session is aborted once the provider stands at this reply's gate. */
  readonly abort?: "before headers" | "mid-stream";
  /** The session has a past that can be compacted. */
  readonly needsPast?: boolean;
  readonly expected: Expected;
  /** Where the agent's state makes a difference. */
  readonly expectedWhile?: Readonly<Partial<Record<AgentState, Expected>>>;
}

const ok = ["delivered", "headers", 200] as const;
const failed = (code?: number) => ["failed", undefined, code] as const;

export const behaviours: readonly Behaviour[] = [
  { title: "answers 200", replies: () => [], expected: { state: "answered", attempts: [ok] } },
  {
    title: "answers 529, then 200",
    replies: () => [status(529)],
    expected: { state: "answered", attempts: [failed(529), ok] },
  },
  {
    title: "answers 401",
    replies: () => [status(401)],
    expected: { state: "parked", reason: "run_failed", attempts: [failed(401)] },
  },
  {
    title: "answers 400",
    replies: () => [status(400)],
    expected: { state: "parked", reason: "run_failed", attempts: [failed(400)] },
  },
  {
    title: "answers 529 until retries are exhausted",
    replies: () => [status(529), status(529), status(529)],
    expected: { state: "parked", reason: "run_failed", attempts: [failed(529), failed(529), failed(529)] },
  },
  {
    title: "hangs before headers, and the run is aborted",
    replies: () => [behind(hold(new Gate()), answer("Never."))],
    abort: "before headers",
    expected: { state: "parked", reason: "abort", attempts: [["aborted", undefined, undefined]] },
  },
  {
    title: "hangs mid-stream, and the run is aborted",
    replies: () => [answer("Some ", hold(new Gate()), "never.")],
    abort: "mid-stream",
    expected: { state: "delivered", reason: "unanswered_aborted", attempts: [ok] },
  },
  {
    title: "resets before headers, then answers",
    replies: () => [reset()],
    expected: { state: "answered", attempts: [failed(), ok] },
  },
  {
    title: "resets mid-stream, then answers",
    replies: () => [answer("Some ", reset())],
    expected: { state: "answered", attempts: [ok, ok] },
  },
  {
    title: "answers 200 with an error event mid-stream, then answers",
    replies: () => [answer("Some ", errorEvent())],
    expected: { state: "answered", attempts: [ok, ok] },
  },
  {
    title: "says that the context is full, and answers after the compaction",
    replies: () => [overflow()],
    needsPast: true,
    expected: { state: "answered", attempts: [failed(400), ok] },
    // Right behind a compaction nothing is left to compact, and pi gives the run up.
    expectedWhile: { compacting: { state: "parked", reason: "run_failed", attempts: [failed(400)] } },
  },
];

export const agentStates = ["idle", "streaming", "in a tool call", "compacting", "in retry back-off"] as const;
export type AgentState = (typeof agentStates)[number];
