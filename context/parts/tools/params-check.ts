import { createContext, Script } from "node:vm";
import type { ErrorObject, Options, ValidateFunction } from "ajv";

// Schemas come from tool servers, params from a model. Either can be made so that a check never ends.

/** Maximum length of a schema, in characters of JSON. */
const maxSchemaCharacters = 256 * 1_024;
/** Milliseconds to compile a schema and to check params; valid ones need far less. */
const usualMilliseconds = 2_000;
const maxFindings = 8;
const maxFindingCharacters = 300;
/** Maximum number of cached compiled schemas. */
const maxCompiled = 64;

/** `findings` is empty if the params are valid. `unchecked`: why they could not be checked. */
export type ParamsVerdict = { readonly findings: readonly string[] } | { readonly unchecked: string };

interface Compilers {
  readonly draft2020: (schema: object) => ValidateFunction;
  readonly draft07: (schema: object) => ValidateFunction;
}

/** Checks params of tools against their schemas. Fails open, because pi checks them too. */
export class ParamsCheck {
  readonly #compiled = new Map<object, ValidateFunction | string>();
  readonly #timed: Timed;
  #compilers: Compilers | undefined;

  constructor(maxMilliseconds: number = usualMilliseconds) {
    this.#timed = new Timed(maxMilliseconds);
  }

  async check(schema: unknown, params: unknown): Promise<ParamsVerdict> {
    if (typeof schema !== "object" || schema === null) return { unchecked: "It has no schema." };
    let validate = this.#compiled.get(schema);
    if (validate === undefined) {
      this.#compilers ??= await loadCompilers();
      validate = this.#compile(schema, this.#compilers);
      if (this.#compiled.size >= maxCompiled) this.#compiled.clear();
      this.#compiled.set(schema, validate);
    }
    if (typeof validate === "string") return { unchecked: validate };
    try {
      const compiled = validate;
      // pi also accepts numbers in quotes. Only a copy is coerced.
      const copy = structuredClone(params);
      const isGood = this.#timed.run(() => compiled(copy));
      return { findings: isGood === true ? [] : (compiled.errors ?? []).slice(0, maxFindings).map(findingOf) };
    } catch (thrown) {
      return { unchecked: `Its schema cannot be checked: ${reasonOf(thrown)}` };
    }
  }

  #compile(schema: object, { draft2020, draft07 }: Compilers): ValidateFunction | string {
    try {
      const text = JSON.stringify(schema);
      if (text.length > maxSchemaCharacters) return `Its schema has more than ${maxSchemaCharacters} characters.`;
      // The declared draft is often wrong.
      const { $schema: _, $id: __, ...plain } = JSON.parse(text) as Record<string, unknown>;
      return this.#timed.run(() => {
        try {
          return draft2020(plain);
        } catch {
          return draft07(plain);
        }
      });
    } catch (thrown) {
      return `Its schema is not sound: ${reasonOf(thrown)}`;
    }
  }
}

/** Runs untrusted work with a time limit. */
class Timed {
  readonly #globals: { task?: (() => void) | undefined } = {};
  readonly #context = createContext(this.#globals);
  readonly #script = new Script("task()");
  readonly #maxMilliseconds: number;

  constructor(maxMilliseconds: number) {
    this.#maxMilliseconds = maxMilliseconds;
  }

  run<T>(task: () => T): T {
    let made: { readonly value: T } | undefined;
    this.#globals.task = () => {
      made = { value: task() };
    };
    try {
      this.#script.runInContext(this.#context, { timeout: this.#maxMilliseconds });
    } finally {
      this.#globals.task = undefined;
    }
    if (made === undefined) throw new Error("It has not ended.");
    return (made as { readonly value: T }).value;
  }
}

/** Loaded at the first check, so that other sessions do not pay for it. */
async function loadCompilers(): Promise<Compilers> {
  const [{ Ajv }, { Ajv2020 }] = await Promise.all([import("ajv"), import("ajv/dist/2020.js")]);
  const options: Options = {
    strict: false,
    allErrors: true,
    coerceTypes: true,
    validateSchema: false,
    validateFormats: false,
    addUsedSchema: false,
    inlineRefs: false,
    logger: false,
  };
  const compilers: Compilers = {
    draft2020: (schema) => new Ajv2020(options).compile(schema),
    draft07: (schema) => new Ajv(options).compile(schema),
  };
  // The first run takes longer because code is compiled, so it warms up.
  compilers.draft2020({ type: "object" })({});
  return compilers;
}

function findingOf({ instancePath, schemaPath, message = "is not as it must be", params }: ErrorObject): string {
  const extra = "additionalProperty" in params ? `: ${JSON.stringify(params["additionalProperty"])}` : "";
  const allowed = "allowedValues" in params ? `: ${JSON.stringify(params["allowedValues"])}` : "";
  return `params${instancePath} ${message}${extra}${allowed} (${schemaPath})`
    .slice(0, maxFindingCharacters)
    .toWellFormed();
}

function reasonOf(thrown: unknown): string {
  const isLate = (thrown as { code?: unknown } | undefined)?.code === "ERR_SCRIPT_EXECUTION_TIMEOUT";
  if (isLate) return "it takes too long.";
  return (thrown instanceof Error ? thrown.message : String(thrown)).slice(0, 200);
}
