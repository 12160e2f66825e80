import type { Logger } from "pino";
import { configurationKeys, sorted } from "../../protocol/configuration/configurations.ts";
import { inWords } from "../../protocol/configuration/mistakes.ts";
import { asFinding } from "../../protocol/configuration/refusal.ts";
import { type ParamsFinding, WireError } from "../../protocol/errors.ts";
import { errorsOf } from "../../protocol/method-errors.ts";
import { isMethodName, type MethodName, methods, type Params } from "../../protocol/methods.ts";
import type { Validator } from "../../protocol/validation.ts";
import { resultText, wholeText } from "./answer-text.ts";
import type { Bound, Call, Handlers, Policy } from "./call.ts";
import { toWireError } from "./errors.ts";

export interface InvocationOptions {
  readonly handlers: Handlers;
  /** Policies around every handler, the outermost first. Default: none. */
  readonly policies?: readonly Policy[];
  readonly validator: Validator;
  /** Receives results and errors of handlers that the method table does not allow. They are only checked with it (in tests). */
  readonly onViolation?: ((violation: Error) => void) | undefined;
  readonly log: Logger;
}

/** Errors show at most this many characters of a name that a client has chosen; the name itself may be longer. */
const maxNameLength = 200;

/**
 * Makes one call: validates its params, and returns the answer of its handler. A synchronous handler is answered
 * without a promise, which would cost more than a cheap query. Throws, or rejects with, a {@link WireError} or the
 * reason of the call's signal.
 */
export type Invoke = (method: string, params: unknown, call: Call) => unknown;

export function createInvoke(options: InvocationOptions): Invoke {
  const { validator, onViolation, log } = options;
  const names = Object.keys(methods).filter(isMethodName);
  const bound = new Map<string, BoundMethod>(names.map((name) => [name, bindMethod(name, options)]));

  // Logged here and not with the response, because a notification has none.
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
      const method = bound.get(name);
      if (method === undefined) throw methodNotFound(name);
      const result = method.run(params, call);
      return result instanceof Promise ? later(method.name, params, call, result) : checked(method.name, result);
    } catch (error) {
      throw failed(name, params, call, error);
    }
  };
}

interface BoundMethod {
  readonly name: MethodName;
  readonly run: (params: unknown, call: Call) => unknown;
}

/** Puts the policies around one method's handler, with the validation of its params outermost. */
function bindMethod<M extends MethodName>(
  name: M,
  { handlers, policies = [], validator }: InvocationOptions,
): BoundMethod {
  const method = { name, row: methods[name] };
  const run = policies.reduceRight<Bound<Params<M>>>((next, policy) => policy(method, next), handlers[name]);
  return { name, run: (params, call) => run(checkedParams(name, params, validator), call) };
}

export function methodNotFound(name: string): WireError {
  const shown = JSON.stringify(name.slice(0, maxNameLength));
  return new WireError("method_not_found", `There is no method ${shown}. rpc.discover lists all.`);
}

/** Fields of the log line about a failed call. */
function contextOf(method: string, params: unknown, { peer }: Call): Readonly<Record<string, unknown>> {
  const named: unknown = (params as { readonly sessionId?: unknown } | null | undefined)?.sessionId;
  const sessionId = typeof named === "string" ? { sessionId: named.slice(0, maxNameLength) } : {};
  return { method: method.slice(0, maxNameLength), connectionId: peer?.id, ...sessionId };
}

/** Whether it is the error of Node's own functions for an aborted signal, because the call was cancelled. */
function isAbortOf(call: Call, error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError" && call.signal.aborted;
}

function checkedParams<M extends MethodName>(method: M, params: unknown, validator: Validator): Params<M> {
  const isEmptyList = Array.isArray(params) && params.length === 0;
  const value: unknown = isEmptyList && takesNone(method) ? {} : (params ?? {});
  if (Array.isArray(value)) {
    throw new WireError("invalid_params", `${method} takes its params by name, not by position.`, {
      findings: [{ path: "", message: "must be an object" }],
    });
  }
  requireValid(method, value, validator);
  return value;
}

function requireValid<M extends MethodName>(
  method: M,
  params: unknown,
  validator: Validator,
): asserts params is Params<M> {
  const found = validator.params(method, params);
  if (found.length > 0) throw wrongParams(method, params, found);
}

/** `invalid_params`. Mistakes in a configuration are described by its keys. */
function wrongParams(method: MethodName, params: unknown, found: readonly ParamsFinding[]): WireError {
  const { findings, mistakes } = sorted(
    found,
    params,
    configurationKeys.map((key) => [key]),
  );
  const shown = findings.map(({ path, message }) => ({ path: path.slice(0, maxNameLength), message }));
  const list = shown.map(({ path, message }) => `${path === "" ? "params" : path} ${message}`).join("; ");
  const sentences = [
    ...(list === "" ? [] : [`The params of ${method} are wrong: ${list}.`]),
    ...mistakes.map(({ mistake }) => inWords(mistake)),
  ];
  return new WireError("invalid_params", sentences.join(" "), {
    findings: [...shown, ...mistakes.map(({ mistake }) => asFinding(mistake))],
  });
}

function takesNone(method: MethodName): boolean {
  const { properties = {} } = methods[method].params as { readonly properties?: object };
  return Object.keys(properties).length === 0;
}

function violationOf(method: MethodName, result: unknown, validator: Validator): Error | undefined {
  // JSON has no undefined.
  const findings = validator.result(method, JSON.parse(wholeText(resultText(result))));
  if (findings.length === 0) return undefined;
  return new Error(`The result of ${method} does not match the method table: ${JSON.stringify(findings)}`);
}
