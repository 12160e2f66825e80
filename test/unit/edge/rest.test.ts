import { describe, expect, it, test } from "vitest";
import type { Delivery } from "../../../protocol/delivery.ts";
import { WireError } from "../../../protocol/errors.ts";
import { type MethodRow, routeOf } from "../../../protocol/method-row.ts";
import { methods } from "../../../protocol/methods.ts";
import type { Transport } from "../../../server/edge/admission.ts";
import { authorization, deliveryId, http, isUsable, json, startEdge } from "../../helpers/edge.ts";

const sessionId = "01920000-0000-7000-8000-0000000000aa";

/** An edge whose delivery methods return their params. */
function startEchoing() {
  const echo = (params: unknown): unknown => ({ params });
  return startEdge({
    handlers: {
      "delivery/push": echo,
      "delivery/wait": echo,
      "delivery/get": echo,
      "delivery/list": echo,
      "delivery/cancel": echo,
      "delivery/resend": echo,
    },
  });
}

const push = { customType: "n", content: "hello" };

describe.each<Transport>(["tcp", "unix"])("a path of the method table over %s", (transport) => {
  it.each<[string, string, unknown, unknown]>([
    ["POST", `/v1/sessions/${sessionId}/deliveries`, push, { ...push, sessionId }],
    [
      "POST",
      `/v1/sessions/${sessionId}/deliveries?until=delivered&timeoutMs=500`,
      push,
      { ...push, sessionId, until: "delivered", timeoutMs: 500 },
    ],
    ["GET", `/v1/deliveries/${deliveryId}`, undefined, { deliveryId }],
    [
      "GET",
      `/v1/deliveries/${deliveryId}?until=answered&timeoutMs=0`,
      undefined,
      { deliveryId, until: "answered", timeoutMs: 0 },
    ],
    ["GET", "/v1/deliveries?states=held,parked&limit=2", undefined, { states: ["held", "parked"], limit: 2 }],
    ["GET", "/v1/deliveries?states=held&states=parked", undefined, { states: ["held", "parked"] }],
    ["POST", `/v1/deliveries/${deliveryId}/cancel`, undefined, { deliveryId }],
    ["POST", `/v1/deliveries/${deliveryId}/resend`, {}, { deliveryId }],
  ])("%s %s calls its method", async (method, path, body, params) => {
    await using edge = await startEchoing();
    const sent = {
      transport,
      method,
      path,
      headers: json,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    const answer = await http(edge, sent);
    expect(answer.status).toBe(200);
    expect(answer.headers["content-type"]).toMatch(/^application\/json/);
    expect(answer.body).toEqual({ params });
  });

  it.each<[string, string, string, string | undefined, number, string]>([
    ["an unknown name in the query", "GET", "/v1/deliveries?colour=red", undefined, 400, "invalid_params"],
    ["an invalid number", "GET", "/v1/deliveries?limit=many", undefined, 400, "invalid_params"],
    ["a number out of bounds", "GET", "/v1/deliveries?limit=99999999999999999999", undefined, 400, "invalid_params"],
    ["a name that is given twice", "GET", "/v1/deliveries?limit=1&limit=2", undefined, 400, "invalid_params"],
    ["a prototype in the query", "GET", "/v1/deliveries?__proto__=1", undefined, 400, "invalid_params"],
    ["an invalid id", "GET", "/v1/deliveries/%2e%2e%2fetc", undefined, 400, "invalid_params"],
    [
      "a param in the path and in the body",
      "POST",
      `/v1/sessions/${sessionId}/deliveries`,
      JSON.stringify({ ...push, sessionId }),
      400,
      "invalid_params",
    ],
    ["a body that is not an object", "POST", `/v1/sessions/${sessionId}/deliveries`, "[1]", 400, "invalid_params"],
    ["a body that is not valid JSON", "POST", `/v1/sessions/${sessionId}/deliveries`, "{", 400, "parse_error"],
    [
      "a body with a prototype",
      "POST",
      `/v1/sessions/${sessionId}/deliveries`,
      '{"__proto__":{}}',
      400,
      "invalid_request",
    ],
    [
      "empty content",
      "POST",
      `/v1/sessions/${sessionId}/deliveries`,
      '{"customType":"n","content":""}',
      400,
      "invalid_params",
    ],
    ["another verb", "DELETE", `/v1/deliveries/${deliveryId}`, undefined, 405, "method_not_found"],
  ])("answers %s by name", async (_title, method, path, body, status, name) => {
    await using edge = await startEchoing();
    const answer = await http(edge, {
      transport,
      method,
      path,
      headers: json,
      ...(body === undefined ? {} : { body }),
    });
    expect(answer.status).toBe(status);
    expect(answer.headers["content-type"]).toMatch(/^application\/problem\+json/);
    expect(answer.body).toMatchObject({ status, name });
    expect(await isUsable(edge)).toBe(true);
  });

  it("refuses a body that is not JSON by its type, and a call without a token", async () => {
    await using edge = await startEchoing();
    const path = `/v1/sessions/${sessionId}/deliveries`;
    const body = JSON.stringify(push);
    const text = { ...authorization, "content-type": "text/plain" };
    expect((await http(edge, { transport, method: "POST", path, headers: text, body })).status).toBe(415);
    const bare = { "content-type": "application/json" };
    expect((await http(edge, { transport, method: "POST", path, headers: bare, body })).status).toBe(401);
  });
});

test("an error of a method is a problem with the error's own status and data", async () => {
  const delivery = { deliveryId, state: "held" } as Partial<Delivery>;
  await using edge = await startEdge({
    handlers: {
      "delivery/wait": () => {
        throw new WireError("deadline_exceeded", "The delivery was not delivered within 5 ms.", { delivery });
      },
    },
  });
  const path = `/v1/deliveries/${deliveryId}?until=delivered&timeoutMs=5`;
  const answer = await http(edge, { method: "GET", path, headers: authorization });
  expect(answer.status).toBe(504);
  expect(answer.body).toMatchObject({ name: "deadline_exceeded", retryable: true, delivery });
});

test("a caller that disconnects ends its wait", async () => {
  await using edge = await startEdge();
  const waiting = edge.nextWait();
  const caller = new AbortController();
  const url = `http://127.0.0.1:${edge.port}/v1/deliveries/${deliveryId}?until=delivered`;
  const asked = fetch(url, { headers: authorization, signal: caller.signal }).catch(() => "gone");
  const { signal } = await waiting;
  const ended = new Promise((resolve) => signal.addEventListener("abort", resolve));
  caller.abort();
  await ended;
  expect(await asked).toBe("gone");
});

test("every name in a path is a param of its method, and no two rows claim the same requests", () => {
  const claims = Object.entries<MethodRow>(methods).flatMap(([method, row]) => {
    const { params } = row;
    const route = routeOf(row);
    if (route === undefined) return [];
    const { properties } = params as unknown as { readonly properties: object };
    for (const [, name] of route.path.matchAll(/\{(\w+)\}/g)) expect([method, properties]).toHaveProperty(`1.${name}`);
    return [`${route.verb} ${route.path.replaceAll(/\{\w+\}/g, "{}")} ${route.ifQuery ?? ""} ${route.stream ?? false}`];
  });
  expect(new Set(claims).size).toBe(claims.length);
  expect(claims.length).toBeGreaterThan(0);
});
