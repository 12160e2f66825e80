import { expect, test } from "vitest";
import { searchable } from "../../../../../context/parts/tools/catalogue.ts";
import { builtInSynonyms, type Synonyms, synonymsWith } from "../../../../../context/parts/tools/synonyms.ts";
import { ToolIndex } from "../../../../../context/parts/tools/tool-index.ts";
import { nearestNames } from "../../../../../context/parts/tools/tool-search.ts";
import { wordsOf } from "../../../../../context/parts/tools/words.ts";
import { toolCatalogue } from "../../../../fixtures/tool-catalogue.ts";
import { furtherTasks, toolTasks } from "../../../../fixtures/tool-tasks.ts";
import { unchecked } from "../../../../helpers/partial.ts";

type Tasks = readonly (readonly [task: string, tool: string])[];

const none: Synonyms = { of: () => [] };

/** The share of tasks whose tool is among the first eight. */
function share(tasks: Tasks, synonyms: Synonyms): number {
  const index = new ToolIndex(toolCatalogue.map(searchable), synonyms);
  const right = tasks.filter(([task, tool]) => index.search(task, 8).includes(tool));
  return right.length / tasks.length;
}

test("for 120 tasks without a word of the tool's name, nine in ten find it among eight of a hundred tools (R003-9a)", () => {
  expect(toolCatalogue).toHaveLength(100);
  expect(new Set(toolTasks.map(([task]) => task)).size).toBe(120);
  expect(share(toolTasks, builtInSynonyms)).toBeGreaterThanOrEqual(0.9);
});

test("for tasks whose words differ from the descriptions, most find their tool, and synonyms make the difference", () => {
  expect(furtherTasks).toHaveLength(40);
  expect(share(furtherTasks, builtInSynonyms)).toBeGreaterThanOrEqual(0.7);
  expect(share(furtherTasks, builtInSynonyms)).toBeGreaterThan(share(furtherTasks, none));
});

test("no task has a word of its tool's name", () => {
  for (const [task, tool] of [...toolTasks, ...furtherTasks]) {
    expect(
      toolCatalogue.some(({ name }) => name === tool),
      tool,
    ).toBe(true);
    const name = new Set(wordsOf(tool));
    expect(
      wordsOf(task).filter((word) => name.has(word)),
      task,
    ).toEqual([]);
  }
});

test("names, descriptions and parameters are searched, at each word's beginning in an identifier", () => {
  const tool = (name: string, description: string, parameters: object) => searchable({ name, description, parameters });
  const index = new ToolIndex(
    [
      tool("readHTTPLog", "Shows it.", {}),
      tool("b", "Counts sheep.", {}),
      tool("c", "Does it.", { anyOf: [{ properties: { list: { items: { properties: { colour: {} } } } } }] }),
    ],
    none,
  );
  expect(index.search("the http logs", 8)).toEqual(["readHTTPLog"]);
  expect(index.search("counting a sheep", 8)).toEqual(["b"]);
  expect(index.search("Colours", 8)).toEqual(["c"]);
  expect(index.search("nothing of the kind", 8)).toEqual([]);
});

test("a file's synonyms are used in both directions, in addition to the built-in ones", () => {
  const tools = [searchable({ name: "x", description: "Brews coffee.", parameters: {} })];
  const synonyms = synonymsWith('{"espresso": ["coffee", "latte"]}');
  expect(new ToolIndex(tools, synonyms).search("an espresso, please", 8)).toEqual(["x"]);
  expect(synonyms.of("latt")).toContain("espresso");
  expect(synonyms.of("delet")).toContain("remov");
  for (const text of ["[]", '{"a": "b"}', '{"a": [1]}', "no json"]) expect(() => synonymsWith(text)).toThrow();
});

test("the same tools in another order are found in the same order", () => {
  const reversed = new ToolIndex(toolCatalogue.map(searchable).reverse(), builtInSynonyms);
  const index = new ToolIndex(toolCatalogue.map(searchable), builtInSynonyms);
  for (const [task] of toolTasks) expect(reversed.search(task, 8)).toEqual(index.search(task, 8));
});

test("deep, wide, circular and invalid schemas are searched up to a limit", () => {
  const circular: { properties: Record<string, unknown> } = { properties: {} };
  circular.properties["self"] = circular;
  let deep: object = {};
  for (let depth = 0; depth < 10_000; depth += 1) deep = { items: deep };
  const wide = { properties: Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`p${n}`, {}])) };
  for (const parameters of [circular, deep, wide, null, 7, "text", { properties: [1] }, { anyOf: "x" }]) {
    const made = searchable({ name: "x", description: unchecked(undefined), parameters });
    expect(made.parameters.length).toBeLessThan(20_000);
  }
});

test("the nearest names are the most similar ones", () => {
  const names = toolCatalogue.map(({ name }) => name);
  expect(nearestNames("wether_forcast", names)[0]).toBe("weather_forecast");
  expect(nearestNames("create_issue", names)[0]).toBe("github_create_issue");
  expect(nearestNames("PDF_MERGE", names)[0]).toBe("pdf_merge");
  expect(nearestNames("x".repeat(100_000), names)).toHaveLength(3);
  expect(nearestNames("x", [])).toEqual([]);
});
