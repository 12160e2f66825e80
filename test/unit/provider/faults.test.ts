import { describe, expect, test } from "vitest";
import { Gate } from "../../../provider/gate.ts";
import {
  answer,
  cut,
  delay,
  delayed,
  errorEvent,
  hang,
  hold,
  overflow,
  rateLimited,
  reset,
  status,
} from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { apis, ask, post, read, request, textOf, urlOf } from "./requests.ts";

describe.each(apis)("over %s", (api) => {
  test.each([400, 401, 429, 500, 529])("status %i comes in the API's own error shape", async (code) => {
    await using provider = await startProvider({ script: [status(code)] });
    const { status: got, json } = await ask(provider, api);
    expect(got).toBe(code);
    const error = json["error"] as Record<string, unknown>;
    expect(error["message"]).toEqual(expect.any(String));
    if (api === "anthropic") expect(json["type"]).toBe("error");
    if (api === "google") expect(error["code"]).toBe(code);
    const [entry] = provider.requests;
    expect(await entry?.ended).toBe("refused");
    expect(entry?.status).toBe(code);
  });

  test("a status can have its own body and headers", async () => {
    await using provider = await startProvider({
      script: [status(503, { body: "down", headers: { "x-a": "b" } }), rateLimited(3)],
    });
    const down = await ask(provider, api);
    expect([down.status, down.text, down.headers.get("x-a")]).toEqual([503, "down", "b"]);
    expect((await ask(provider, api)).headers.get("retry-after")).toBe("3");
  });

  test("overflow is a 400 in the provider's words", async () => {
    await using provider = await startProvider({ script: [overflow(900, 800)] });
    const { status: got, text } = await ask(provider, api);
    expect(got).toBe(400);
    expect(text).toMatch(
      /maximum context length is 800 tokens|exceeds the context window|900 tokens > 800 maximum|\(900\) exceeds the maximum/,
    );
  });

  test("a reset before the headers fails the request", async () => {
    await using provider = await startProvider({ script: [reset()] });
    await expect(post(urlOf(provider, api), request(api))).rejects.toThrow();
    const [entry] = provider.requests;
    expect(await entry?.ended).toBe("reset");
    expect(await entry?.headersSent).toBe(false);
    expect(entry?.status).toBeUndefined();
  });

  test("a reset in the middle breaks the stream after the data sent before it", async () => {
    const gate = new Gate();
    await using provider = await startProvider({ script: [answer("a", "b", hold(gate), reset())] });
    const response = await post(urlOf(provider, api), request(api));
    await gate.reached;
    gate.open();
    const answered = await read(response);
    expect(answered.isBroken).toBe(true);
    const [entry] = provider.requests;
    expect(await entry?.ended).toBe("reset");
    expect(await entry?.headersSent).toBe(true);
  });

  test("a cut stream ends properly, without the end marks", async () => {
    await using provider = await startProvider({ script: [answer("a", cut())] });
    const answered = await ask(provider, api);
    expect([answered.isBroken, textOf(answered, api)]).toEqual([false, "a"]);
    expect(answered.text).not.toMatch(/\[DONE\]|message_stop|"finishReason"|response\.completed/);
    expect(await provider.requests[0]?.ended).toBe("broken");
  });

  test("an error event is in a stream with status 200", async () => {
    await using provider = await startProvider({ script: [answer("a", errorEvent({ message: "too busy" }))] });
    const answered = await ask(provider, api);
    expect(answered.status).toBe(200);
    const isFlat = api === "openai-responses";
    expect(answered.events.at(-1)).toMatchObject(
      isFlat ? { event: "error", type: "error", message: "too busy" } : { error: { message: "too busy" } },
    );
    if (api === "anthropic") expect(answered.events.at(-1)).toMatchObject({ event: "error", type: "error" });
    expect(await provider.requests[0]?.ended).toBe("broken");
  });

  test("a gate before the headers delays them until it is opened", async () => {
    const gate = new Gate();
    await using provider = await startProvider({ script: [delayed(hold(gate), status(529))] });
    const answered = ask(provider, api);
    await gate.reached;
    const [entry] = provider.requests;
    expect([entry?.headersSentAt, entry?.outcome, gate.waiting]).toEqual([undefined, undefined, 1]);
    gate.open();
    expect((await answered).status).toBe(529);
    expect(gate.waiting).toBe(0);
  });

  test("a gate in the middle delays the rest, and earlier data is sent", async () => {
    const gate = new Gate();
    await using provider = await startProvider({ script: [answer("before", hold(gate), delay(1), "after")] });
    const response = await post(urlOf(provider, api), request(api));
    const reader = response.body?.getReader();
    let seen = "";
    while (!seen.includes("before")) seen += new TextDecoder().decode((await reader?.read())?.value);
    await gate.reached;
    expect(provider.requests[0]?.outcome).toBeUndefined();
    reader?.releaseLock();
    gate.open();
    expect((await read(response)).text).toContain("after");
  });

  test("a client that closes before the headers is recorded", async () => {
    const gate = new Gate();
    const abort = new AbortController();
    await using provider = await startProvider({ script: [delayed(hold(gate), answer("never"))] });
    const response = post(urlOf(provider, api), request(api), { signal: abort.signal });
    await gate.reached;
    abort.abort();
    await expect(response).rejects.toThrow();
    const [entry] = provider.requests;
    expect(await entry?.ended).toBe("closed_by_client");
    expect(await entry?.headersSent).toBe(false);
    expect(entry?.clientClosedAt).toBeGreaterThanOrEqual(entry?.receivedAt ?? Number.POSITIVE_INFINITY);
    expect(gate.waiting).toBe(0);
  });

  test("a client that closes a hanging stream is recorded, with the headers it got", async () => {
    const abort = new AbortController();
    await using provider = await startProvider({ script: [answer("a", hang())] });
    const response = await post(urlOf(provider, api), request(api), { signal: abort.signal });
    abort.abort();
    await expect(response.text()).rejects.toThrow();
    const [entry] = provider.requests;
    expect(await entry?.ended).toBe("closed_by_client");
    expect([entry?.status, await entry?.headersSent]).toEqual([200, true]);
  });

  test("answers that are not streamed break and wait too", async () => {
    const gate = new Gate();
    await using provider = await startProvider({ script: [answer("a", hold(gate), "b"), answer("a", cut())] });
    const held = ask(provider, api, request(api, "x", { stream: false }));
    await gate.reached;
    expect(await provider.requests[0]?.headersSent).toBe(true);
    gate.open();
    expect((await held).json).not.toEqual({});
    const half = await ask(provider, api, request(api, "x", { stream: false }));
    expect([half.status, half.isBroken, half.json]).toEqual([200, false, {}]);
    expect(half.text).not.toBe("");
  });
});

test("one gate may hold several replies, and lets later ones pass", async () => {
  const gate = new Gate();
  await using provider = await startProvider({ otherwise: () => delayed(hold(gate), answer("x")) });
  const answers = [ask(provider, "openai"), ask(provider, "openai")];
  await provider.waitForRequest((entry) => entry.n === 2);
  gate.open();
  await Promise.all(answers);
  expect((await ask(provider, "openai")).status).toBe(200);
});

test("pauses before the headers keep their order", async () => {
  const [first, second] = [new Gate(), new Gate()];
  await using provider = await startProvider({ script: [delayed(hold(first), delayed(hold(second), answer("x")))] });
  const answered = ask(provider, "openai");
  await first.reached;
  expect(second.waiting).toBe(0);
  first.open();
  await second.reached;
  second.open();
  expect((await answered).status).toBe(200);
});
