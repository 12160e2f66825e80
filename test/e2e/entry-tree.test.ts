import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { startStage } from "../helpers/stage.ts";

type Entry = Readonly<Record<string, unknown>>;

test("a session's tree is pi's own, and is available also when pi cannot write it", async () => {
  await using stage = await startStage();
  const made = await stage.session();
  const directory = dirname((await made.get()).file);
  await made.close();
  const opened = async (id: string, entries: readonly Entry[]): Promise<string> => {
    const timestamp = new Date(0).toISOString();
    const lines = [{ type: "session", version: 3, id, timestamp, cwd: stage.cwd }, ...entries];
    const file = join(directory, `0_${id}.jsonl`);
    writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""), { mode: 0o600 });
    return (await stage.client.openSession({ file })).id;
  };
  let at = 0;
  const entry = (id: string, parentId: string | null, more: object = {}): Entry => {
    at += 1;
    const message = { role: "user", content: [{ type: "text", text: id }], timestamp: at };
    return { type: "message", id, parentId, timestamp: new Date(at).toISOString(), message, ...more };
  };
  const label = (id: string, parentId: string, targetId: string, text?: string): Entry =>
    entry(id, parentId, { type: "label", targetId, label: text, message: undefined });
  const branched = await opened("branched", [
    entry("a", null),
    entry("b", "a"),
    entry("c", "b"),
    entry("d", "b"),
    label("l1", "d", "b", "here"),
    label("l2", "l1", "c", "there"),
    label("l3", "l2", "c"),
    entry("e", "l3"),
  ]);
  const { data } = await stage.client.call("session/command", { sessionId: branched, command: { type: "get_tree" } });
  expect(await stage.client.call("session/getTree", { sessionId: branched })).toEqual(data);
  const row = Array.from({ length: 4_000 }, (_, n) => entry(`e${n}`, n === 0 ? null : `e${n - 1}`));
  const linear = await opened("linear", row);
  let { tree } = await stage.client.call("session/getTree", { sessionId: linear });
  let depth = 0;
  for (; tree.length > 0; depth += 1) tree = (tree[0]?.children ?? []) as typeof tree;
  expect(depth).toBeGreaterThanOrEqual(row.length);
});
