import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import type { OutwardFrame } from "../../../protocol/link-outward.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, cut, delayed, errorEvent, hold, type Reply, reset, status } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { type Pi, push, startPi } from "./driver.ts";
import { sharePi } from "./shared-pi.ts";

const shared = sharePi();

// The helper's reports of requests while there is a subscriber.

const apis = ["scripted", "scripted-anthropic"] as const;

async function watch(pi: Pi, provider = "summary"): Promise<void> {
  await pi.send({ kind: "watch", provider, bodyPrefix: `${pi.directory}/body-`, maxBodyBytes: 1_000_000 });
}

async function prompt(pi: Pi, message: string, nth: number): Promise<void> {
  await pi.rpc({ type: "prompt", message });
  await pi.settled(nth);
}

/** The reports of requests, in a few words each. */
function reports(pi: Pi): string[] {
  return pi.log.frames.flatMap((frame: OutwardFrame) => {
    if (frame.kind === "request") return [frame.payloadSha256 === undefined ? "request unseen" : "request"];
    if (frame.kind !== "requestEnd") return [];
    return [[frame.outcome, frame.evidence, frame.status].filter((word) => word !== undefined).join(" ")];
  });
}

test("nothing is reported without a subscriber, nor after the last has left", async () => {
  await using lent = await shared.use();
  const { pi } = lent;
  await prompt(pi, "One.", 1);
  await watch(pi);
  await prompt(pi, "Two.", 2);
  await watch(pi, "off");
  await prompt(pi, "Three.", 3);
  expect(reports(pi)).toEqual(["request", "delivered headers 200"]);
});

test("an abort during a tool makes a request that never leaves: it has no payload, and is aborted", async () => {
  await using lent = await shared.use();
  const { pi, provider } = lent;
  const { command } = pi.blockingCommand();
  provider.add(answer(call("bash", { command })));
  await watch(pi);
  await pi.rpc({ type: "prompt", message: "Go." });
  await pi.event("tool_execution_start");
  await pi.rpc({ type: "abort" });
  await pi.settled();
  expect(provider.requests).toHaveLength(1);
  expect(reports(pi)).toEqual(["request", "delivered headers 200", "request unseen", "aborted"]);
});

test.for(apis)("credentials that are refused fail at %s", async (api) => {
  await using lent = await shared.use({ script: [status(401)], api });
  const { pi } = lent;
  await watch(pi);
  await prompt(pi, "Hello.", 1);
  expect(reports(pi)).toEqual(["request", "failed 401"]);
});

test("a provider of an extension that calls no hooks is reported with its first content", async () => {
  const server = createServer((_request, response) => response.end("Understood.")).listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    await using provider = await startProvider();
    await using pi = await startPi({ provider, after: ["eager-provider"], env: { EAGER_URL: url } });
    await pi.rpc({ type: "set_model", provider: "eager", modelId: "eager-1" });
    await watch(pi, "payload");
    await pi.hold(push("d1", "Hello."));
    await pi.settled();
    expect(reports(pi)).toEqual(["request unseen", "delivered content"]);
    expect(pi.frames("request")[0]).toMatchObject({ deliveryIds: ["d1"], model: { provider: "eager", id: "eager-1" } });
    expect(pi.frames("requestEnd")[0]).not.toHaveProperty("headers");
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test.for([
  ["before the headers", (gate: Gate) => delayed(hold(gate), answer("Understood."))],
  ["in the middle of the answer", (gate: Gate) => answer("Under", hold(gate), "stood.")],
] as const)("cache-warming requests %s are not told of", async ([, reply]) => {
  const gate = new Gate();
  // pi warms ten seconds before the end of this lifetime.
  const model = { id: "model-1", promptCache: { short: 11, long: 11 } };
  await using lent = await shared.use({
    script: [reply(gate)],
    api: "scripted-anthropic",
    models: [model],
    settings: { cacheWarming: "streaming" },
    after: ["always-warm"],
  });
  const { pi, provider } = lent;
  await watch(pi);
  await pi.rpc({ type: "prompt", message: "Hello." });
  await provider.waitForRequest(({ isWarming }) => isWarming);
  gate.open();
  await pi.settled();
  await prompt(pi, "And now?", 2);
  expect(provider.requests.filter(({ isWarming }) => isWarming)).not.toEqual([]);
  const own = provider.requests.filter(({ isWarming }) => !isWarming);
  expect(pi.frames("request").map(({ payloadSha256 }) => payloadSha256)).toEqual(
    own.map(({ bodySha256 }) => bodySha256),
  );
  expect(pi.frames("requestEnd").map(({ outcome }) => outcome)).toEqual(["delivered", "delivered"]);
});

/** Replies of all kinds, in an irregular order. */
function* mixed(): Generator<Reply> {
  const replies = [
    answer("Fine.", " Really."),
    status(529),
    answer(call("bash", { command: "true" })),
    reset(),
    answer("Fi", reset()),
    status(400),
    answer("Fi", errorEvent()),
    answer("Fi", cut()),
  ];
  for (let i = 1; ; i = (i * 5 + 3) % 8_191) yield replies[i % replies.length] as Reply;
}

test.for(apis)(
  "through mixed faults at %s, each request is reported once, and delivered if it was answered",
  async (api) => {
    const replies = mixed();
    await using lent = await shared.use({ otherwise: () => replies.next().value as Reply, api });
    const { pi, provider } = lent;
    await watch(pi);
    for (let round = 1; round <= 25; round += 1) {
      if (round % 3 === 0) await pi.hold(push(`d${round}`, `Push ${round}.`));
      else await pi.rpc({ type: "prompt", message: `Prompt ${round}.` });
      await pi.settled(round);
    }
    const [told, ends] = [pi.frames("request"), pi.frames("requestEnd")];
    expect(provider.requests.length).toBeGreaterThan(30);
    expect(told.map(({ payloadSha256 }) => payloadSha256)).toEqual(
      provider.requests.map(({ bodySha256 }) => bodySha256),
    );
    expect(ends.map(({ requestId }) => requestId)).toEqual(told.map(({ requestId }) => requestId));
    expect(ends.map(({ outcome }) => outcome)).toEqual(
      provider.requests.map((request) => (request.status === 200 ? "delivered" : "failed")),
    );
    expect(pi.frames("fault")).toEqual([]);
  },
);
