import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Gate } from "../../../provider/gate.ts";
import {
  answer,
  call,
  errorEvent,
  hang,
  hold,
  overflow,
  type Reply,
  reset,
  status,
  thinking,
} from "../../../provider/reply.ts";
import { shareStage } from "../../helpers/shared-stage.ts";
import { startStage } from "../../helpers/stage.ts";
import { watch } from "../../helpers/watcher.ts";

const apis = ["scripted", "scripted-anthropic"] as const;
const tool = answer("I run it.", call("bash", { command: "true" }));
/** Makes it possible to compact a short conversation; otherwise it has no effect. */
const compaction = { enabled: true, reserveTokens: 1_000, keepRecentTokens: 10 };
const shared = shareStage({ agent: { settings: { compaction } } });

describe.for(apis)("a request to %s", (api) => {
  test("is reported with the facts of its payload, and with the provider's answer", async () => {
    await using stage = await shared.use({ script: ["Understood."] });
    const session = await stage.freshSession(api);
    await using watcher = await watch(stage.daemon.file, session.id, { provider: "summary" });
    await session.promptAndWait("Hello, ä€😀 \u2028.");
    const [prepared, delivered] = await watcher.requests();
    const [request] = stage.provider.requests;
    expect(await watcher.summaries()).toEqual(["prepared 1", "delivered headers 200"]);
    expect(prepared?.params).toEqual({
      sessionId: session.id,
      requestId: expect.any(String),
      after: expect.any(Number),
      at: expect.any(Number),
      attempt: 1,
      deliveryIds: [],
      model: { provider: api, id: "model-1" },
      messageCount: 2,
      composition: { system: expect.any(Number), tools: expect.any(Number), user: "Hello, ä€😀 \u2028.".length },
      payloadBytes: request?.bodyBytes,
      payloadSha256: request?.bodySha256,
    });
    expect(delivered?.params).toEqual({
      sessionId: session.id,
      requestId: prepared?.params.requestId,
      after: expect.any(Number),
      at: expect.any(Number),
      status: 200,
      evidence: "headers",
      latencyMs: expect.any(Number),
      headers: expect.objectContaining({ "content-type": expect.stringContaining("text/event-stream") }),
    });
  });

  test("that carries a push names it, and is the push's own attempt", async () => {
    await using stage = await shared.use({ script: [status(529), "Understood."] });
    const session = await stage.session(api);
    await using watcher = await watch(stage.daemon.file, session.id, { provider: "summary" });
    const { attempts, deliveryId } = await session.push({ customType: "n", content: "Hello." }).answered;
    const requests = (await watcher.requests()).map(({ params }) => params);
    expect(await watcher.summaries()).toEqual([
      "prepared 1",
      "failed failed 529 retry",
      "prepared 2",
      "delivered headers 200",
    ]);
    expect(requests.map(({ requestId }) => requestId)).toEqual(attempts.flatMap(({ requestId: id }) => [id, id]));
    expect(requests.map(({ deliveryIds }) => deliveryIds)).toEqual([[deliveryId], undefined, [deliveryId], undefined]);
    expect(requests[1]).toMatchObject({ status: 529, reason: "failed", willRetry: true, error: attempts[0]?.error });
  });

  test.for<[string, readonly (Reply | string)[], readonly string[]]>([
    ["a refusal that pi does not retry", [status(400)], ["prepared 1", "failed failed 400 no retry"]],
    [
      "a connection that is reset before the headers",
      [reset(), "Better."],
      ["prepared 1", "failed failed retry", "prepared 2", "delivered headers 200"],
    ],
    [
      "an answer that breaks off in the middle: it was delivered",
      [answer("Under", reset()), "Understood."],
      ["prepared 1", "delivered headers 200", "prepared 2", "delivered headers 200"],
    ],
    [
      "an error event in the middle of the answer",
      [answer("Under", errorEvent()), "Understood."],
      ["prepared 1", "delivered headers 200", "prepared 2", "delivered headers 200"],
    ],
    [
      "a tool loop with a retry in it: attempts count the tries of one request",
      [status(529), tool, status(529), status(529), tool, "Done."],
      [
        ...["prepared 1", "failed failed 529 retry", "prepared 2", "delivered headers 200"],
        ...["prepared 1", "failed failed 529 retry", "prepared 2", "failed failed 529 retry"],
        ...["prepared 3", "delivered headers 200", "prepared 1", "delivered headers 200"],
      ],
    ],
    [
      "retries that are exhausted",
      [status(529), status(529), status(529), status(529)],
      [
        ...["prepared 1", "failed failed 529 retry", "prepared 2", "failed failed 529 retry"],
        ...["prepared 3", "failed failed 529 retry", "prepared 4", "failed failed 529 no retry"],
      ],
    ],
  ])("is told of through %s", async ([, script, steps]) => {
    await using stage = await shared.use({ script });
    const session = await stage.session(api);
    await using watcher = await watch(stage.daemon.file, session.id, { provider: "summary" });
    await session.runUntilSettled("Hello.");
    expect(await watcher.summaries()).toEqual(steps);
    expect(stage.provider.requests).toHaveLength(steps.filter((word) => word.startsWith("prepared")).length);
    const prepared = (await watcher.requests()).filter(({ method }) => method === "provider/requestPrepared");
    expect(prepared.map(({ params }) => params.payloadSha256)).toEqual(
      stage.provider.requests.map(({ bodySha256 }) => bodySha256),
    );
    const ids = (await watcher.requests()).map(({ params }) => params.requestId);
    for (let i = 0; i < ids.length; i += 2) expect(ids[i]).toBe(ids[i + 1]);
    expect(new Set(ids).size).toBe(ids.length / 2);
  });

  test("that hangs before its headers ends with the abort", async () => {
    await using stage = await shared.use({ script: [hang()] });
    const session = await stage.session(api);
    await using watcher = await watch(stage.daemon.file, session.id, { provider: "summary" });
    await session.prompt("Hello.");
    await stage.provider.waitForRequest();
    await session.abort();
    await watcher.until(({ method }) => method === "provider/requestFailed");
    expect(await watcher.summaries()).toEqual(["prepared 1", "failed aborted no retry"]);
  });

  test("that hangs in the middle of its answer counts as delivered, even after an abort", async () => {
    const gate = new Gate();
    await using stage = await shared.use({ script: [answer("Under", hold(gate), hang())] });
    const session = await stage.session(api);
    await using watcher = await watch(stage.daemon.file, session.id, { provider: "summary" });
    await session.prompt("Hello.");
    await watcher.until(({ method }) => method === "provider/requestDelivered");
    await session.abort();
    expect(await watcher.summaries()).toEqual(["prepared 1", "delivered headers 200"]);
  });

  test("for a compaction is not reported", async () => {
    await using stage = await shared.use();
    const session = await stage.session(api);
    await using watcher = await watch(stage.daemon.file, session.id, { provider: "summary" });
    for (let i = 0; i < 2; i += 1) await session.promptAndWait("A long steps. ".repeat(100));
    const { compaction } = await stage.client.call("session/compact", { sessionId: session.id });
    expect(compaction.tokensBefore).toBeGreaterThan(0);
    await session.promptAndWait("And now?");
    expect(stage.provider.requests.length).toBeGreaterThan(3);
    expect(await watcher.summaries()).toEqual(Array(3).fill(["prepared 1", "delivered headers 200"]).flat());
  });

  test("shows no secret in its headers", async () => {
    const secret = "hidden-4f1c";
    const headers = {
      "x-request-id": "req-1",
      "set-cookie": `session=${secret}`,
      "x-api-key": secret,
      "x-goog-api-key": secret,
      "proxy-authenticate": `Basic realm="${secret}"`,
      "x-session-token": secret,
      "x-client-secret": secret,
      "x-trace": `Bearer ${secret}`,
      "x-ratelimit-remaining-tokens": "39500",
      "anthropic-ratelimit-tokens-reset": "2026-11-21T05:00:00Z",
    };
    await using stage = await shared.use({ script: [{ ...answer("Understood."), headers }] });
    const session = await stage.session(api);
    await using watcher = await watch(stage.daemon.file, session.id, { provider: "payload" });
    await session.promptAndWait("Hello.");
    expect((await watcher.requests())[1]?.params.headers).toMatchObject({
      "x-request-id": "req-1",
      "set-cookie": "[redacted]",
      "x-api-key": "[redacted]",
      "proxy-authenticate": "[redacted]",
      "x-trace": "[redacted]",
      "x-ratelimit-remaining-tokens": "39500",
      "anthropic-ratelimit-tokens-reset": "2026-11-21T05:00:00Z",
    });
    expect(JSON.stringify(watcher.heard)).not.toContain(secret);
  });
});

test("a request to a provider without headers is believed at its first content, and reports no headers", async () => {
  await using stage = await shared.use({ script: ["Understood."] });
  const session = await stage.session("scripted-google");
  await using watcher = await watch(stage.daemon.file, session.id, { provider: "summary" });
  await session.promptAndWait("Hello.");
  expect(await watcher.summaries()).toEqual(["prepared 1", "delivered content"]);
  expect((await watcher.requests())[1]?.params).not.toHaveProperty("headers");
});

test("a round of tools over OpenAI Responses keeps its ids and its reasoning, through errors of each kind", async () => {
  const round = answer(thinking("Hm."), "I run it.", call("bash", { command: "true" }, "call_1|fc_1"));
  await using stage = await shared.use({
    script: [status(529), round, answer("Do", errorEvent()), { ...answer("Done."), usage: { cacheReadTokens: 7 } }],
  });
  const session = await stage.freshSession("scripted-responses");
  await using watcher = await watch(stage.daemon.file, session.id, { provider: "summary" });
  expect((await session.runUntilSettled("Hello.")).text).toBe("Done.");
  expect(await watcher.summaries()).toEqual([
    ...["prepared 1", "failed failed 529 retry", "prepared 2", "delivered headers 200"],
    ...["prepared 1", "delivered headers 200", "prepared 2", "delivered headers 200"],
  ]);
  expect(stage.provider.requests.flatMap(({ violations }) => violations)).toEqual([]);
  const { body, messages } = stage.provider.requests.at(-1) ?? {};
  expect(body?.["input"]).toMatchObject([
    { role: "system" },
    { role: "user" },
    { type: "reasoning", summary: [{ text: "Hm." }] },
    { type: "message", content: [{ text: "I run it." }] },
    { type: "function_call", id: "fc_1", call_id: "call_1", name: "bash" },
    { type: "function_call_output", call_id: "call_1" },
  ]);
  expect(messages?.map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool"]);
  const { tokens } = (await session.command({ type: "get_session_stats" })) as { tokens: { cacheRead: number } };
  expect(tokens.cacheRead).toBe(7);
});

test("a context that is too long fails without a retry, and after the compaction the request is a new one", async () => {
  await using stage = await shared.use({
    script: ["First.", "Second.", overflow(), "A summary."],
    otherwise: () => "Understood.",
  });
  const session = await stage.session();
  await using watcher = await watch(stage.daemon.file, session.id, { provider: "summary" });
  for (let i = 0; i < 2; i += 1) await session.promptAndWait("A long steps. ".repeat(100));
  expect((await session.runUntilSettled("Much more.")).text).toBe("Understood.");
  expect((await watcher.summaries()).slice(4)).toEqual([
    ...["prepared 1", "failed failed 400 no retry", "prepared 1", "delivered headers 200"],
  ]);
});

test("retries within an adapter count as one request", async () => {
  const retry = { enabled: true, maxRetries: 3, baseDelayMs: 20, provider: { maxRetries: 2, maxRetryDelayMs: 1_000 } };
  await using stage = await startStage({
    agent: { settings: { retry } },
    provider: { script: [status(500), status(500), "Understood."] },
  });
  const session = await stage.session();
  await using watcher = await watch(stage.daemon.file, session.id, { provider: "summary" });
  await session.promptAndWait("Hello.");
  expect(stage.provider.requests).toHaveLength(3);
  expect(await watcher.summaries()).toEqual(["prepared 1", "delivered headers 200"]);
});

test("requests are reported after a reload of pi's extensions", async () => {
  await using stage = await startStage();
  const extensions = join(stage.agentDir.path, "extensions");
  mkdirSync(extensions);
  writeFileSync(
    join(extensions, "reload.ts"),
    `export default (pi) => pi.registerCommand("test-reload", { handler: async (_text, ctx) => await ctx.reload() });`,
  );
  const session = await stage.session();
  await using watcher = await watch(stage.daemon.file, session.id, { provider: "summary" });
  await session.promptAndWait("Hello.");
  await session.prompt("/test-reload");
  await session.promptAndWait("Hello again.");
  expect(await watcher.summaries()).toEqual(Array(2).fill(["prepared 1", "delivered headers 200"]).flat());
});

// The last tests, because they leave no session for others.
describe.for(apis)("a request to %s", (api) => {
  test("that is open when pi is killed ends as unknown, and the next child's requests are reported, too", async () => {
    await using stage = await shared.use({ script: [hang(), "Hello again."] });
    const session = await stage.session(api);
    await using watcher = await watch(stage.daemon.file, session.id, { provider: "summary" });
    await session.prompt("Hello.");
    await stage.provider.waitForRequest();
    process.kill((await session.get()).pid ?? 0, "SIGKILL");
    await watcher.until(({ method }) => method === "provider/requestFailed");
    await session.promptAndWait("Are you there?");
    expect(await watcher.summaries()).toEqual(["prepared 1", "failed unknown", "prepared 1", "delivered headers 200"]);
    expect((await watcher.requests())[1]?.params).toMatchObject({ error: expect.stringContaining("pi ended") });
  });

  test("that is open when its session is closed ends", async () => {
    await using stage = await shared.use({ script: [hang()] });
    const session = await stage.session(api);
    await using watcher = await watch(stage.daemon.file, session.id, { provider: "summary" });
    await session.prompt("Hello.");
    await stage.provider.waitForRequest();
    await session.close();
    expect((await watcher.requests()).map(({ method }) => method)).toEqual([
      "provider/requestPrepared",
      "provider/requestFailed",
    ]);
  });
});
