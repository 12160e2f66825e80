import { Type as Typebox } from "typebox";
import { expect, test } from "vitest";
import { Type } from "../../../protocol/json-schema.ts";

/** The same schema from either builder. */
function build(type: typeof Type): unknown {
  return type.Object(
    {
      text: type.String({ minLength: 1, pattern: "^a" }),
      count: type.Optional(type.Integer({ minimum: 0 })),
      flag: type.Optional(type.Boolean({ description: "d" })),
      one: type.Union([type.Literal("x"), type.Literal(7), type.Null()]),
      word: type.Enum(["a", "b"], { description: "e" }),
      list: type.Array(type.Object({}, { additionalProperties: true }), { maxItems: 3 }),
      map: type.Record(type.String(), type.Integer(), { description: "m" }),
      anything: type.Optional(type.Unknown({ description: "u" })),
      spread: type.Optional({ ...type.Integer(), description: "s" }),
    },
    { additionalProperties: false },
  );
}

test("the schema builders return the same schemas as typebox, whose types they have", () => {
  expect(JSON.parse(JSON.stringify(build(Type)))).toEqual(
    JSON.parse(JSON.stringify(build(Typebox as unknown as typeof Type))),
  );
  expect(Object.keys(Type.Object({}))).toEqual(["type", "properties"]);
});
