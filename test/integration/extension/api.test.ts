import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, delayed, hold, status } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { type Pi, type PiOptions, push, startPi } from "./driver.ts";
import { sharePi } from "./shared-pi.ts";

const shared = sharePi();

/**
 * pi with an extension that uses the API, without the helper and without a daemon. It remembers ids across its
 * sessions.
 */
const alone = { after: ["delivering"], entry: "none", isConfigured: false } as const;

/** A pi that is not shared. */
async function startAlone(options: Omit<PiOptions, "entry" | "isConfigured">): Promise<Pi> {
  return await startPi({ ...alone, ...options });
}

async function ask(pi: Pi, command: "deliver" | "wait", what: Record<string, unknown>): Promise<void> {
  await pi.rpc({ type: "prompt", message: `/test-${command} ${JSON.stringify(what)}` });
}

const message = { customType: "build", content: "The build is green." };
const inRequests = (provider: { requests: readonly { countText(text: string): number }[] }): number[] =>
  provider.requests.map((request) => request.countText(message.content));

test("without a daemon, an extension's message is delivered with evidence and answered", async () => {
  await using lent = await shared.use({ script: ["Understood."], ...alone });
  const { pi, provider } = lent;
  await ask(pi, "deliver", { tag: "a", message });
  expect(await pi.told("a.delivered")).toBe("delivered headers");
  expect(await pi.told("a.answered")).toBe("answered headers");
  expect(inRequests(provider)).toEqual([1]);
  expect(pi.log.records.filter(({ type }) => type === "extension_error")).toEqual([]);
});

test.for([
  ["without a daemon", alone],
  ["with the daemon's helper", { after: ["delivering"] }],
] as const)("%s, other extensions receive each request on pi.events", async ([, options]) => {
  await using provider = await startProvider({ script: [status(529), "Understood."] });
  await using pi = await startPi({ provider, ...options });
  await ask(pi, "deliver", { tag: "a", message, options: { deliveryId: "d1" } });
  await pi.told("a.answered");
  const told = async (n: number): Promise<unknown> => JSON.parse(await pi.told(`request${n}`));
  const [first, second] = provider.requests;
  const of = (n: number) => ({ requestId: expect.any(String), attempt: n, deliveryIds: ["d1"] });
  const prepared = (n: number, request: typeof first) => ({
    channel: "provider_request_prepared",
    ...of(n),
    messageCount: request?.messages.length,
    model: { provider: "scripted", id: "model-1" },
    payloadBytes: expect.any(Number),
    payloadSha256: request?.bodySha256,
  });
  const ended = { latencyMs: expect.any(Number), error: expect.stringContaining("529"), status: 529 };
  expect(await told(0)).toEqual(prepared(1, first));
  expect(await told(1)).toEqual({ channel: "provider_request_failed", ...of(1), ...ended, reason: "failed" });
  expect(await told(2)).toEqual(prepared(2, second));
  expect(await told(3)).toEqual({
    channel: "provider_request_delivered",
    ...of(2),
    evidence: "headers",
    status: 200,
    latencyMs: expect.any(Number),
    headers: expect.objectContaining({ "content-type": "text/event-stream; charset=utf-8" }),
  });
  expect(pi.log.records.filter(({ type }) => type === "extension_error")).toEqual([]);
});

test("a message from within a tool call is in the very next request, in one run", async () => {
  await using lent = await shared.use(alone);
  const { pi, provider } = lent;
  provider.add(answer(call("deliver", { ask: JSON.stringify({ tag: "a", message }) })), "Understood.");
  await pi.rpc({ type: "prompt", message: "Go." });
  expect(await pi.told("a.answered")).toBe("answered headers");
  await pi.event("agent_settled");
  expect(inRequests(provider)).toEqual([0, 1]);
  expect(provider.requests.map(({ violations }) => violations)).toEqual([[], []]);
});

test("a message for the next turn waits for the user's prompt and precedes it", async () => {
  await using lent = await shared.use(alone);
  const { pi, provider } = lent;
  await ask(pi, "deliver", { tag: "a", message, options: { deliverAs: "nextTurn" } });
  await pi.told("a");
  await pi.rpc({ type: "prompt", message: "Go." });
  expect(await pi.told("a.answered")).toBe("answered headers");
  expect(provider.requests[0]?.messages.slice(-2).map(({ texts }) => texts)).toEqual([[message.content], ["Go."]]);
});

test("an overloaded provider delays the delivery, and a final refusal rejects it with the provider's error text", async () => {
  await using lent = await shared.use({ script: [status(529), "Now.", status(400)], ...alone });
  const { pi, provider } = lent;
  await ask(pi, "deliver", { tag: "a", message });
  expect(await pi.told("a.delivered")).toBe("delivered headers");
  expect(await pi.told("a.answered")).toBe("answered headers");
  await pi.event("agent_settled");
  await ask(pi, "deliver", { tag: "b", message: { ...message, content: "The build is red." } });
  expect(await pi.told("b.delivered")).toMatch(/^DeliveryFailedError parked: .*run_failed.*400/);
  expect(await pi.told("b.answered")).toMatch(/^DeliveryFailedError parked: /);
  expect(inRequests(provider)).toEqual([1, 1, 1]);
});

test("a message left by a failed run is carried by the next run, and can be awaited then", async () => {
  await using lent = await shared.use({ script: [status(400), "Both."], ...alone });
  const { pi } = lent;
  await ask(pi, "deliver", { tag: "a", message, options: { deliveryId: "left" } });
  await pi.told("a.delivered");
  await pi.rpc({ type: "prompt", message: "Go on." });
  await pi.event("message_end", (record) => JSON.stringify(record).includes("Both."));
  await ask(pi, "wait", { tag: "w", deliveryId: "left" });
  expect(await pi.told("w")).toMatch(/^(delivered|answered) headers$/);
});

test("an abort before the headers parks the message and is reported", async () => {
  const gate = new Gate();
  await using lent = await shared.use({ script: [delayed(hold(gate), answer("Never."))], ...alone });
  const { pi } = lent;
  await ask(pi, "deliver", { tag: "a", message });
  await gate.reached;
  await pi.rpc({ type: "abort" });
  expect(await pi.told("a.delivered")).toMatch(/^DeliveryFailedError parked: .*\(abort\)/);
  gate.open();
});

test("an abort in the middle of the answer leaves it delivered and unanswered", async () => {
  const gate = new Gate();
  await using provider = await startProvider({ script: [answer("Hel", hold(gate), "lo.")] });
  await using pi = await startAlone({ provider });
  await ask(pi, "deliver", { tag: "a", message });
  await gate.reached;
  expect(await pi.told("a.delivered")).toBe("delivered headers");
  await pi.rpc({ type: "abort" });
  expect(await pi.told("a.answered")).toMatch(/^DeliveryFailedError unanswered: .*unanswered_aborted/);
  gate.open();
});

/** The file for reports about ends: statuses of a former session are not received. */
async function withFile(act: (file: string, env: Record<string, string>) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "delivering-"));
  try {
    const file = join(directory, "told.txt");
    await act(file, { DELIVERING_FILE: file });
  } finally {
    rmSync(directory, { recursive: true });
  }
}

test("a replaced session ends held and open messages, and a reload does not", async () => {
  await withFile(async (file, env) => {
    const gate = new Gate();
    await using provider = await startProvider({ script: [delayed(hold(gate), answer("Never."))] });
    await using pi = await startAlone({ provider, env, before: ["session-commands"] });
    await ask(pi, "deliver", { tag: "kept", message, options: { deliverAs: "nextTurn" } });
    await pi.rpc({ type: "prompt", message: "/test-reload" });
    await ask(pi, "deliver", { tag: "a", message: { ...message, content: "Another." }, options: { deliveryId: "d1" } });
    await gate.reached;
    await pi.rpc({ type: "new_session" });
    await ask(pi, "wait", { tag: "late", deliveryId: "d1" });
    expect(await pi.told("late")).toMatch(/^SessionReplacedError sessionReplaced/);
    const told = readFileSync(file, "utf8");
    // pi aborts the run first.
    expect(told).toMatch(/^a.delivered DeliveryFailedError parked.*\(abort\)/m);
    expect(told).toMatch(/^kept.delivered SessionReplacedError/m);
    expect(told).toMatch(/^kept.answered SessionReplacedError/m);
    gate.open();
  });
});

test("a message that is held through a reload is delivered, and resolves the earlier wait", async () => {
  await withFile(async (file, env) => {
    await using provider = await startProvider({ script: ["Understood."] });
    await using pi = await startAlone({ provider, env, before: ["session-commands"] });
    await ask(pi, "deliver", { tag: "a", message, options: { deliverAs: "nextTurn", deliveryId: "d1" } });
    await pi.rpc({ type: "prompt", message: "/test-reload" });
    await pi.rpc({ type: "prompt", message: "Go." });
    await pi.event("agent_settled");
    expect(readFileSync(file, "utf8")).toMatch(/^a.delivered delivered headers$/m);
    expect(inRequests(provider)).toEqual([1]);
  });
});

test("the end of pi rejects open messages, and no wait keeps pi alive", async () => {
  await withFile(async (file, env) => {
    await using provider = await startProvider();
    {
      await using pi = await startAlone({ provider, env });
      await ask(pi, "deliver", { tag: "a", message, options: { deliverAs: "nextTurn", deliveryId: "d1" } });
      await ask(pi, "wait", { tag: "w", deliveryId: "d1", options: { timeoutMs: 2_000_000_000 } });
      await pi.told("a");
    }
    const told = readFileSync(file, "utf8");
    for (const tag of ["a.delivered", "a.answered", "w"])
      expect(told).toMatch(new RegExp(`^${tag} ShutDownError`, "m"));
  });
});

test("waits end at their timeout, at their signal, at once when the state was reached, and never otherwise", async () => {
  await using lent = await shared.use({ script: ["Understood."], ...alone });
  const { pi } = lent;
  await ask(pi, "deliver", { tag: "a", message, options: { deliverAs: "nextTurn", deliveryId: "waited" } });
  const waits: readonly (readonly [string, Record<string, unknown>, RegExp])[] = [
    ["zero", { options: { timeoutMs: 0 } }, /^WaitTimeoutError timeout: .*it is held/],
    ["short", { options: { timeoutMs: 1 } }, /^WaitTimeoutError/],
    ["negative", { options: { timeoutMs: -1 } }, /^DeliveryInputError timeoutMs/],
    ["text", { options: { timeoutMs: "soon" } }, /^DeliveryInputError timeoutMs/],
    ["huge", { options: { timeoutMs: 1e12 } }, /^DeliveryInputError timeoutMs/],
    ["until", { options: { until: "read" } }, /^DeliveryInputError until/],
    ["aborted", { isAborted: true }, /^Error: changed my mind/],
    ["abortLater", { abortAfterMs: 1 }, /^TimeoutError/],
    ["unknown", { deliveryId: "d9" }, /^UnknownDeliveryError/],
  ];
  for (const [tag, what, outcome] of waits) {
    await ask(pi, "wait", { tag, deliveryId: "waited", ...what });
    expect(await pi.told(tag), tag).toMatch(outcome);
  }
  await ask(pi, "wait", {
    tag: "forever",
    deliveryId: "waited",
    options: { timeoutMs: "Infinity", until: "answered" },
  });
  await pi.rpc({ type: "prompt", message: "Go." });
  expect(await pi.told("forever")).toBe("answered headers");
  for (const until of ["inserted", "prepared", "delivered", "answered"]) {
    await ask(pi, "wait", { tag: `late.${until}`, deliveryId: "waited", options: { until, timeoutMs: 0 } });
    expect(await pi.told(`late.${until}`)).toBe("answered headers");
  }
});

test("a message that cannot be delivered is refused by name, and is not sent", async () => {
  await using lent = await shared.use(alone);
  const { pi, provider } = lent;
  const image = { type: "image", data: "AAAA", mimeType: "text/html" };
  const wrong: readonly (readonly [string, Record<string, unknown>])[] = [
    ["emptyContent", { message: { ...message, content: "" } }],
    ["emptyContent", { message: { ...message, content: " \n" } }],
    ["emptyContent", { message: { ...message, content: [] } }],
    ["content", { message: { ...message, content: 7 } }],
    ["content", { message: { ...message, content: [{ type: "video" }] } }],
    ["content", { message: { ...message, content: [image] } }],
    ["content", { message: undefined }],
    ["customType", { message: { ...message, customType: "" } }],
    ["customType", { message: { ...message, customType: "pi-rpcd.carrier" } }],
    ["display", { message: { ...message, display: "no" } }],
    ["details", { message: { ...message, details: [] } }],
    ["deliverAs", { message, options: { deliverAs: "soon" } }],
    ["triggerTurn", { message, options: { triggerTurn: 1 } }],
    ["onAbort", { message, options: { onAbort: "cry" } }],
    ["deliveryId", { message, options: { deliveryId: "" } }],
    ["deliveryId", { message, options: { deliveryId: "__proto__" } }],
    ["deliveryId", { message, options: { deliveryId: "x".repeat(129) } }],
  ];
  for (const [at, [kind, what]] of wrong.entries()) {
    await ask(pi, "deliver", { tag: `w${at}`, ...what });
    expect(await pi.told(`w${at}`), JSON.stringify(what)).toMatch(new RegExp(`^DeliveryInputError ${kind}: `));
  }
  await ask(pi, "deliver", { tag: "large", message, largeContent: true });
  expect(await pi.told("large")).toMatch(/^DeliveryInputError contentTooLarge: /);
  await ask(pi, "deliver", { tag: "cyclic", message, cyclicDetails: true });
  expect(await pi.told("cyclic")).toMatch(/^DeliveryInputError details: /);
  await ask(pi, "deliver", { tag: "aborted", message, isAborted: true });
  expect(await pi.told("aborted.delivered")).toBe("Error: changed my mind");
  expect(await pi.inserted()).toEqual([]);
  expect(provider.requests).toHaveLength(0);
});

test("an id identifies one message: repeating it is the same delivery, another message is refused", async () => {
  await using lent = await shared.use({ script: ["Understood."], ...alone });
  const { pi } = lent;
  const options = { deliveryId: "same", deliverAs: "nextTurn" };
  await ask(pi, "deliver", { tag: "a", message, options });
  await ask(pi, "deliver", { tag: "b", message, options });
  await ask(pi, "deliver", { tag: "c", message: { ...message, content: "Else." }, options });
  expect(await pi.told("c")).toMatch(/^DeliveryInputError deliveryIdReused/);
  await pi.rpc({ type: "prompt", message: "Go." });
  expect(await pi.told("a.answered")).toBe("answered headers");
  expect(await pi.told("b.answered")).toBe("answered headers");
  expect(await pi.inserted()).toEqual(["same"]);
});

test("a message is cancelled when its signal aborts before pi has it", async () => {
  await using lent = await shared.use(alone);
  const { pi, provider } = lent;
  await ask(pi, "deliver", {
    tag: "a",
    message,
    options: { deliverAs: "nextTurn", deliveryId: "given-up" },
    abortAfterMs: 1,
  });
  expect(await pi.told("a.delivered")).toMatch(/^TimeoutError/);
  await pi.rpc({ type: "prompt", message: "Go." });
  await pi.event("agent_settled");
  expect(inRequests(provider)).toEqual([0]);
  await ask(pi, "wait", { tag: "w", deliveryId: "given-up" });
  expect(await pi.told("w")).toMatch(/^DeliveryFailedError ended: .*cancelled/);
});

test("two extensions with their own copies share one engine with the daemon's helper, in any order", async () => {
  for (const [before, after] of [
    [["delivering", "waiting"], []],
    [["waiting"], ["delivering"]],
    [[], ["delivering", "waiting"]],
  ] as const) {
    await using provider = await startProvider({ script: ["Understood.", "And that."] });
    await using pi = await startPi({ provider, before, after });
    await ask(pi, "deliver", { tag: "a", message, options: { deliveryId: "d1" } });
    expect(await pi.told("a.answered")).toBe("answered headers");
    expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "delivered headers 200 confirmed", "answered"]);
    await pi.rpc({ type: "prompt", message: "/other-wait d1" });
    expect(await pi.told("other.d1")).toBe("answered");
    await pi.settled();
    // In the other direction, an extension waits for a push of a client of the daemon.
    await pi.hold(push("d2", "A push."));
    await pi.rpc({ type: "prompt", message: "/other-wait d2" });
    await pi.settled(2);
    expect(await pi.told("other.d2")).toBe("answered");
    expect(await pi.inserted()).toEqual(["d1", "d2"]);
  }
});

test("a client's push with the id of an extension's message is refused, and never gets its receipts", async () => {
  await using lent = await shared.use({ after: ["delivering"] });
  const { pi } = lent;
  await ask(pi, "deliver", { tag: "a", message, options: { deliveryId: "d1", deliverAs: "nextTurn" } });
  await pi.told("a");
  expect(await pi.hold(push("d1", "Another."), push("d2", "A push.", { deliverAs: "nextTurn" }))).toEqual({
    held: ["d2"],
    inserted: [],
    running: false,
    refused: [{ deliveryId: "d1", why: "An extension already uses this id." }],
  });
  await ask(pi, "deliver", { tag: "b", message, options: { deliveryId: "d2" } });
  expect(await pi.told("b")).toMatch(/^DeliveryInputError deliveryIdReused/);
});

test("a delivery in an extension that did not open the API while loading is refused by name", async () => {
  await using provider = await startProvider();
  await using pi = await startAlone({ provider, after: ["waiting"] });
  await pi.rpc({ type: "prompt", message: "/other-wait d1" });
  expect(await pi.told("other.d1")).toMatch(/^NotOpenError/);
});
