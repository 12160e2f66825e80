import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { methods } from "../../../protocol/methods.ts";
import { notifications } from "../../../protocol/notifications.ts";
import { wireText } from "../../../scripts/lib/wire-text.ts";

const pinned = readFileSync(new URL("../../../protocol/wire.txt", import.meta.url), "utf8");

test("protocol/wire.txt matches the declarations in the tables", () => {
  expect(pinned === wireText(), "run: npm run schema, and review the difference in protocol/wire.txt").toBe(true);
});

test("has every field of params, results and notifications, at every depth", () => {
  const schemas = [
    ...Object.values(methods).flatMap(({ params, result }) => [params, result]),
    ...Object.values(notifications).map(({ params }) => params),
  ];
  const names = new Set(schemas.flatMap(fieldsIn));
  expect(names.size).toBeGreaterThan(400);
  expect([...names].filter((name) => !new RegExp(`[{(, ]${name}\\??: `).test(pinned))).toEqual([]);
});

test("refuses a schema that it could not write completely", () => {
  const row = { ...methods["session/get"], result: { type: "string", format: "uri" } };
  expect(() => wireText({ ...methods, "session/get": row })).toThrow("No notation for format");
});

function fieldsIn(schema: unknown): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  return Object.entries(schema).flatMap(([keyword, value]) => [
    ...(keyword === "properties" ? Object.keys(value) : []),
    ...fieldsIn(value),
  ]);
}
