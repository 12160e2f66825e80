import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { answer, call } from "../../../provider/reply.ts";
import { fixture, push } from "./driver.ts";
import { sharePi } from "./shared-pi.ts";

const shared = sharePi();
const directory = mkdtempSync(join(tmpdir(), "broken-"));
afterAll(() => rmSync(directory, { recursive: true }));

/** Every place where our code runs inside pi: the stages of the pipeline, the drafts, the other handlers. */
const places = [
  "context/map",
  "context_with_system/head",
  "context_with_system/carrier",
  "context_with_system/offer",
  "before_provider_request/presence",
  "after_provider_response/verdict",
  "message_start/verdict",
  "message_update/verdict",
  "message_end/learn",
  "message_end/verdict",
  "tool_result/cap",
  "turn_end/pushes",
  "agent_before_settle/pushes",
  "session_start",
  "input",
  "agent_start",
  "turn_end",
  "agent_before_settle",
  "agent_settled",
];

test.for(places)("a throw in %s is reported, and breaks no model call", async (place) => {
  // The start of pi's first session is a place of its own.
  const file = join(directory, place === "session_start" ? "of-the-first-session" : "of-any");
  writeFileSync(file, place);
  await using lent = await shared.use({
    script: [answer("Let me see.", call("bash", { command: "echo fine" })), "It is fine.", "And this."],
    entry: fixture("broken"),
    env: { BROKEN_FILE: file },
  });
  const { pi, provider } = lent;
  await pi.rpc({ type: "prompt", message: "Is it?" });
  await pi.event("agent_settled");
  const { where, error } = await pi.frame("fault");
  expect(where).toBe(place);
  expect(error).toBe(`${place} is broken`);
  expect(provider.requests.map(({ outcome, violations }) => [outcome, violations])).toEqual([
    ["answered", []],
    ["answered", []],
  ]);
  expect(provider.requests[1]?.countText("fine\n", { roles: ["tool"] })).toBe(1);
  expect(pi.log.records.filter(({ type }) => type === "extension_error")).toEqual([]);
  // Whatever is broken, receipts never claim more than happened.
  await pi.hold(push("d1", "What of this?", { triggerTurn: false }));
  await pi.rpc({ type: "prompt", message: "And?" });
  await pi.log.until(() => pi.log.records.filter(({ type }) => type === "agent_settled").length === 2);
  expect(provider.requests).toHaveLength(3);
  const isDelivered = pi.receiptsOf("d1").some((step) => step.startsWith("delivered"));
  const carried = provider.requests[2]?.countText("What of this?") ?? 0;
  expect(carried).toBeLessThanOrEqual(1);
  expect(carried).toBeGreaterThanOrEqual(isDelivered ? 1 : 0);
  expect(await pi.inserted()).toHaveLength(carried);
});
