import { expect, test } from "vitest";
import { startProvider } from "../../../provider/server.ts";
import { type PiOptions, push, startPi } from "./driver.ts";

// pi keeps the provider's cache warm as long as its messages are the same objects that the last request was made from.

// pi warms ten seconds before the end of this lifetime, and only if the run has settled by then.
const model = { id: "model-1", promptCache: { short: 12.5, long: 12.5 } };

/** Resolves when a conversation, with a custom message after its first prompt, is warmed twice after each prompt. */
async function warmed(options: Partial<PiOptions>): Promise<readonly string[]> {
  await using provider = await startProvider();
  await using pi = await startPi({
    provider,
    api: "scripted-anthropic",
    models: [model],
    settings: { cacheWarming: "idle" },
    before: ["always-warm", "session-commands"],
    ...options,
  });
  for (const [n, message] of ["One.", "Two."].entries()) {
    const before = provider.requests.at(-1)?.n ?? 0;
    await pi.rpc({ type: "prompt", message });
    await pi.event("agent_settled");
    const last = await provider.waitForRequest((request) => request.n > before && !request.isWarming);
    const first = await provider.waitForRequest((request) => request.n > last.n && request.isWarming);
    await provider.waitForRequest((request) => request.n > first.n && request.isWarming);
    if (n === 0) await pi.rpc({ type: "prompt", message: "/test-note Something has happened." });
  }
  return provider.requests
    .filter(({ isWarming }) => !isWarming)
    .map(({ messages }) => messages.at(-1)?.texts.join() ?? "");
}

test("the cache is kept warm after each prompt of a conversation with custom messages, as in pi alone", async () => {
  const requests = await warmed({ entry: "none", isConfigured: false });
  expect(await warmed({})).toEqual(requests);
});

test("the cache is kept warm after a run that carried a push", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({
    provider,
    api: "scripted-anthropic",
    models: [model],
    settings: { cacheWarming: "idle" },
    before: ["always-warm"],
  });
  await pi.hold(push("d1", "Hello."));
  await pi.frame("answered");
  await provider.waitForRequest(({ isWarming }) => isWarming);
  const { n } = await provider.waitForRequest(({ isWarming }) => !isWarming);
  expect(provider.requests.filter((request) => request.n > n && !request.isWarming)).toEqual([]);
});
