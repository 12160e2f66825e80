import { describe, expect, test } from "vitest";
import { type HookEvent, isOpen, nothingObserved, observe } from "../../../extension/delivery/verdict.ts";

const noFailure = { aborted: false };
const request = (requestId = "r1", ...deliveryIds: string[]): HookEvent => ({
  kind: "request",
  requestId,
  deliveryIds: deliveryIds.length > 0 ? deliveryIds : ["d1"],
});
const payload = (check: "confirmed" | "unverified" = "confirmed"): HookEvent => ({
  kind: "payload",
  checks: { d1: check },
});
const eventStream = "text/event-stream";
const headers = (status = 200, contentType: string | undefined = eventStream): HookEvent => ({
  kind: "headers",
  status,
  contentType,
});
const untyped: HookEvent = { kind: "headers", status: 200, contentType: undefined };
const start = (stopReason = "pending", api = "openai-completions"): HookEvent => ({
  kind: "start",
  stopReason,
  api,
  failure: { aborted: false, status: 529, error: "529 Overloaded" },
});
const end = (stopReason = "stop", failure: { aborted: boolean; error?: string } = noFailure): HookEvent => ({
  kind: "end",
  stopReason,
  failure,
});
const content: HookEvent = { kind: "content" };
const warming: HookEvent = { kind: "warming" };
const over = (aborted = false): HookEvent => ({ kind: "over", failure: { aborted, error: "over" } });

/** The findings that follow from the events, in a few words each. */
function findings(...events: readonly HookEvent[]): string[] {
  let state = nothingObserved;
  return events.flatMap((event) => {
    const step = observe(state, event);
    state = step.next;
    return step.findings.map((finding) => {
      const id = finding.attempt.requestId;
      if (finding.kind === "answered") return `${id} answered`;
      const evidence = finding.outcome === "delivered" ? [finding.evidence] : [];
      return [id, finding.outcome, ...evidence, finding.attempt.payload["d1"]].join(" ").trim();
    });
  });
}

describe("the verdict", () => {
  test.for<[string, readonly HookEvent[], readonly string[]]>([
    [
      "headers of its own request and a start are acceptance",
      [request(), payload(), headers(), start(), content, end()],
      ["r1 delivered headers confirmed", "r1 answered"],
    ],
    ["a message list alone is not a verdict", [request(), payload()], []],
    ["headers without a start are not a verdict", [request(), payload(), headers()], []],
    ["a start without headers waits for content", [request(), payload(), start()], []],
    [
      "a start without headers and then content is acceptance",
      [request(), start(), content, end("length")],
      ["r1 delivered content unchecked", "r1 answered"],
    ],
    [
      "a start without headers and then an error is a failure",
      [request(), start(), end("error")],
      ["r1 failed unchecked"],
    ],
    [
      "a start without headers and then an abort is an abort",
      [request(), start(), end("aborted")],
      ["r1 aborted unchecked"],
    ],
    [
      "a start without headers and then the whole answer is acceptance",
      [request(), start(), end("toolUse")],
      ["r1 delivered message unchecked", "r1 answered"],
    ],
    [
      "a start over a WebSocket is acceptance",
      [request(), payload(), start("pending", "openai-codex-responses"), end()],
      ["r1 delivered start confirmed", "r1 answered"],
    ],
    [
      "a start by the same adapter over HTTP waits for content unless it has opened a stream",
      [request(), payload(), headers(200, "text/html"), start("pending", "openai-codex-responses"), end("error")],
      ["r1 failed confirmed"],
    ],
    [
      "nor is it acceptance where the headers may be a warming request's",
      [warming, request(), payload(), headers(), start("pending", "openai-codex-responses"), end("error")],
      ["r1 failed confirmed"],
    ],
    [
      "a start by an adapter that hides its headers waits for content",
      [request(), payload(), start("pending", "google-generative-ai"), content, end()],
      ["r1 delivered content confirmed", "r1 answered"],
    ],
    ...["text/html; charset=utf-8", "application/json", "text/event-stream-not", ""].map(
      (type): [string, readonly HookEvent[], readonly string[]] => [
        `headers of type ${JSON.stringify(type)} are none, and content then is acceptance`,
        [request(), payload(), headers(200, type), start(), content, end()],
        ["r1 delivered content confirmed", "r1 answered"],
      ],
    ),
    [
      "headers without a type are none, and an error then is a failure",
      [request(), payload(), untyped, start(), end("error")],
      ["r1 failed confirmed"],
    ],
    [
      "a stream's type in other letters and with parameters is one",
      [request(), payload(), headers(200, "Text/Event-Stream ;charset=UTF-8"), start()],
      ["r1 delivered headers confirmed"],
    ],
    [
      "the stream of Bedrock has a type of its own",
      [
        request("r1"),
        payload(),
        headers(200, "application/vnd.amazon.eventstream"),
        start("pending", "bedrock-converse-stream"),
        end("error"),
        request("r2"),
        payload(),
        headers(),
        start("pending", "bedrock-converse-stream"),
        end("error"),
      ],
      ["r1 delivered headers confirmed", "r2 failed confirmed"],
    ],
    [
      "believes no start under such an api before it has shown its payload: content is waited for",
      [request(), start("pending", "openai-codex-responses"), end("error")],
      ["r1 failed unchecked"],
    ],
    [
      "an answer that comes whole, without a start before it, is acceptance",
      [request(), payload(), headers(), start("stop"), end()],
      ["r1 delivered message confirmed", "r1 answered"],
    ],
    [
      "an error instead of a start is a failure",
      [request(), payload(), start("error"), end("error")],
      ["r1 failed confirmed"],
    ],
    [
      "an abort instead of a start is an abort",
      [request(), payload(), start("aborted"), end("aborted")],
      ["r1 aborted confirmed"],
    ],
    ["an error status proves nothing", [request(), payload(), headers(500), start()], []],
    [
      "an error after the start leaves it delivered and not answered",
      [request(), payload(), headers(), start(), end("error")],
      ["r1 delivered headers confirmed"],
    ],
    ["an end of an unknown kind is a failure", [request(), start(), end("deferred")], ["r1 failed unchecked"]],
    ["a run that is over ends it", [request(), payload(), over()], ["r1 failed confirmed"]],
    ["a run that was aborted ends it as aborted", [request(), over(true)], ["r1 aborted unchecked"]],
    ["the next request ends it", [request("r1"), request("r2")], ["r1 failed unchecked"]],
    [
      "the next request starts again after an accepted one",
      [request("r1"), payload(), headers(), start(), end("error"), request("r2"), payload(), headers(), start(), end()],
      ["r1 delivered headers confirmed", "r2 delivered headers confirmed", "r2 answered"],
    ],
    [
      "a payload without the push is said so",
      [request(), payload("unverified"), headers(), start()],
      ["r1 delivered headers unverified"],
    ],
    [
      "the payload that leaves last counts",
      [request(), payload("unverified"), payload("confirmed"), headers(), start()],
      ["r1 delivered headers confirmed"],
    ],
    [
      "a payload after the verdict changes nothing",
      [request(), headers(), start(), payload("unverified"), content],
      ["r1 delivered content unchecked"],
    ],
    ["headers before the request's own payload prove nothing", [request(), headers(), payload(), start()], []],
    [
      "headers that may be a warming request's prove nothing",
      [warming, request(), payload(), headers(), start(), content],
      ["r1 delivered content confirmed"],
    ],
    [
      "headers that come between requests are the warming request's",
      [warming, headers(), request(), payload(), headers(), start()],
      ["r1 delivered headers confirmed"],
    ],
    [
      "a warming request spoils one attempt only",
      [warming, request("r1"), start("error"), request("r2"), payload(), headers(), start()],
      ["r1 failed unchecked", "r2 delivered headers confirmed"],
    ],
    ["hooks outside an attempt say nothing", [payload(), headers(), start(), content, end(), over()], []],
    [
      "a request without pushes is observed by the same rules",
      [
        ...[{ kind: "request", requestId: "r1", deliveryIds: [] } as const, start("error")],
        ...[{ kind: "request", requestId: "r2", deliveryIds: [] } as const, headers(), payload()],
        ...[headers(), start(), end()],
      ],
      ["r1 failed", "r2 delivered headers", "r2 answered"],
    ],
  ])("%s", ([, events, expected]) => {
    expect(findings(...events)).toEqual(expected);
  });

  test("carries the error text and status of a failure", () => {
    const offered = observe(nothingObserved, request()).next;
    expect(observe(offered, start("error")).findings).toMatchObject([
      { outcome: "failed", status: 529, error: "529 Overloaded" },
    ]);
  });

  test("ends each attempt exactly once, whatever the order of the hooks", () => {
    const events: readonly HookEvent[] = [
      request("r"),
      payload(),
      headers(),
      start(),
      start("error"),
      content,
      end(),
      end("error"),
      warming,
      over(),
    ];
    let seed = 7;
    const next = (): number => {
      seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff;
      return seed;
    };
    let state = nothingObserved;
    const verdicts = new Map<string, number>();
    const begun: string[] = [];
    for (let n = 0; n < 20_000; n += 1) {
      const event = events[next() % events.length] ?? over();
      const step = observe(state, event.kind === "request" ? request(`r${n}`) : event);
      if (event.kind === "request") begun.push(`r${n}`);
      state = step.next;
      for (const finding of step.findings) {
        const id = finding.attempt.requestId;
        if (finding.kind === "verdict") verdicts.set(id, (verdicts.get(id) ?? 0) + 1);
        else expect(verdicts.get(id)).toBe(1);
      }
    }
    const ended = isOpen(state) ? begun.slice(0, -1) : begun;
    expect([...verdicts.keys()]).toEqual(ended);
    expect(new Set(verdicts.values())).toEqual(new Set([1]));
  });
});
