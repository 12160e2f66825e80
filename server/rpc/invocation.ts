import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import { errorsOf } from "../../protocol/method-errors.ts";
import { isMethodName, type MethodName, methods } from "../../protocol/methods.ts";
import type { Validator } from "../../protocol/validation.ts";
import { resultText, wholeText } from "./answer-text.ts";
import type { Call, Handlers } from "./call.ts";
import { toWireError } from "./errors.ts";
import { maxNameLength, wrongParams } from "./wrong-params.ts";

export interface InvocationOptions {
  readonly handlers: Handlers;
  readonly validator: Validator;
  /** Has what handlers return and throw checked too, and hears what the method table does not allow (for tests). */
  readonly onViolation?: ((violation: Error) => void) | undefined;
  readonly log: Logger;
}

/**
 * Makes one call: checks its params, and has its handler answer. A handler that answers at once is answered for at once, without
 * a promise: for what many ask often, those cost more than the answer. Throws, or rejects with, a {@link WireError} or the
 * reason of the call's signal.
 */
export type Invoke = (method: string, params: unknown, call: Call) => unknown;

export function createInvoke({ handlers, validator, onViolation, log }: InvocationOptions): Invoke {
  // Here and not where the answer is made: a notification has none, and its failure is logged all the same.
  const failed = (method: string, params: unknown, call: Call, error: unknown): unknown => {
    if (isAbortOf(call, error)) return call.signal.reason;
    const found = toWireError(error, log, contextOf(method, params, call));
    if (onViolation !== undefined && isMethodName(method) && !errorsOf(methods[method]).includes(found.kind))
      onViolation(new Error(`${method} does not list its error ${found.kind}: ${found.message}`));
    return found;
  };

  function checked(method: MethodName, result: unknown): unknown {
    const violation = onViolation === undefined ? undefined : violationOf(method, result, validator);
    if (violation === undefined) return result;
    onViolation?.(violation);
    throw violation;
  }

  async function later(method: MethodName, params: unknown, call: Call, result: Promise<unknown>): Promise<unknown> {
    try {
      return checked(method, await result);
    } catch (error) {
      throw failed(method, params, call, error);
    }
  }

  return (name, params, call) => {
    try {
      const method = knownMethod(name);
      const handler = handlers[method] as (params: unknown, call: Call) => unknown;
      const result = handler(checkedParams(method, params, validator), call);
      return result instanceof Promise ? later(method, params, call, result) : checked(method, result);
    } catch (error) {
      throw failed(name, params, call, error);
    }
  };
}

function knownMethod(name: string): MethodName {
  if (isMethodName(name)) return name;
  const shown = JSON.stringify(name.slice(0, maxNameLength));
  throw new WireError("method_not_found", `There is no method ${shown}. rpc.discover lists all.`);
}

/** What the log says of a call that has failed. */
function contextOf(method: string, params: unknown, { peer }: Call): Readonly<Record<string, unknown>> {
  const named: unknown = (params as { readonly sessionId?: unknown } | null | undefined)?.sessionId;
  const sessionId = typeof named === "string" ? { sessionId: named.slice(0, maxNameLength) } : {};
  return { method: method.slice(0, maxNameLength), connectionId: peer?.id, ...sessionId };
}

/** What Node's own functions reject with when their signal is aborted, where the call's was. */
function isAbortOf(call: Call, error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError" && call.signal.aborted;
}

function checkedParams(method: MethodName, params: unknown, validator: Validator): unknown {
  if (Array.isArray(params)) {
    if (params.length === 0 && takesNone(method)) return {};
    throw new WireError("invalid_params", `${method} takes its params by name, not by position.`, {
      findings: [{ path: "", message: "must be an object" }],
    });
  }
  const value = params ?? {};
  const found = validator.params(method, value);
  if (found.length === 0) return value;
  throw wrongParams(method, value, found);
}

function takesNone(method: MethodName): boolean {
  const { properties = {} } = methods[method].params as { readonly properties?: object };
  return Object.keys(properties).length === 0;
}

function violationOf(method: MethodName, result: unknown, validator: Validator): Error | undefined {
  // What crosses the wire has no undefined in it.
  const findings = validator.result(method, JSON.parse(wholeText(resultText(result))));
  if (findings.length === 0) return undefined;
  return new Error(`The result of ${method} is not what the table says: ${JSON.stringify(findings)}`);
}
