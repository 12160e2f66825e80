import { expect, test } from "vitest";
import type { Port, SessionNotification } from "../../../../acp/port.ts";
import type { SessionParts } from "../../../../acp/session-version.ts";
import { SecondVersion } from "../../../../acp/v2/session-version.ts";
import { acpFindings } from "../../../helpers/acp-schema.ts";
import { unchecked } from "../../../helpers/partial.ts";
import type { Unchecked } from "../../../helpers/unchecked.ts";

const usage = { usage: { input: 1, output: 2, cacheRead: 0, cacheWrite: 0 }, cost: 0.5 };

function start(): { version: SecondVersion; told: Unchecked[] } {
  const told: Unchecked[] = [];
  const parts = {
    sessionId: "s",
    send: (update: object) => void told.push(update),
    runningTools: () => 1,
    usageOf: () => usage,
    left: new AbortController().signal,
  };
  return { version: new SecondVersion(parts as unknown as SessionParts), told };
}

function notify(version: SecondVersion, name: string, params: object = {}): void {
  version.received({ name, params } as SessionNotification);
}

/** The states that were told, each checked by its schema. */
function states(told: readonly Unchecked[]): Unchecked[] {
  for (const update of told)
    expect(acpFindings("UpdateSessionNotification", { sessionId: "s", update }, "v2")).toEqual([]);
  return told.map(({ sessionUpdate: _kind, ...state }) => state);
}

test.each([
  [{ outcome: "settled", stopReason: "stop" }, { stopReason: "end_turn" }],
  [{ outcome: "settled", stopReason: "length" }, { stopReason: "max_tokens" }],
  [{ outcome: "aborted", stopReason: "error", error: "x" }, { stopReason: "cancelled" }],
  [
    { outcome: "failed", error: "400: no" },
    { stopReason: "error", error: { code: -32_603, message: "400: no" } },
  ],
  [
    { outcome: "failed", error: "401: no" },
    { stopReason: "error", error: { code: -32_000, message: "401: no" } },
  ],
  [{ outcome: "interrupted" }, { stopReason: "error", error: { message: "pi ended in the middle of the run." } }],
])("a run that ends as %j stops with %j", (end, stop) => {
  const { version, told } = start();
  notify(version, "run/started");
  notify(version, "run/ended", { runId: "r", promptIds: ["p"], ...end });
  const _meta = { "pi-rpcd": { runId: "r", promptIds: ["p"], ...usage } };
  expect(states(told)).toMatchObject([{ state: "running" }, { state: "idle", ...stop, _meta }]);
});

test("a client that attaches is told the state, and one that has missed events only what has changed", () => {
  const { version, told } = start();
  version.attached(true);
  version.attached();
  version.asked("d");
  version.missed(true);
  version.missed(true);
  version.asked("e");
  notify(version, "dialog/resolved", { dialogId: "e" });
  version.missed(false);
  version.attached(false);
  expect(states(told).map(({ state }) => state)).toEqual([
    "running",
    "running",
    "requires_action",
    "running",
    "requires_action",
    "running",
    "idle",
    "idle",
  ]);
});

test("after the history a message is the same as in it", () => {
  const { version } = start();
  const chunk = (messageId: string): Unchecked => ({
    sessionUpdate: "user_message_chunk",
    messageId,
    content: { type: "text", text: "one" },
  });
  const [first] = version.encode(chunk("user-1")) as Unchecked[];
  version.restart();
  const [again] = version.encode(chunk("user-1")) as Unchecked[];
  const [other] = version.encode(chunk("user-1")) as Unchecked[];
  expect([again.messageId, other.messageId]).toEqual([first.messageId, "user-1#2"]);
});

test("closing does not wait for the end of a run in a session that cannot be followed any more", async () => {
  const left = new AbortController();
  const port = unchecked<Port>({ call: async () => ({ cursor: 1 }) });
  const caughtUp = async (): Promise<void> => {};
  const version = new SecondVersion(
    unchecked<SessionParts>({ port, caughtUp, send: () => {}, runningTools: () => 0, left: left.signal }),
  );
  version.attached(true);
  const closing = version.closing();
  let isClosed = false;
  void closing.then(() => {
    isClosed = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(isClosed).toBe(false);
  left.abort();
  await closing;
});
