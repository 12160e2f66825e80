import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { Gate } from "../../../provider/gate.ts";
import { answer, delayed, errorEvent, hold, overflow, reset, status } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { push, startPi } from "./driver.ts";
import { sharePi } from "./shared-pi.ts";

const shared = sharePi();

test("a push that is first refused and then accepted has two attempts", async () => {
  await using lent = await shared.use({ script: [status(529), "Understood."] });
  const { pi } = lent;
  await pi.hold(push("d1", "Hello."));
  expect(await pi.settled()).toMatchObject({ aborted: false, failed: false });
  expect(pi.receiptsOf("d1")).toEqual([
    "inserted",
    "prepared",
    "failed 529 confirmed",
    "prepared",
    "delivered headers 200 confirmed",
    "answered",
  ]);
});

test.for(["scripted", "scripted-anthropic"] as const)("a 400 fails the attempt and the run at %s", async (api) => {
  await using lent = await shared.use({ script: [status(400), "Better."], api });
  const { pi } = lent;
  await pi.hold(push("d1", "Hello."));
  expect(await pi.settled()).toMatchObject({ aborted: false, failed: true, held: [] });
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "failed 400 confirmed"]);
  expect(pi.frames("verdict")[0]).toMatchObject({ outcome: "failed", error: expect.stringContaining("400") });
  await pi.rpc({ type: "prompt", message: "Again." });
  await pi.settled(2);
  expect(pi.receiptsOf("d1").slice(3)).toEqual(["prepared", "delivered headers 200 confirmed", "answered"]);
});

test("a connection that is reset before the headers fails the attempt, and the retry delivers", async () => {
  await using lent = await shared.use({ script: [reset(), "Understood."] });
  const { pi } = lent;
  await pi.hold(push("d1", "Hello."));
  await pi.settled();
  expect(pi.receiptsOf("d1")).toEqual([
    "inserted",
    "prepared",
    "failed confirmed",
    "prepared",
    "delivered headers 200 confirmed",
    "answered",
  ]);
});

const page = { headers: { "content-type": "text/html" }, body: "<title>Log in</title>" };

test.for(
  (["scripted", "scripted-responses", "scripted-anthropic", "scripted-google"] as const).flatMap((api) =>
    ["a page of status 200", "a redirect to one"].map((what) => [api, what] as const),
  ),
)("nothing is delivered at %s by %s, and the next request delivers", async ([api, what]) => {
  const site = createServer((_request, response) => void response.writeHead(200, page.headers).end(page.body));
  await once(site.listen(0, "127.0.0.1"), "listening");
  const location = `http://127.0.0.1:${(site.address() as AddressInfo).port}/login`;
  try {
    const first = what === "a redirect to one" ? status(303, { headers: { location } }) : status(200, page);
    await using lent = await shared.use({ script: [first], api });
    const { pi } = lent;
    await pi.hold(push("d1", "Hello."));
    const { failed } = await pi.settled();
    if (failed) {
      await pi.rpc({ type: "prompt", message: "Again." });
      await pi.settled(2);
    }
    const evidence = api === "scripted-google" ? "content" : "headers 200";
    expect(pi.receiptsOf("d1")).toEqual([
      "inserted",
      "prepared",
      expect.stringMatching(/^failed .*confirmed$/),
      "prepared",
      `delivered ${evidence} confirmed`,
      "answered",
    ]);
  } finally {
    site.closeAllConnections();
    site.close();
  }
});

test("an answer with another content type than a stream's counts as delivered at its first content", async () => {
  const mislabelled = { ...answer("Understood."), headers: { "content-type": "application/json" } };
  await using lent = await shared.use({ script: [mislabelled], api: "scripted-anthropic" });
  const { pi } = lent;
  await pi.hold(push("d1", "Hello."));
  await pi.settled();
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "delivered content 200 confirmed", "answered"]);
});

test.for([
  ["an error event", "scripted-anthropic", errorEvent()],
  ["a reset", "scripted", reset()],
] as const)(
  "%s in the middle of the answer leaves the push delivered, and the retry answers",
  async ([, api, broken]) => {
    await using lent = await shared.use({ script: [answer("Under", broken), "Understood."], api });
    const { pi } = lent;
    await pi.hold(push("d1", "Hello."));
    await pi.settled();
    expect(pi.receiptsOf("d1")).toEqual([
      "inserted",
      "prepared",
      "delivered headers 200 confirmed",
      "prepared",
      "delivered headers 200 confirmed",
      "answered",
    ]);
  },
);

test("a push during the back-off before a retry waits for the end of the retried turn", async () => {
  await using provider = await startProvider({ script: [status(529), "First.", "Second."] });
  const retry = { enabled: true, maxRetries: 2, baseDelayMs: 500, provider: { maxRetries: 0 } };
  await using pi = await startPi({ provider, settings: { retry } });
  await pi.rpc({ type: "prompt", message: "Go." });
  await pi.event("auto_retry_start");
  await pi.hold(push("d1", "Meanwhile."));
  await pi.settled();
  expect(provider.requests.map((request) => request.countText("Meanwhile."))).toEqual([0, 0, 1]);
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "delivered headers 200 confirmed", "answered"]);
});

test("an abort during the back-off parks held pushes", async () => {
  await using provider = await startProvider({ script: [status(529)] });
  const retry = { enabled: true, maxRetries: 2, baseDelayMs: 60_000, provider: { maxRetries: 0 } };
  await using pi = await startPi({ provider, settings: { retry } });
  await pi.hold(push("d1", "Sent in vain."));
  await pi.event("auto_retry_start");
  await pi.hold(push("d2", "Meanwhile."));
  await pi.rpc({ type: "abort" });
  expect(await pi.settled()).toMatchObject({ aborted: true, held: ["d2"] });
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "failed 529 confirmed"]);
});

test("a failed run starts no other run for pushes that want one, and keeps the order of all", async () => {
  const gate = new Gate();
  await using lent = await shared.use({ script: [delayed(hold(gate), status(400)), "Better."] });
  const { pi, provider } = lent;
  await pi.rpc({ type: "prompt", message: "Go." });
  await gate.reached;
  const quiet = { triggerTurn: false };
  await pi.hold(push("d1", "A note.", quiet), push("d2", "Wants a run."), push("d3", "A later note.", quiet));
  gate.open();
  expect(await pi.settled()).toMatchObject({ failed: true, held: ["d2"] });
  expect(await pi.inserted()).toEqual(["d1", "d2", "d3"]);
  expect(provider.requests).toHaveLength(1);
  expect(await pi.send({ kind: "carry" })).toEqual({ started: true });
  await pi.settled(2);
  for (const id of ["d1", "d2", "d3"]) expect(pi.receiptsOf(id).at(-1)).toBe("answered");
});

test.for([
  ["reaches the model after it", 400, ["prepared", "delivered headers 200 confirmed", "answered"]],
  ["is gone when only the summary is left of it", 10, ["leftOut compacted"]],
] as const)("a context that is too long is compacted, and the push %s", async ([, keepRecentTokens, rest]) => {
  await using provider = await startProvider({ script: ["One.", "Two.", overflow(), "A summary.", "Understood."] });
  const compaction = { enabled: true, reserveTokens: 1_000, keepRecentTokens };
  await using pi = await startPi({ provider, settings: { compaction } });
  for (const nth of [1, 2]) {
    await pi.rpc({ type: "prompt", message: "A long story. ".repeat(200) });
    await pi.settled(nth);
  }
  await pi.hold(push("d1", "And what of it? ".repeat(20)));
  await pi.settled(3);
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "failed 400 confirmed", ...rest]);
});
