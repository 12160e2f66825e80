import { createContext, Script } from "node:vm";
import type { ErrorObject, Options, ValidateFunction } from "ajv";

// Schemas come from servers of tools, params from a model. Either may be made to take for ever.

/** A schema above it, in characters of JSON, is not looked at. */
const maxSchemaCharacters = 256 * 1_024;
/** How long a schema may take to be compiled, and params to be checked, in milliseconds: much more than any sound one. */
const usualMilliseconds = 2_000;
const maxFindings = 8;
const maxFindingCharacters = 300;
/** Compiled schemas that are kept. */
const maxCompiled = 64;

/** `findings` is empty where the params are good. `unchecked`: why nothing could be said of them. */
export type ParamsVerdict = { readonly findings: readonly string[] } | { readonly unchecked: string };

interface Compilers {
  readonly draft2020: (schema: object) => ValidateFunction;
  readonly draft07: (schema: object) => ValidateFunction;
}

/** Checks params of tools against their schemas. It fails open: pi checks what it cannot. */
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
      // pi is as lenient with numbers in quotes. What it coerces is a copy.
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
      // Which draft it says it is, says little of which it is.
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

/** Runs what may never end, for a limited time. */
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

/** Loaded at the first check: a session that executes nothing does not pay for it. */
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
  // What is done for the first time takes longer, and is no schema's fault.
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
