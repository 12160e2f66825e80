import { describe, expect, test } from "vitest";
import { startStage } from "../helpers/stage.ts";
import { watch } from "../helpers/watcher.ts";

const apis = ["scripted", "scripted-anthropic"] as const;

describe.for(apis)("a request to %s", (api) => {
  test("is told of with the facts of its payload, and with the provider's answer", async () => {
    await using stage = await startStage({ provider: { script: ["Understood."] } });
    const session = await stage.session(api);
    await using watcher = await watch(stage.daemon.file, session.id, { provider: "summary" });
    await session.promptAndWait("Hello.");
    const [prepared, delivered] = watcher.requests();
    const [request] = stage.provider.requests;
    expect(watcher.story()).toEqual(["prepared 1", "delivered headers 200"]);
    expect(prepared?.params).toEqual({
      sessionId: session.id,
      requestId: expect.any(String),
      after: expect.any(Number),
      at: expect.any(Number),
      attempt: 1,
      deliveryIds: [],
      model: { provider: api, id: "model-1" },
      messageCount: expect.any(Number),
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
});
