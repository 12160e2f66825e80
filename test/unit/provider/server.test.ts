import { describe, expect, test } from "vitest";
import { Gate } from "../../../provider/gate.ts";
import { answer, delayed, hang, hold } from "../../../provider/reply.ts";
import { when } from "../../../provider/script.ts";
import { startProvider } from "../../../provider/server.ts";
import { apis, ask, post, request, textOf, urlOf } from "./requests.ts";

describe("the script", () => {
  test("a conditional step waits for its request, and other requests skip it", async () => {
    await using provider = await startProvider({
      script: [when((entry) => entry.hasText("beta"), "for beta"), "for anyone"],
    });
    expect(textOf(await ask(provider, "openai", request("openai", "alpha")), "openai")).toBe("for anyone");
    expect(textOf(await ask(provider, "openai", request("openai", "beta")), "openai")).toBe("for beta");
    expect(provider.remainingSteps).toBe(0);
  });

  test("steps can be added while it runs", async () => {
    await using provider = await startProvider();
    provider.add("late");
    expect(textOf(await ask(provider, "openai"), "openai")).toBe("late");
  });

  test("a responder gets the request and may take its time", async () => {
    await using provider = await startProvider({
      otherwise: async (entry) => `${entry.n} ${entry.model} ${entry.api}`,
    });
    expect(textOf(await ask(provider, "anthropic"), "anthropic")).toBe("1 model-1 anthropic");
  });

  test("a responder that throws is answered by a 400 with its error", async () => {
    await using provider = await startProvider({
      script: [
        () => {
          throw new Error("no idea");
        },
      ],
    });
    const { status, text } = await ask(provider, "openai");
    expect([status, text]).toEqual([400, expect.stringContaining("no idea")]);
    expect(provider.requests[0]?.violations).toEqual(["The script failed: Error: no idea"]);
  });

  test("a reply that cannot be sent breaks the connection and is recorded", async () => {
    await using provider = await startProvider({ script: [{ ...answer("x"), headers: { "bad name": "x" } }] });
    await expect(post(urlOf(provider, "openai"), request("openai"))).rejects.toThrow();
    expect(await provider.requests[0]?.ended).toBe("broken");
    expect(provider.requests[0]?.violations).toEqual([expect.stringContaining("bad name")]);
  });

  test.each(apis)("requests for the fewest %s tokens are answered separately if configured", async (api) => {
    const limit = {
      openai: { max_completion_tokens: 1 },
      "openai-responses": { max_output_tokens: 16 },
      anthropic: { max_tokens: 1 },
      google: { generationConfig: { maxOutputTokens: 1 } },
    };
    await using provider = await startProvider({ script: ["kept"], warming: "aside" });
    await ask(provider, api, request(api, "x", limit[api]));
    expect(provider.remainingSteps).toBe(1);
    expect(textOf(await ask(provider, api), api)).toBe("kept");
    expect(provider.requests.map((entry) => entry.isWarming)).toEqual([true, false]);
  });

  test("without that option they take a step like others", async () => {
    await using provider = await startProvider({ script: ["taken"] });
    const answered = await ask(provider, "openai", request("openai", "x", { max_tokens: 1 }));
    expect(textOf(answered, "openai")).toBe("taken");
  });
});

describe("limits", () => {
  test("a body above the limit gets a 413 and takes no step", async () => {
    await using provider = await startProvider({ script: ["kept"], maxBodyBytes: 1_000 });
    const { status, json } = await ask(provider, "anthropic", request("anthropic", "x".repeat(5_000_000)));
    expect([status, json["error"]]).toEqual([413, expect.objectContaining({ type: "request_too_large" })]);
    expect(provider.remainingSteps).toBe(1);
    expect(provider.requests[0]).toMatchObject({ body: {}, messages: [], outcome: "refused" });
    expect(provider.requests[0]?.bodyBytes).toBeGreaterThan(5_000_000);
  });

  test.each(["", "nonsense", "[]", "null", '"text"'])("the body %j is not a request", async (body) => {
    await using provider = await startProvider({ strict: false });
    expect((await post(urlOf(provider, "openai"), body)).status).toBe(400);
    expect(provider.requests[0]?.violations).toEqual(["The request body is not a JSON object"]);
  });

  test("the log keeps the newest requests and counts the dropped ones", async () => {
    await using provider = await startProvider({ maxLogEntries: 2 });
    for (let n = 0; n < 5; n += 1) await ask(provider, "openai");
    expect(provider.requests.map((entry) => entry.n)).toEqual([4, 5]);
    expect(provider.droppedRequests).toBe(3);
  });

  test("the log drops the oldest bodies above its limit, but never the newest", async () => {
    await using provider = await startProvider({ maxLogBytes: 3_000 });
    await ask(provider, "openai", request("openai", "x".repeat(2_000)));
    await ask(provider, "openai", request("openai", "x".repeat(2_000)));
    await ask(provider, "openai", request("openai", "x".repeat(9_000)));
    expect(provider.requests.map((entry) => entry.n)).toEqual([3]);
  });
});

describe("the API key", () => {
  test.each([
    ["openai", { authorization: "Bearer secret-key" }],
    ["openai-responses", { authorization: "Bearer secret-key" }],
    ["anthropic", { "x-api-key": "secret-key" }],
    ["google", { "x-goog-api-key": "secret-key" }],
  ] as const)("of %s is asked for when there is one, and never recorded", async (api, headers) => {
    await using provider = await startProvider({ apiKey: "secret-key", script: ["kept"] });
    const body = api === "google" ? request(api) : { ...request(api), stream: false };
    expect((await post(urlOf(provider, api), body)).status).toBe(401);
    expect((await post(urlOf(provider, api), body, { headers: { "x-api-key": "wrong" } })).status).toBe(401);
    expect(provider.remainingSteps).toBe(1);
    expect((await post(urlOf(provider, api), body, { headers })).status).toBe(200);
    expect(JSON.stringify(provider.requests.map((entry) => entry.headers))).not.toContain("secret-key");
  });
});

describe("closing", () => {
  test("ends hanging and held replies, waiters and gates immediately", async () => {
    const [held, never] = [new Gate(), new Gate()];
    const provider = await startProvider({ script: [hang(), delayed(hold(held), answer("x")), answer(hold(never))] });
    const requests = [
      post(urlOf(provider, "openai"), request("openai")),
      post(urlOf(provider, "google"), request("google")),
    ];
    const failed = Promise.all(requests.map((response) => expect(response).rejects.toThrow()));
    await held.reached;
    const waiting = expect(provider.waitForRequest((entry) => entry.n === 9)).rejects.toThrow("closed");
    await provider.close();
    await Promise.all([failed, waiting, expect(never.reached).rejects.toThrow("closed")]);
    expect(provider.requests.map((entry) => entry.outcome)).toEqual(["hung", "hung"]);
    expect(held.waiting).toBe(0);
  });

  test("does not wait for a responder that never answers", async () => {
    const provider = await startProvider({ otherwise: () => Promise.withResolvers<never>().promise });
    const response = expect(post(urlOf(provider, "openai"), request("openai"))).rejects.toThrow();
    await provider.waitForRequest();
    await provider.close();
    await response;
    expect(provider.requests[0]?.outcome).toBe("hung");
  });

  test("is idempotent and frees the port; the log can still be read", async () => {
    const provider = await startProvider();
    await ask(provider, "openai");
    expect(provider.close()).toBe(provider.close());
    await provider.close();
    await using again = await startProvider({ port: Number(new URL(provider.url).port) });
    expect(again.url).toBe(provider.url);
    expect(provider.requests).toHaveLength(1);
    await expect(provider.waitForRequest()).resolves.toMatchObject({ n: 1 });
    await expect(provider.waitForRequest((entry) => entry.n === 2)).rejects.toThrow("closed");
  });

  test("a port that is taken is an error", async () => {
    await using provider = await startProvider();
    await expect(startProvider({ port: Number(new URL(provider.url).port) })).rejects.toThrow("EADDRINUSE");
  });
});
