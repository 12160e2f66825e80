import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CONTEXT_FORMAT, type ContextTarget } from "../../../context/document/document.ts";
import { prepareContext } from "../../../context/document/prepare.ts";
import { sessionEntries } from "../../../context/document/session-entries.ts";
import { defaultContextLimits } from "../../../protocol/context-limits.ts";
import { sharePi } from "../extension/shared-pi.ts";

// Messages that claim to be of the target's model, with content that its service cannot have produced.

const shared = sharePi();
const reasoningItem = { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm." }] };
const thinking = (thinkingSignature: string) => ({ type: "thinking", thinking: "Hm.", thinkingSignature });
const text = (textSignature?: string) => ({
  ...{ type: "text", text: "Said." },
  ...(textSignature === undefined ? {} : { textSignature }),
});
const call = (id: string) => ({ type: "toolCall", id, name: "bash", arguments: { command: "ls" } });

const services = [
  ["scripted-responses", "openai-responses"],
  ["scripted-anthropic", "anthropic-messages"],
] as const;

test.each(services)("%s gets only acceptable messages, whatever claims to be its own", async (api, name) => {
  await using lent = await shared.use({ api, models: [{ id: "model-1", reasoning: true }] });
  const { pi, provider } = lent;
  const target: ContextTarget = { api: name, provider: api, id: "model-1", takesImages: true };
  const own = (...blocks: readonly object[]) => ({ role: "assistant", content: "", model: target, blocks });
  const user = { role: "user", content: "Go on." };
  const items = [
    user,
    own(thinking(JSON.stringify(reasoningItem)), text('{"v":1,"id":"msg_1"}'), call("call_1|fc_1")),
    { role: "toolResult", toolCallId: "call_1|fc_1", content: "good" },
    own(thinking("no JSON"), text("an id with spaces")),
    user,
    own(thinking('{"type":"else"}'), text(JSON.stringify({ v: 1, id: "no message" })), call(`call ${"x".repeat(450)}`)),
    { role: "toolResult", toolCallId: `call ${"x".repeat(450)}`, content: "mended" },
    own(text(), thinking(JSON.stringify({ ...reasoningItem, id: "rs_2" }))),
    user,
    own(thinking("{}"), call("functions.bash:0")),
    { role: "toolResult", toolCallId: "functions.bash:0", content: "mended too" },
    { ...own(), blocks: undefined, content: [{ type: "reasoning", text: "Hm.", signature: "x" }, text()] },
    user,
    own({ type: "thinking", thinking: "", redacted: true }, text()),
    user,
    own(thinking(JSON.stringify(reasoningItem)), text("msg_9")),
    own(text("msg_1")),
    own(text("msg_pi_18")),
    own(call("call_3|fc_1")),
    { role: "toolResult", toolCallId: "call_3|fc_1", content: "a copy" },
  ];
  const document = {
    format: CONTEXT_FORMAT,
    version: 1,
    items: items.map((item, n) => ({ ...item, timestamp: n + 1 })),
  };
  const prepared = prepareContext(document, {}, target, defaultContextLimits);
  expect(prepared.counts.repairs).toEqual(
    api === "scripted-responses"
      ? { bad_call_id: 2, duplicate_call_id: 1, foreign_reasoning: 7 }
      : { bad_call_id: 4, foreign_reasoning: 2 },
  );
  const file = join(pi.directory, "sessions", `own-${api}.jsonl`);
  const lines = [...sessionEntries(prepared, { id: `own-${api}`, timestamp: 1_795_187_000_000, cwd: pi.cwd })];
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""), { mode: 0o600 });
  await pi.replaceSession(file);
  await pi.rpc({ type: "prompt", message: "Go on." });
  await pi.settled();
  expect(provider.requests.map(({ violations }) => violations)).toEqual([[]]);
  const results = provider.requests[0]?.messages.flatMap(({ toolResults }) => toolResults);
  expect(results?.map((result) => result.text)).toEqual(["good", "mended", "mended too", "a copy"]);
  const calls = provider.requests[0]?.messages.flatMap(({ toolCalls }) => toolCalls);
  expect(calls?.map(({ id }) => id)).toEqual(results?.map(({ callId }) => callId));
  if (api !== "scripted-responses") return;
  expect(provider.requests[0]?.body["input"]).toEqual(
    expect.arrayContaining([
      reasoningItem,
      expect.objectContaining({ id: "msg_1" }),
      expect.objectContaining({ id: "fc_1" }),
    ]),
  );
});
