import { createRequire } from "node:module";
import type * as AjvModule from "ajv";
import type { ValidateFunction } from "ajv";
import {
  ajvOptions,
  type Checks,
  type Compile,
  checkedSchema,
  type Validator,
  type ValidatorOptions,
  validatorWith,
} from "./validator.ts";

// In the build this module takes the place of `validation.ts`.

export function createValidator(options?: ValidatorOptions): Validator {
  return validatorWith(compilerOf, options);
}

/** Takes validators that were compiled by the build. A schema without one is compiled at run time. */
export function compilerOf(checks: Checks): Compile {
  let ajv: AjvModule.Ajv | undefined;
  return (schema) => {
    const built = builtFor(checks, schema);
    if (built !== undefined) return built;
    ajv ??= new (require("ajv") as typeof AjvModule).Ajv(ajvOptions(checks));
    return ajv.compile(checkedSchema(schema, checks));
  };
}

const require = createRequire(import.meta.url);

function builtFor(checks: Checks, schema: object): ValidateFunction | undefined {
  const name = builtName(checks);
  if (name === undefined) return undefined;
  const key = schemaKey(schema);
  try {
    const file = (require("../validators/files.json") as BuiltFiles)[name][key];
    if (file === undefined) return undefined;
    return (require(`../validators/${file}.cjs`) as Readonly<Record<string, ValidateFunction>>)[key];
  } catch (error) {
    // A checkout has no built validators. An update can replace them while the program runs.
    if ((error as NodeJS.ErrnoException).code === "MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}

/** The module of each validator, by its key. All modules have 5 MB of text; a daemon loads a few of them. */
export type BuiltFiles = Readonly<Record<(typeof builtNames)[number], Readonly<Record<string, string>>>>;

export const builtNames = ["first", "all", "known", "frames"] as const;

/** The name of the validators for these checks. There is none for the rare ones: all findings of a daemon's result. */
function builtName({ allErrors, ignoreUnknown, removeUnknown }: Checks): (typeof builtNames)[number] | undefined {
  if (removeUnknown) return allErrors || ignoreUnknown ? undefined : "frames";
  if (ignoreUnknown) return allErrors ? undefined : "known";
  return allErrors ? "all" : "first";
}

/** The name of a schema's validator: a hash of its text of 53 bits. The build checks that no two schemas share one. */
export function schemaKey(schema: object): string {
  const text = JSON.stringify(schema);
  let a = 0xdeadbeef;
  let b = 0x41c6ce57;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, 2_654_435_761);
    b = Math.imul(b ^ unit, 1_597_334_677);
  }
  a = Math.imul(a ^ (a >>> 16), 2_246_822_507) ^ Math.imul(b ^ (b >>> 13), 3_266_489_909);
  b = Math.imul(b ^ (b >>> 16), 2_246_822_507) ^ Math.imul(a ^ (a >>> 13), 3_266_489_909);
  return `v${(4_294_967_296 * (2_097_151 & b) + (a >>> 0)).toString(36)}`;
}
