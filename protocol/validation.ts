import { Ajv } from "ajv";
import {
  ajvOptions,
  type Checks,
  type Compile,
  checkedSchema,
  type Validator,
  type ValidatorOptions,
  validatorWith,
} from "./validator.ts";

export type { Validator, ValidatorOptions } from "./validator.ts";

// The build replaces this module by `built-validation.ts`, except in the exported `./protocol`, which also runs in a page.

export function createValidator(options?: ValidatorOptions): Validator {
  return validatorWith(compilerOf, options);
}

/** Compiles schemas at run time. */
export function compilerOf(checks: Checks): Compile {
  let ajv: Ajv | undefined;
  return (schema) => {
    ajv ??= new Ajv(ajvOptions(checks));
    return ajv.compile(checkedSchema(schema, checks));
  };
}
