import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { startProvider } from "../../../provider/server.ts";
import { type Pi, push, startPi } from "./driver.ts";

// A provider of an extension that says `start` before its request is answered, and calls none of pi's hooks.

async function startEager(listener: RequestListener): Promise<{ url: string } & AsyncDisposable> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

async function pushTo(pi: Pi): Promise<void> {
  await pi.rpc({ type: "set_model", provider: "eager", modelId: "eager-1" });
  await pi.hold(push("d1", "Hello."));
}

test("an early start is no evidence: the first content is", async () => {
  await using eager = await startEager((_request, response) => response.end("Understood."));
  await using provider = await startProvider();
  await using pi = await startPi({ provider, after: ["eager-provider"], env: { EAGER_URL: eager.url } });
  await pushTo(pi);
  await pi.settled();
  expect(pi.story("d1")).toEqual(["inserted", "prepared", "delivered content unchecked", "answered"]);
});

test("an early start and then a refusal is a failure", async () => {
  await using eager = await startEager((_request, response) => response.writeHead(400).end());
  await using provider = await startProvider();
  await using pi = await startPi({ provider, after: ["eager-provider"], env: { EAGER_URL: eager.url } });
  await pushTo(pi);
  expect(await pi.settled()).toMatchObject({ failed: true });
  expect(pi.story("d1")).toEqual(["inserted", "prepared", "failed 400 unchecked"]);
});

test("an early start and then an abort is aborted", async () => {
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  await using eager = await startEager(() => resolve());
  await using provider = await startProvider();
  await using pi = await startPi({ provider, after: ["eager-provider"], env: { EAGER_URL: eager.url } });
  await pushTo(pi);
  await asked;
  await pi.rpc({ type: "abort" });
  expect(await pi.settled()).toMatchObject({ aborted: true });
  expect(pi.story("d1")).toEqual(["inserted", "prepared", "aborted unchecked"]);
});
