import { describe, expect, it, test } from "vitest";
import { capabilities } from "../../../protocol/capability.ts";
import { Grant } from "../../../server/rpc/grant.ts";
import { Quota } from "../../../server/rpc/quota.ts";
import { authorization, http, isUsable, json, startEdge, token } from "../../helpers/edge.ts";
import { mainGrant } from "../../helpers/tokens.ts";
import { rawSocket } from "./raw-socket.ts";

const list = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "session/list" });
const guest = { authorization: "Bearer guest" };
const grants = new Map([
  ["guest", new Grant({ name: "guest", capabilities })],
  ["other", new Grant({ name: "other", capabilities })],
  [token, mainGrant],
]);
const tokens = { find: (text: string) => grants.get(text), onEnded: () => {} };
const full = (whose: string) => ({
  status: 503,
  body: {
    name: "overloaded",
    retryAfterMs: 1_000,
    detail: expect.stringMatching(new RegExp(`is the limit of ${whose}\\.$`)),
  },
});

describe("the HTTP quota of a named token", () => {
  it("is bounded in requests; the main token and the health check have their own", async () => {
    await using edge = await startEdge({ tokens, limits: { maxHttpRequests: 2, maxHttpRequestsPerToken: 1 } });
    using begun = rawSocket(edge, "unix");
    begun.socket.write(post("guest", "content-length: 2", "{"));
    const ask = () => http(edge, { path: "/v1/sessions", headers: guest });
    await expect.poll(async () => (await ask()).status).toBe(503);
    expect(await ask()).toMatchObject(full('the token "guest"'));
    expect(await http(edge, { path: "/v1/sessions", headers: { authorization: "Bearer other" } })).toMatchObject(
      full("all named tokens"),
    );
    expect(await isUsable(edge)).toBe(true);
    using waiting = rawSocket(edge, "unix");
    waiting.socket.write(post(token, "content-length: 2", "{"));
    await expect
      .poll(async () => (await http(edge, { path: "/v1/sessions", headers: authorization })).status)
      .toBe(503);
    expect((await http(edge)).status).toBe(200);
    begun.socket.destroy();
    waiting.socket.destroy();
    await expect.poll(async () => (await ask()).status).toBe(200);
  });

  it("is bounded in bytes", async () => {
    await using edge = await startEdge({ tokens, limits: { maxHttpBytesPerToken: 2_000, maxBodyBytes: 3_000 } });
    using begun = rawSocket(edge, "unix");
    begun.socket.write(post("guest", "transfer-encoding: chunked", "1\r\n{\r\n"));
    const ask = (headers: object) =>
      http(edge, { path: "/v1/rpc", method: "POST", headers: { ...json, ...headers }, body: list });
    await expect.poll(async () => (await ask(guest)).status).toBe(503);
    expect(await ask(guest)).toMatchObject(full('the token "guest"'));
    expect((await ask({})).status).toBe(200);
  });

  it("is bounded in unread answers; small ones are sent all the same", async () => {
    await using edge = await startEdge({
      tokens,
      limits: { maxUnreadHttpBytesPerToken: 100_000 },
      handlers: { "daemon/info": () => ({ text: "x".repeat(4_000_000) }) },
    });
    using deaf = rawSocket(edge, "unix");
    deaf.socket.pause();
    deaf.socket.write("GET /v1/daemon HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer guest\r\n\r\n");
    const ask = (headers: object) => http(edge, { path: "/v1/daemon", headers: { ...headers } });
    await expect.poll(async () => (await ask(guest)).status).toBe(503);
    expect(await ask(guest)).toMatchObject(full('the token "guest"'));
    expect((await http(edge, { path: "/v1/sessions", headers: guest })).status).toBe(200);
    expect((await ask(authorization)).status).toBe(200);
    deaf.socket.destroy();
    await expect.poll(async () => (await ask(guest)).status).toBe(200);
  });

  it("is released if an answer waits behind another, and their socket closes before it is there", async () => {
    const gone = Promise.withResolvers<void>();
    await using edge = await startEdge({
      tokens,
      limits: { maxUnreadHttpBytesPerToken: 100_000, maxHttpRequestsPerToken: 2 },
      handlers: {
        "session/list": async () => {
          await gone.promise;
          return { sessions: [], text: "x".repeat(4_000_000) };
        },
      },
    });
    const begun = edge.nextWait();
    using left = rawSocket(edge, "unix");
    const wait = call("delivery/wait", { deliveryId: crypto.randomUUID() });
    left.socket.write(
      post("guest", `content-length: ${wait.length}`, wait) + post("guest", `content-length: ${list.length}`, list),
    );
    const { signal } = await begun;
    left.socket.destroy();
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    gone.resolve();
    const ask = () => http(edge, { path: "/v1/sessions", headers: guest });
    // The released answer is not counted any more.
    for (let n = 0; n < 3; n += 1) expect((await ask()).status).toBe(200);
  });

  function call(method: string, params: object): string {
    return JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  }

  function post(bearer: string, length: string, body: string): string {
    const head = `POST /v1/rpc HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${bearer}`;
    return `${head}\r\ncontent-type: application/json\r\n${length}\r\n\r\n${body}`;
  }
});

test("each token has its share, all named ones together leave the rest to the main one, and released bytes are available again", () => {
  const [one, other] = [grants.get("guest"), grants.get("other")];
  const quota = new Quota({ what: "things", max: 8, maxPerToken: 4, namedTokensPercent: 75 });
  quota.add(one, 4);
  expect(quota.refusal(one, 1)?.message).toBe('4 things is the limit of the token "guest".');
  expect(quota.refusal(other, 2)).toBeUndefined();
  quota.add(other, 2);
  expect(quota.refusal(other, 1)?.message).toBe("6 things is the limit of all named tokens.");
  expect(quota.refusal(mainGrant, 2)).toBeUndefined();
  quota.add(mainGrant, 2);
  expect(quota.refusal(mainGrant, 1)?.message).toBe("8 things is the limit of all tokens.");
  quota.add(one, -4);
  expect(quota.refusal(one, 4)).toBeUndefined();
});
