import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { deliveriesIn } from "../../../server/pi/session-file.ts";

const entry = (deliveryId: string, content: string): string =>
  JSON.stringify({ type: "custom_message", content, details: { "pi-rpcd": { deliveryId } } });

function file(text: string): Disposable & { readonly path: string } {
  const directory = mkdtempSync(join(tmpdir(), "entries-"));
  const path = join(directory, "session.jsonl");
  writeFileSync(path, text);
  return { path, [Symbol.dispose]: () => rmSync(directory, { recursive: true }) };
}

test("a push's entry is found after any text that JSON allows, and before many large ones", async () => {
  const large = "x".repeat(6 * 1024 * 1024);
  const lines = [entry("odd", "a\u2028b\u2029c\u0085d\rpi"), ...["1", "2", "3"].map((id) => entry(id, large))];
  using written = file(lines.join("\n"));
  expect(await deliveriesIn(written.path, ["odd", "1", "3", "4"])).toEqual(new Set(["odd", "1", "3"]));
});

test("an incomplete entry, one of another kind, and a missing file contain no push", async () => {
  const other = JSON.stringify({ type: "message", details: { "pi-rpcd": { deliveryId: "other" } } });
  using written = file(`null\n{"pi-rpcd"\n${other}\n${entry("torn", "x").slice(0, -1)}`);
  expect(await deliveriesIn(written.path, ["other", "torn"])).toEqual(new Set());
  expect(await deliveriesIn(`${written.path}.none`, ["other"])).toEqual(new Set());
});
