import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { capabilities } from "../../../protocol/capability.ts";
import { Grant } from "../../../server/rpc/grant.ts";
import { http, startEdge } from "../../helpers/edge.ts";

const guest = new Grant({ name: "guest", capabilities });
const other = new Grant({ name: "other", capabilities });
const tokens = { find: (text: string) => (text === "guest" ? guest : undefined), onEnded: () => {} };
const headers = { authorization: "Bearer guest", "content-type": "application/json" };

function work(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until; );
}

it.each(["/v1/sessions", "/metrics"])(
  "writes the answer to GET %s in the token's turn, after another token's work",
  async (path) => {
    const order: string[] = [];
    const answered = async (result: object): Promise<object> => {
      // Outside the call's own turn, which may be the last in its lane and would reset the slice.
      await turn();
      const [mine, others] = [edge.dispatcher.lane(guest), edge.dispatcher.lane(other)];
      // Both tokens use their slices, the guest more of the thread, however long it takes on a loaded machine.
      others.count(() => work(1));
      do mine.count(() => work(1));
      while (mine.usedMs <= others.usedMs);
      void others.pass(() => order.push("other"));
      return result;
    };
    const written = (): string => {
      order.push("written");
      return "gauge";
    };
    const type = { toJSON: written, toString: written };
    await using edge = await startEdge({
      tokens,
      handlers: {
        "session/list": () => answered({ sessions: [type] }),
        "daemon/metrics": () => answered({ metrics: [{ name: "pi_rpcd_up", help: "up", type }] }),
      },
    });
    expect((await http(edge, { path, headers })).status).toBe(200);
    expect(order).toEqual(["other", "written"]);
  },
);

it("attributes the time of reading a body to its token", async () => {
  await using edge = await startEdge({ tokens });
  // Refused after it is read, because params must be an object.
  const body = JSON.stringify(Array.from({ length: 200_000 }, () => 1));
  const readMs = Array.from({ length: 5 }, () => {
    const from = performance.now();
    JSON.parse(body);
    return performance.now() - from;
  });
  const path = `/v1/sessions/${crypto.randomUUID()}/prompts`;
  expect((await http(edge, { method: "POST", path, headers, body })).status).toBe(400);
  expect(edge.dispatcher.lane(guest).usedMs).toBeGreaterThan(Math.min(...readMs) / 2);
});
