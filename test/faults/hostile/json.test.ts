import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Transport } from "../../../server/edge/admission.ts";
import type { Unchecked } from "../../helpers/unchecked.ts";
import { goodCall, Target } from "./target.ts";
import { type HostileText, hostileTexts } from "./texts.ts";

let target: Target;
beforeAll(async () => {
  target = await Target.start();
});
afterAll(async () => await target[Symbol.asyncDispose]());

/** Each text is sent both ways. */
const transportOf = (at: number): Transport => (at % 2 === 0 ? "tcp" : "unix");
const table = hostileTexts.map((hostile, at) => ({
  ...hostile,
  transport: transportOf(at),
  other: transportOf(at + 1),
}));

function check(answer: Unchecked, { name, whole = false }: HostileText): void {
  if (name === undefined) expect(answer).toHaveProperty("result");
  else expect(answer.error?.data?.name).toBe(name);
  if (whole) expect(answer.id).toBeNull();
  // An error repeats nothing of the input except the id.
  expect(JSON.stringify({ ...answer, id: 0 }).length).toBeLessThan(10_000);
}

describe("hostile JSON is answered by name", () => {
  test.each(table)(
    "as a frame, or its connection is closed as RFC 6455 requires: $title",
    async ({ transport, ...hostile }) => {
      await using webSocket = await target.webSocket(transport);
      webSocket.raw.send(Buffer.from(hostile.text()), { binary: false });
      if (hostile.closed !== undefined) {
        expect(await webSocket.closed).toMatchObject({ code: hostile.closed });
      } else {
        const answer = await webSocket.next();
        check(Array.isArray(answer) ? answer[0] : answer, hostile);
        expect(await webSocket.call("daemon/info")).toHaveProperty("result");
      }
      expect(await target.isUsable()).toBe(true);
    },
  );

  test.each(table)("as a body: $title", async ({ other, ...hostile }) => {
    const { status, body } = await target.post(other, Buffer.from(hostile.text()));
    const answer = Array.isArray(body) ? body[0] : body;
    check(answer, hostile);
    expect([status, answer.id]).toEqual(hostile.whole ? [400, null] : [expect.any(Number), answer.id]);
    expect(await target.isUsable()).toBe(true);
  });

  test.each(table.filter(({ aloneOnly }) => aloneOnly !== true))(
    "as a member of a batch: $title",
    async ({ transport, ...hostile }) => {
      const text = Buffer.from(hostile.text());
      const batch = Buffer.concat([Buffer.from("["), text, Buffer.from(`,${goodCall}]`)]);
      const { body } = await target.post(transport, batch);
      if (hostile.whole === true) check(body, hostile);
      else {
        expect(body).toHaveLength(2);
        check(body[0], hostile);
        expect(body[1]).toMatchObject({ id: "good", result: expect.anything() });
      }
      expect(await target.isUsable()).toBe(true);
    },
  );

  test("and does not increase the daemon's memory", async () => {
    expect(await target.growth()).toBeLessThan(1.1);
  });
});
