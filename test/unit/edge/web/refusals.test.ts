import { expect, test, vi } from "vitest";
import { http } from "../../../helpers/edge.ts";
import { exchange, openPageSocket, post, signIn, startWebPage } from "../../../helpers/web-page.ts";
import { rawSocket } from "../raw-socket.ts";

test("a code works once, not late, not from another origin or host, not in a query, and not by another content type", async () => {
  await using console = startWebPage({ limits: { webCodeMs: 1 } });
  const { page } = console;
  const printed = await page.open({ print: true });
  const late = await page.open({});
  const { port } = printed;
  await expect.poll(() => late.expiresAt < Date.now()).toBe(true);
  expect(await exchange(late)).toMatchObject({ status: 401, body: { name: "unauthorized" } });
  const refused: readonly (readonly [Record<string, string | undefined>, number])[] = [
    [{ origin: undefined }, 403],
    [{ origin: "null" }, 403],
    [{ origin: "https://evil.example" }, 403],
    [{ origin: `http://127.0.0.1:${port === 1 ? 2 : port - 1}` }, 403],
    [{ origin: `https://127.0.0.1:${port}` }, 403],
    [{ origin: `http://localhost:${port}` }, 403],
    [{ host: `localhost:${port}` }, 403],
    [{ host: `[::1]:${port}` }, 403],
    [{ host: "127.0.0.1" }, 403],
    [{ host: `127.0.0.1.:${port}` }, 403],
    [{ host: `127.1:${port}` }, 403],
    [{ host: "evil.example" }, 403],
    [{ "content-type": "text/plain" }, 415],
    [{ "content-type": undefined }, 415],
  ];
  for (const [headers, status] of refused) {
    const { headers: answered, ...given } = await exchange(printed, headers);
    expect([headers, given.status, answered["content-type"]]).toEqual([headers, status, "application/problem+json"]);
  }
  expect((await post(port, `/exchange?code=${printed.code}`, "{}")).status).toBe(401);
  expect((await post(port, `http://127.0.0.1:${port}/exchange`, JSON.stringify(printed))).status).toBe(403);
  for (const body of ["", "{", "[]", '{"code":1}', `{"code":"${printed.code}x"}`, '{"code":""}'])
    expect([body, (await post(port, "/exchange", body)).status]).toEqual([body, 401]);
  expect((await post(port, "/exchange", `{"code":"${"x".repeat(2_000)}"}`)).status).toBe(413);
  expect((await exchange(printed)).status).toBe(200);
  expect((await exchange(printed)).status).toBe(401);
});

test("the other names of the loopback interface are refused with the reason", async () => {
  await using console = startWebPage();
  const { port, url } = await console.page.open({});
  for (const host of [`localhost:${port}`, `[::1]:${port}`, "localhost"]) {
    const { status, body } = await http({ port, socketPath: "" }, { path: "/", headers: { host } });
    expect([host, status, body.name]).toEqual([host, 403, "forbidden"]);
    expect(body.detail).toBe(
      `The page is at ${url} only: another program may have this port under the other names of this machine.`,
    );
  }
  const own = `Host: 127.0.0.1:${port}\r\n`;
  for (const head of ["", own + own, `${own}Host: localhost\r\n`]) {
    using raw = rawSocket({ port, socketPath: "" });
    raw.socket.write(`GET / HTTP/1.1\r\n${head}\r\n`);
    expect(await raw.until((text) => text.includes("}"))).toMatch(/^HTTP\/1\.1 403 /);
  }
});

test("a web token works at this WebSocket alone, with its exact Origin and Host", async () => {
  await using console = startWebPage();
  const open = await console.page.open({});
  const { port } = open;
  const token = await signIn(open);
  const refused: readonly (readonly [Record<string, string | undefined>, string, string])[] = [
    [{ origin: undefined }, "/ws", "403"],
    [{ origin: "null" }, "/ws", "403"],
    [{ origin: `http://127.0.0.1:${port === 1 ? 2 : port - 1}` }, "/ws", "403"],
    [{ origin: `http://localhost:${port}`, host: `localhost:${port}` }, "/ws", "403"],
    [{ host: `[::1]:${port}` }, "/ws", "403"],
    [{}, `/ws?token=${token}`, "404"],
    [{}, "/v1/ws", "404"],
    [{}, "/acp", "404"],
    [{}, "/", "404"],
  ];
  for (const [headers, path, status] of refused)
    await expect(openPageSocket(port, token, headers, path), JSON.stringify([headers, path])).rejects.toThrow(status);
  await expect(openPageSocket(port, `${token}x`)).rejects.toThrow("401");
  await expect(openPageSocket(port, "", { authorization: `Bearer ${token}` })).rejects.toThrow("401");
  await expect(openPageSocket(port, "", {}, `/ws?token=${token}`)).rejects.toThrow("401");
  // The daemon's own paths are not here.
  for (const path of ["/v1/rpc", "/healthz", "/metrics", "/v1/daemon"]) {
    const headers = {
      authorization: `Bearer ${token}`,
      origin: `http://127.0.0.1:${port}`,
      "content-type": "application/json",
    };
    for (const method of ["GET", "POST"])
      expect([path, (await http({ port, socketPath: "" }, { method, path, headers, body: "{}" })).status]).toEqual([
        path,
        404,
      ]);
  }
  await using socket = await openPageSocket(port, token);
  expect(socket.raw.protocol).toBe("pi-rpcd.v1");
  expect((await socket.call("session/list")).result).toEqual({ sessions: [] });
});

test("1,000 calls of another origin count for nothing; wrong codes and tokens do, and keep no owner out", async () => {
  await using console = startWebPage({ edgeLimits: { maxRefusedTokensPerMinute: 3 } });
  const open = await console.page.open({});
  const { port } = open;
  const origin = "https://evil.example";
  for (let at = 0; at < 100; at += 1) {
    const all = await Promise.all(
      Array.from({ length: 5 }, () => [
        exchange({ port, code: "guess" }, { origin }).then(({ status }) => status),
        openPageSocket(port, "guess", { origin }).catch(({ message }: Error) => Number(/\d{3}/.exec(message)?.[0])),
      ]).flat(),
    );
    expect(new Set(all)).toEqual(new Set([403]));
  }
  for (let at = 0; at < 2; at += 1) expect((await exchange({ port, code: "guess" })).status).toBe(401);
  await expect(openPageSocket(port, "guess")).rejects.toThrow("401");
  // Above the rate there is no answer.
  await expect(exchange({ port, code: "guess" })).rejects.toThrow("hang up");
  await expect(openPageSocket(port, "guess")).rejects.toThrow("hang up");
  const token = await signIn(open);
  await using socket = await openPageSocket(port, token);
  expect((await socket.call("session/list")).result).toEqual({ sessions: [] });
});

test("codes and tokens are bounded: a further code waits, a further token replaces one that nobody uses", async () => {
  await using console = startWebPage({ limits: { maxWebCodes: 2, maxWebTokens: 2 } });
  const { page, tokens } = console;
  const [first, second] = [await page.open({}), await page.open({})];
  await expect(page.open({})).rejects.toMatchObject({ kind: "overloaded", data: { retryAfterMs: expect.any(Number) } });
  const [one, two] = [await signIn(first), await signIn(second)];
  const { port } = first;
  await using used = await openPageSocket(port, one);
  const three = await signIn(await page.open({}));
  expect([tokens.find(one)?.name, tokens.find(two), tokens.find(three)?.name]).toEqual(["web-1", undefined, "web-4"]);
  await using also = await openPageSocket(port, three);
  const full = await exchange(await page.open({}));
  expect([full.status, full.body.name]).toEqual([503, "overloaded"]);
  for (const socket of [used, also]) expect((await socket.call("session/list")).result).toEqual({ sessions: [] });
});

test("has the limits of the daemon's sockets: heads, frames, connections of a token, sockets without one", async () => {
  const edgeLimits = {
    maxFrameBytes: 1_000,
    maxConnectionsPerToken: 2,
    maxSocketsWithoutToken: 2,
  };
  await using console = startWebPage({ edgeLimits });
  const open = await console.page.open({});
  const { port } = open;
  const where = { port, socketPath: "" };
  const token = await signIn(open);
  const cookie = "x".repeat(17_000);
  expect((await http(where, { path: "/", headers: { cookie } })).status).toBe(431);
  await using first = await openPageSocket(port, token);
  await using second = await openPageSocket(port, token);
  await expect(openPageSocket(port, token)).rejects.toThrow("503");
  first.send({ jsonrpc: "2.0", id: 1, method: "session/list", params: { filler: "x".repeat(1_000) } });
  expect((await first.closed).code).toBe(1009);
  const [oldest, ...others] = Array.from({ length: 3 }, () => rawSocket(where));
  expect(await oldest?.ended).toBe("");
  expect((await http(where, { path: "/" })).status).toBe(200);
  expect((await second.call("session/list")).result).toEqual({ sessions: [] });
  for (const socket of others) socket[Symbol.dispose]();
  await using impatient = startWebPage({ edgeLimits: { headersTimeoutMs: 50 } });
  using slow = rawSocket({ ...where, port: (await impatient.page.open({})).port });
  slow.socket.write("GET / HTTP/1.1\r\n");
  expect(await slow.ended).toMatch(/^HTTP\/1\.1 408 /);
});

test("a token ends 12 hours after its last connection, and not during one", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  try {
    const { WebTokens } = await import("../../../../server/rpc/web-tokens.ts");
    const hours = 3_600_000;
    const tokens = new WebTokens({ limits: { maxWebTokens: 4, webTokenIdleMs: 12 * hours }, isTaken: () => false });
    const ended: string[] = [];
    tokens.onEnded(({ name }) => ended.push(name));
    const token = tokens.create("web-1", ["observe"]);
    const never = tokens.create("web-2", ["observe"]);
    const grant = tokens.find(token);
    if (grant === undefined) throw new Error("there is no grant");
    tokens.connected(grant, 1);
    vi.advanceTimersByTime(24 * hours);
    expect([ended, tokens.find(never)]).toEqual([["web-2"], undefined]);
    tokens.connected(grant, -1);
    vi.advanceTimersByTime(12 * hours - 1);
    expect(tokens.find(token)).toBe(grant);
    vi.advanceTimersByTime(1);
    expect([ended, grant.isEnded, tokens.find(token)]).toEqual([["web-2", "web-1"], true, undefined]);
    // Timers stand still while the machine sleeps.
    const asleep = tokens.create("web-3", ["observe"]);
    vi.setSystemTime(Date.now() + 12 * hours);
    expect(tokens.find(asleep)).toBeUndefined();
    expect(ended).toHaveLength(3);
  } finally {
    vi.useRealTimers();
  }
});

test("neither a code nor a token is in the log", async () => {
  await using console = startWebPage();
  const open = await console.page.open({});
  const token = await signIn(open);
  await exchange(open);
  await openPageSocket(open.port, token, { origin: "https://evil.example" }).catch(() => {});
  await using socket = await openPageSocket(open.port, token);
  await socket.call("session/list");
  const log = console.logged.join("");
  expect(log).toContain("signed in");
  for (const secret of [open.code, token]) expect(log).not.toContain(secret);
});
