import { expect, test } from "vitest";
import type { LogEntry } from "../../../provider/log.ts";
import { answer, call } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { type Pi, startPi } from "../extension/driver.ts";
import { entriesOf } from "../optimisation/model.ts";

const tag = /<dcp-message-id>([mb]\d+)<\/dcp-message-id>/gu;

/** What each id names: the texts of its message up to the tag. */
function named(request: LogEntry | undefined): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const { role, texts, toolResults } of request?.messages ?? []) {
    if (role === "system") continue;
    for (const text of [...toolResults.map((result) => result.text), texts.join("\n")]) {
      let from = 0;
      for (const { 0: whole, 1: id = "", index } of text.matchAll(tag)) {
        if (found[id] !== undefined) throw new Error(`${id} is there twice.`);
        found[id] = text.slice(from, index).trim();
        from = index + whole.length;
      }
    }
  }
  return found;
}

async function prompt(pi: Pi, message: string): Promise<void> {
  pi.log.forget("hello");
  await pi.rpc({ type: "prompt", message });
  await pi.settled();
}

test("a message keeps its id over requests, a kill, a change of the branch, a fork and a compaction", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, pruning: { enabled: true }, after: ["emitting"] });
  provider.add(answer(call("emit", { text: "first output" })), answer("one"));
  await prompt(pi, "first prompt");
  provider.add(answer("two"));
  await prompt(pi, "second prompt");
  const before = named(provider.requests.at(-1));
  expect(before).toEqual({ m001: "first prompt", m002: "first output", m003: "second prompt" });

  await pi.revive();
  provider.add(answer("three"));
  await prompt(pi, "third prompt");
  expect(named(provider.requests.at(-1))).toEqual({ ...before, m004: "third prompt" });
  expect(entriesOf(pi).filter(({ customType }) => customType === "pi-rpcd.ids")).toHaveLength(3);
});
