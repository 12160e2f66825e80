import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { patience } from "../../helpers/patience.ts";
import { refusedHeads } from "./heads.ts";
import { goodCall, Target, transports, upgradeHeaders } from "./target.ts";

const allowed = "https://app.example:8443";

let target: Target;
beforeAll(async () => {
  target = await Target.start({ maxRefusedTokensPerMinute: 100_000 }, { allowedOrigins: [allowed] });
});
afterAll(async () => await target[Symbol.asyncDispose]());

const rpc = [`content-type: application/json`, `content-length: ${goodCall.length}`];

/** One request whose head is written unchanged. */
const head = (line: string, headers: readonly string[]): string =>
  `${[`${line} HTTP/1.1`, ...headers].join("\r\n")}\r\n\r\n`;

describe.each(transports)("a refused peer over %s", (transport) => {
  test.each(refusedHeads)(
    "is refused both on HTTP and at the upgrade, before anything is read: $title",
    async (refused) => {
      const { status } = refused;
      const headers = refused.headers(target);
      const query = refused.query?.(target) ?? "";
      const asked = [
        `${head(`POST /v1/rpc${query}`, [...headers, ...rpc])}${goodCall}`,
        head(`GET /v1/deliveries${query}`, headers),
        head(`GET /v1/ws${query}`, [...headers, ...upgradeHeaders]),
        head(`GET /v0/sessions/nobody${query}`, [...headers, ...upgradeHeaders]),
        // Where there is nothing, an unauthorised peer does not learn it.
        head(`GET /nowhere${query}`, headers),
        // It does not wait for a body that never comes.
        head(`POST /v1/rpc${query}`, [...headers, "content-type: application/json", "content-length: 1000"]),
        ...(status === 403 ? [head(`GET /healthz${query}`, headers)] : []),
      ];
      for (const text of asked) {
        using raw = target.raw(transport);
        raw.socket.write(text);
        const received = await raw.until((heard) => heard.includes('"retryable"') && heard.endsWith("}"));
        expect(received).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
        expect(received).toContain(status === 403 ? '"name":"forbidden"' : '"name":"unauthorized"');
        expect(received).not.toMatch(/access-control-/i);
        expect(received).not.toContain(target.token);
      }
      expect(await target.isUsable()).toBe(true);
    },
  );

  test("that is a page gets a preflight answer that allows nothing", async () => {
    for (const origin of ["https://evil.example", allowed]) {
      using raw = target.raw(transport);
      raw.socket.write(
        head("OPTIONS /v1/rpc", [
          `host: localhost:${target.port}`,
          `origin: ${origin}`,
          "access-control-request-method: POST",
          "access-control-request-headers: authorization, content-type",
        ]),
      );
      const received = await raw.until((heard) => heard.endsWith("}"));
      expect(received).toMatch(/^HTTP\/1\.1 40[13] /);
      expect(received).not.toMatch(/access-control-/i);
    }
  });

  test("is distinguished from an allowed one: the allowed page with the token, with it as a subprotocol, and no page", async () => {
    const host = `host: localhost:${target.port}`;
    const bearer = `authorization: Bearer ${target.token}`;
    for (const headers of [
      [host, bearer],
      [host, bearer, `origin: ${allowed}`],
      [host, `origin: ${allowed}`, `sec-websocket-protocol: pi-rpcd.v1, pi-rpcd.token.${target.token}`],
    ]) {
      using raw = target.raw(transport);
      raw.socket.write(head("GET /v1/ws", [...headers, ...upgradeHeaders]));
      const received = await raw.until((heard) => heard.includes("\r\n\r\n"));
      expect(received).toMatch(/^HTTP\/1\.1 101 /);
      expect(received).not.toContain(target.token);
    }
    await vi.waitUntil(async () => (await target.connections()) === 1, patience);
  });
});

test("a refused peer leaves nothing", async () => {
  expect(await target.isUsable()).toBe(true);
  expect(await target.growth()).toBeLessThan(1.1);
});
