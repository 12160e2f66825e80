import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exportContext } from "../../../context/document/export.ts";
import { installedPi, readerOfPi } from "../../helpers/pi-reader.ts";
import { throughDocument } from "../../helpers/through-document.ts";

// Sessions that real pis have written, with everything that a session can contain. Their system prompts are shortened.

const folder = join(import.meta.dirname, "..", "..", "fixtures", "sessions");
type Entry = Readonly<Record<string, unknown>>;

const recorded = readdirSync(folder).map((file) => {
  const lines = readFileSync(join(folder, file), "utf8").trimEnd().split("\n");
  return { name: file, lines, entries: lines.map((line) => JSON.parse(line) as Entry) };
});

test("there is a session of each version of pi", () => {
  expect(recorded.map(({ name }) => name)).toEqual([
    "pi-0.87.1-openai-completions.jsonl",
    "pi-1.5.2-anthropic-messages.jsonl",
  ]);
});

test.each(recorded)("at each entry $name comes back from a document as pi would send it", async ({ entries }) => {
  const target = targetOf(entries);
  const read = await readerOfPi(installedPi, target);
  const leaves = entries.slice(1).map((entry) => String(entry["id"]));
  for (const leafId of leaves) {
    for (const view of ["projected", "full"] as const) {
      const { entries: again, repairs } = throughDocument(entries, target, { leafId, view });
      expect(read(again), `${leafId} ${view}`).toEqual(read(pathOf(entries, leafId)));
      expect(repairs).toEqual([]);
    }
  }
  expect(new Set(leaves.map((leafId) => JSON.stringify(read(pathOf(entries, leafId))))).size).toBeGreaterThan(15);
});

test.each(recorded)("$name is exported the same a second time, from what was imported", ({ entries }) => {
  const target = targetOf(entries);
  const once = exportContext(entries, { includeReasoning: true }).document.items;
  const twice = exportContext(throughDocument(entries, target).entries, { includeReasoning: true }).document.items;
  expect(twice).toEqual(once);
});

test.each(recorded)("while $name is written, an export has every completely written entry", ({ lines }) => {
  const text = `${lines.join("\n")}\n`;
  for (let end = 0; end <= text.length; end += 97) {
    const written = text.slice(0, end).split("\n").map(readLine);
    const whole = lines.filter((_, index) => lines.slice(0, index + 1).join("\n").length <= end).map(readLine);
    expect(exportContext(written).document).toEqual(exportContext(whole).document);
  }
});

/** As pi reads a line: an incomplete one is ignored. */
function readLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function targetOf(entries: readonly Entry[]) {
  const message = entries
    .map(({ message }) => message as Entry | undefined)
    .find((found) => found?.["role"] === "assistant");
  const { api, provider, model } = message as { api: string; provider: string; model: string };
  return { api, provider, id: model, takesImages: true };
}

function pathOf(entries: readonly Entry[], leafId: string): readonly Entry[] {
  const byId = new Map(entries.slice(1).map((entry) => [entry["id"], entry]));
  const path: Entry[] = [];
  for (let entry = byId.get(leafId); entry !== undefined; entry = byId.get(entry["parentId"])) path.unshift(entry);
  return path;
}
