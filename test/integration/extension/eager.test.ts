import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Pi, push } from "./driver.ts";
import { sharePi } from "./shared-pi.ts";

// A provider of an extension that says `start` before its request is answered, and calls none of pi's hooks.

/** Its requests; a test decides the answers. */
let eager: RequestListener = (_request, response) => void response.end();
const server = createServer((request, response) => eager(request, response));
let url = "";
beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, "close");
});

const shared = sharePi();

async function pushTo(pi: Pi): Promise<void> {
  await pi.rpc({ type: "set_model", provider: "eager", modelId: "eager-1" });
  await pi.hold(push("d1", "Hello."));
}

test("an early start is not evidence, but the first content is", async () => {
  eager = (_request, response) => response.end("Understood.");
  await using lent = await shared.use({ after: ["eager-provider"], env: { EAGER_URL: url } });
  const { pi } = lent;
  await pushTo(pi);
  await pi.settled();
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "delivered content unchecked", "answered"]);
});

test("an early start and then a refusal is a failure", async () => {
  eager = (_request, response) => response.writeHead(400).end();
  await using lent = await shared.use({ after: ["eager-provider"], env: { EAGER_URL: url } });
  const { pi } = lent;
  await pushTo(pi);
  expect(await pi.settled()).toMatchObject({ failed: true });
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "failed 400 unchecked"]);
});

test("an early start and then an abort is aborted", async () => {
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  eager = () => resolve();
  await using lent = await shared.use({ after: ["eager-provider"], env: { EAGER_URL: url } });
  const { pi } = lent;
  await pushTo(pi);
  await asked;
  await pi.rpc({ type: "abort" });
  expect(await pi.settled()).toMatchObject({ aborted: true });
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "aborted unchecked"]);
});
