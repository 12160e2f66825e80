export type Unit =
  | "x"
  | "us"
  | "ms"
  | "rec/s"
  | "1/s"
  | "MB/s"
  | "KiB"
  | "MiB"
  | "tokens"
  | "events"
  | "elements"
  | "%";

/** A limit in the specification. */
export interface Goal {
  readonly sense: "at most" | "at least";
  readonly target: number;
  readonly stretch?: number;
  readonly unit: Unit;
  readonly claim: string;
  /** Why no figure has it. */
  readonly unmeasured?: string;
}

type Limits = readonly [target: number, stretch?: number];

const goal =
  (sense: Goal["sense"]) =>
  (claim: string, [target, stretch]: Limits, unit: Unit = "x"): Goal => ({
    ...{ sense, target, unit, claim },
    ...(stretch !== undefined && { stretch }),
  });
const atMost = goal("at most");
const atLeast = goal("at least");

/** Every goal, in the order of the report. `P` are those of the first round; a `Q` replaces the `P` that it names. */
export const goals = {
  P1: atMost("a request on one core: through the daemon / direct, p50", [4.5, 3.5]),
  P2: { ...atMost("a request on all cores: through the daemon / direct, p50", [2.5, 2]), unmeasured: "Q1 replaces it" },
  "P3 small": atLeast("events at a client / direct, small records", [0.4, 0.65]),
  "P3 mixed": atLeast("events at a client / direct, mixed records", [0.4, 0.75]),
  "P3 library small": atLeast("events of the client library / direct, small records", [0.4, 0.65]),
  "P3 library mixed": atLeast("events of the client library / direct, mixed records", [0.4, 0.75]),
  "P4 websocketd": atLeast("records/s / of websocketd", [2, 4]),
  "P4 supergateway": atLeast("records/s / of supergateway", [2.5, 5]),
  "P4 stdio-to-ws": atLeast("records/s / of stdio-to-ws", [4, 10]),
  P5: atLeast("records/s of one session / what one pi emits", [3, 8]),
  P6: atLeast("MB/s of records of 8 MB / of 100 KB", [0.7, 0.9]),
  P7: atMost("p99 of requests due every 2 ms: beside 8 MB/s / alone", [60, 20]),
  "P8 growth": atMost("CPU of a further delivery: up to 100 clients / up to 10", [1.3, 1.1]),
  "P8 loop": atLeast("CPU of a further delivery: a loop that stringifies / the daemon", [4, 8]),
  "P9 CPU": atMost("50 x 200 events/s: CPU for an event / of a direct reader", [2.3, 1.9]),
  "P9 delay": atMost("50 x 200 events/s: the event loop's delay, p99", [5, 2], "ms"),
  "P9 busy": atMost("50 x 200 events/s: the event loop's utilization", [0.6, 0.45]),
  "P9 loss": atMost("50 x 200 events/s: lost, merged or misordered", [0], "events"),
  "P10 CPU": atMost("CPU for an event: 100 sessions / 10", [1, 0.5]),
  "P10 idle": atMost("get_state with 200 idle sessions / with 1, p50", [1.5, 1.2]),
  "P11 session": atMost("memory of a further idle session", [250, 120], "KiB"),
  "P11 client": atMost("memory of a further idle WebSocket client", [40, 20], "KiB"),
  P12: atMost("memory for replay / bytes of the events", [1.5, 1.3]),
  P13: atMost("a cold create / spawning pi", [1.15, 1.05]),
  P14: atMost("a warm create / a cold one", [0.2, 0.08]),
  "P15 all": atMost("10 creates at once: total / without a limit of starts", [1.1, 1]),
  "P15 first": atMost("10 creates at once: the first / one alone", [1.5, 1.2]),
  P16: atMost("accepted / one fdatasync, p50", [3, 2]),
  "P16 group": atLeast("pushes/s on a slow disk: 50 in flight / one at a time", [10, 25]),
  P17: atMost("delivered: a stand-in's message_start to the client, p50", [1, 0.3], "ms"),
  P18: atLeast("replay of 10,000 events / live, records/s", [0.5, 0.9]),
  P19: atMost("HTTP: CPU for a request / bare node:http", [1.6, 1.35]),
  "P20 p99": atMost("1,000 clients reconnect at once: p99 until resumed", [1_000], "ms"),
  "P20 bare": atMost("1,000 clients reconnect at once: p99 / a connection and one call", [3]),
  Q1: atMost("a request on all cores: through the daemon / a bare relay, p50", [1.25, 1.1]),
  "Q2 fresh": atMost("memory: fresh / a bare Node with http, ws and sqlite", [1.3, 1.15]),
  "Q2 session": atMost("memory: with one session / the same bare Node", [1.45, 1.3]),
  Q3: atMost("CPU of the daemon's start / the same bare Node's", [3, 2]),
  "Q4 p50": atMost("accepted / one fdatasync of a growing file, p50", [2, 1.5]),
  "Q4 group": atLeast("pushes/s with 5 ms more a sync: 50 in flight / one at a time", [25]),
  "Q5 p50": atMost("delivered on real pi, beyond an observer in pi and one sync, p50", [1, 0.3], "ms"),
  "Q5 p90": atMost("delivered on real pi, beyond an observer in pi and one sync, p90", [2, 1], "ms"),
  Q6: atMost("p99 of requests due every 2 ms beside 8 MB/s", [10, 4], "ms"),
  Q7: atMost("CPU for a record: while deltas are merged / unmerged", [1.2]),
  "Q8 live": atMost("first byte of prompt / pi -p: live session", [0.5, 0.3]),
  "Q8 hibernated": atMost("first byte of prompt / pi -p: hibernated session", [1.1, 0.9]),
  "Q8 new": atMost("first byte of new and prompt / pi -p: a warm child", [1.1, 0.8]),
  "Q9 CPU": atMost("HTTP: CPU for a request / bare fastify", [1.2, 1.1]),
  "Q9 rate": atLeast("HTTP: requests/s / bare fastify", [0.9]),
  "Q10 start": atMost("start / opencode serve", [0.2]),
  "Q10 memory": atMost("fresh memory / opencode serve", [0.25]),
  "Q10 list": atMost("list p50 / opencode serve", [0.1]),
  "Q10 create": atMost("a warm create / the same pi's bare switch_session, p50", [1.5, 1.2]),
  Q11: atMost("a cold create / spawning pi", [1.05]),
  Q12: atMost("ls, status / node -e 0", [1.5]),
  "Q13 loss": atMost("200 x 50 events/s: lost, merged or misordered", [0], "events"),
  "Q13 p99": atMost("200 x 50 events/s: p99 of a request", [20], "ms"),
  "Q13 CPU": atMost("200 x 50 events/s: CPU for an event / of a direct reader", [1.9]),
  "F1 cold": atMost("a front end's first response: pi-rpcd-pi, cold / pi", [1.15]),
  "F1 warm": atMost("a front end's first response: pi-rpcd-pi, warm / pi", [1]),
  "F1 memory": atMost("memory of pi-rpcd-pi", [55], "MiB"),
  A1: atMost("ACP: session/new, a warm child", [300], "ms"),
  A2: atMost("ACP: the first piece of an answer after our own wire", [20], "ms"),
  A3: atMost("ACP: processor for 6,000 deltas", [500], "ms"),
  "W first paint": atMost("the web console's first paint", [400], "ms"),
  "W sessions": atMost("the web console's list of 990 sessions is shown", [800], "ms"),
  "W end": atMost("the web console: the end of 10,000 messages is readable", [500], "ms"),
  "W elements": atMost("the web console: elements with 10,000 messages", [2_000], "elements"),
  "W scroll": atMost("the web console: work of a frame while scrolling by jumps, p95", [8], "ms"),
  "W stream": atMost("the web console: work of a frame while 200 deltas a second come into 48 KiB, p95", [4], "ms"),
  "W task": atMost("the web console: the longest task while scrolling and while 200 deltas a second come", [50], "ms"),
  "W late": atMost("the web console: late frames while 200 deltas a second come, more than if nothing comes", [2], "%"),
  "W heap": atMost("the web console: heap after 100,000 deltas", [150], "MiB"),
  "W open": atMost("the web console: the daemon's memory while a page is open, more than before", [4], "MiB"),
  "W closed": atMost("the web console: the daemon's memory after closing it, more than before", [1], "MiB"),
  L: atMost("300 calls: USD with the profile lean / with bare pi", [1]),
  "L 32k": atMost("300 calls, a window of 32k: USD with the profile lean / with bare pi", [0.5]),
  "L 64k": atMost("300 calls, a window of 64k: USD with the profile lean / with bare pi", [0.8]),
  "L 200k": atMost("300 calls, a window of 200k: USD with the profile lean / with bare pi", [0.75]),
  "L 1M": atMost("300 calls, a window of 1M: USD with the profile lean / with bare pi", [0.3]),
  "L part": atMost("300 calls: USD with one part of lean / with bare pi", [1.02]),
  "L price": atMost("300 calls: predicted and actual price of an edit of earlier context, median error", [15], "%"),
  R1: atMost("each cost with live restore / without it", [1.1]),
} as const satisfies Readonly<Record<string, Goal>>;

export type GoalId = keyof typeof goals;

export type Verdict = "stretch" | "reached" | "missed";

export function verdict(value: number, { sense, target, stretch }: Goal): Verdict {
  const reaches = (bound: number): boolean => (sense === "at most" ? value <= bound : value >= bound);
  if (stretch !== undefined && reaches(stretch)) return "stretch";
  return reaches(target) ? "reached" : "missed";
}
