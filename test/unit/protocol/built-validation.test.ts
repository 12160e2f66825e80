import { createRequire } from "node:module";
import type { ErrorObject, ValidateFunction } from "ajv";
import fc from "fast-check";
import { expect, test } from "vitest";
import * as built from "../../../protocol/built-validation.ts";
import type { JsonSchema } from "../../../protocol/json-schema.ts";
import { methods } from "../../../protocol/methods.ts";
import type * as validation from "../../../protocol/validation.ts";
import { compilerOf } from "../../../protocol/validation.ts";
import { validatorWith } from "../../../protocol/validator.ts";
import { builtChecks, validatorModules } from "../../../scripts/lib/validators.ts";
import { broken, fitting } from "../../helpers/schema-values.ts";

type Name = keyof typeof builtChecks;

const names = Object.keys(builtChecks) as Name[];
const { files, modules: texts } = validatorModules();
const modules = new Map(Array.from(texts, ([file, text]) => [file, evaluated(text)]));

function evaluated(text: string): Readonly<Record<string, ValidateFunction>> {
  const module = { exports: {} };
  new Function("module", "exports", "require", text)(module, module.exports, createRequire(import.meta.url));
  return module.exports;
}

function builtOf(name: Name, schema: object): ValidateFunction {
  const key = built.schemaKey(schema);
  const validate = modules.get(files[name][key] ?? "")?.[key];
  if (validate === undefined) throw new Error("The build has no validator for this schema.");
  return validate;
}

/** What a validator says of a value, and what it leaves of it. A text becomes a new value, as on the wire. */
function verdict(validate: ValidateFunction, text: string): object {
  const value: unknown = JSON.parse(text);
  const isValid = validate(value);
  // Descriptions are not part of a built schema, and no finding names a place in a schema.
  const errors = (validate.errors ?? []).map(({ schemaPath: _, ...error }: ErrorObject) => error);
  return { isValid, errors: isValid ? [] : errors, value };
}

/** Values that no generator of fitting ones makes. */
const odd = [
  ...["null", "0", '""', "[]", "{}", "true", '{"__proto__":{}}', '{"__proto__":null,"constructor":1,"toString":2}'],
  ...['{"sessionId":{"__proto__":[]}}', '[{"__proto__":1}]', '{"unknown":1,"more":2}', '{"":""}'],
];

const numRuns = 15;

test.for(names)("the built validators %j say the same as those compiled at run time", (name) => {
  const { groups, ...checks } = builtChecks[name];
  const compile = compilerOf(checks);
  for (const schema of Object.values(groups).flat()) {
    const atBuild = builtOf(name, schema);
    const atRunTime = compile(schema);
    const same = (text: string): void => expect(verdict(atBuild, text), text).toEqual(verdict(atRunTime, text));
    for (const text of odd) same(text);
    const values = fitting(schema as JsonSchema);
    fc.assert(
      fc.property(fc.oneof(values, broken(values as fc.Arbitrary<Record<string, unknown>>)), (value) => {
        same(JSON.stringify(value) ?? "null");
      }),
      { numRuns },
    );
  }
});

test("a finding has the same words", () => {
  const builtCompiler =
    ({ allErrors }: { readonly allErrors: boolean }) =>
    (schema: object) =>
      builtOf(allErrors ? "all" : "first", schema);
  const atBuild = validatorWith(builtCompiler);
  const atRunTime = validatorWith(compilerOf);
  const wrong = { sessionId: 1, text: [], message: {}, unknown: 1, images: [{ type: "x" }], name: "a\0" };
  for (const method of Object.keys(methods) as (keyof typeof methods)[]) {
    expect(atBuild.params(method, wrong)).toEqual(atRunTime.params(method, wrong));
  }
});

test("checks that the build does not compile are compiled at run time", () => {
  const module: Pick<typeof validation, "compilerOf" | "createValidator"> = built;
  const rare = { allErrors: true, ignoreUnknown: true, removeUnknown: false };
  const schema = methods["session/list"].result;
  const said = verdict(module.compilerOf(rare)(schema), "1");
  expect(said).toMatchObject({ isValid: false });
  expect(said).toEqual(verdict(compilerOf(rare)(schema), "1"));
  expect(module.createValidator).toBeTypeOf("function");
});
