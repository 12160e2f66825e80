import { expect } from "vitest";
import { deliveryId } from "./edge.ts";

// JSON-RPC 2.0 as one table for every transport. The handlers are those of startEdge().

/**
 * A text, and the expected answer: nothing, one answer, or a batch in any order. Few texts contain a line end: a
 * transport that frames by lines leaves these out.
 */
export interface Example {
  readonly title: string;
  readonly text: string;
  readonly answer: undefined | Expected | readonly Expected[];
  /** The status over HTTP, if not 200 or 204. */
  readonly status?: number;
}

export type Expected =
  | { readonly id: unknown; readonly result: unknown }
  | { readonly id: unknown; readonly error: { readonly code: number; readonly name: string } };

const parseError: Expected = { id: null, error: { code: -32700, name: "parse_error" } };
const invalid = (id: unknown = null): Expected => ({ id, error: { code: -32600, name: "invalid_request" } });
const notFound = (id: unknown): Expected => ({ id, error: { code: -32601, name: "method_not_found" } });
const badParams = (id: unknown): Expected => ({ id, error: { code: -32602, name: "invalid_params" } });
const noSessions = (id: unknown): Expected => ({ id, result: { sessions: [] } });
const list = (id?: unknown): string => JSON.stringify({ jsonrpc: "2.0", method: "session/list", id });

/** The examples of the specification (https://www.jsonrpc.org/specification#examples), with methods of ours. */
export const specification: readonly Example[] = [
  {
    title: "a call with positional params: every method here takes them by name",
    text: '{"jsonrpc": "2.0", "method": "session/list", "params": ["/tmp"], "id": 1}',
    answer: badParams(1),
  },
  {
    title: "a call with no positional params",
    text: '{"jsonrpc": "2.0", "method": "session/list", "params": [], "id": 2}',
    answer: badParams(2),
  },
  {
    title: "a call with no positional params of a method that has none",
    text: '{"jsonrpc": "2.0", "method": "rpc.discover", "params": [], "id": 2}',
    answer: { id: 2, result: { openrpc: "1.3.2" } },
  },
  {
    title: "a call whose params are null",
    text: '{"jsonrpc": "2.0", "method": "session/list", "params": null, "id": 2}',
    answer: invalid(2),
  },
  {
    title: "a call with named params",
    text: '{"jsonrpc": "2.0", "method": "session/list", "params": {"cwd": "/tmp"}, "id": 3}',
    answer: noSessions(3),
  },
  {
    title: "a call whose members are in another order",
    text: '{"id": 4, "params": {"cwd": "/tmp"}, "method": "session/list", "jsonrpc": "2.0"}',
    answer: noSessions(4),
  },
  {
    title: "a notification with positional params",
    text: '{"jsonrpc": "2.0", "method": "session/list", "params": [1,2,3,4,5]}',
    answer: undefined,
  },
  { title: "a notification without params", text: '{"jsonrpc": "2.0", "method": "session/list"}', answer: undefined },
  {
    title: "a notification of no known method",
    text: '{"jsonrpc": "2.0", "method": "foobar"}',
    answer: undefined,
  },
  {
    title: "a call of no known method",
    text: '{"jsonrpc": "2.0", "method": "foobar", "id": "1"}',
    answer: notFound("1"),
  },
  {
    title: "a call with invalid JSON",
    text: '{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]',
    answer: parseError,
    status: 400,
  },
  {
    title: "a call with an invalid request object",
    text: '{"jsonrpc": "2.0", "method": 1, "params": "bar"}',
    answer: invalid(),
    status: 400,
  },
  {
    title: "a batch with invalid JSON",
    text: '[{"jsonrpc": "2.0", "method": "session/list", "id": "1"},{"jsonrpc": "2.0", "method"]',
    answer: parseError,
    status: 400,
  },
  { title: "an empty batch", text: "[]", answer: invalid(), status: 400 },
  { title: "a batch of one invalid request", text: "[1]", answer: [invalid()] },
  { title: "a batch of three invalid requests", text: "[1,2,3]", answer: [invalid(), invalid(), invalid()] },
  {
    title: "a batch of calls, notifications and others",
    text: `[${[
      list("1"),
      '{"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}',
      list("2"),
      '{"foo": "boo"}',
      '{"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"}',
      '{"jsonrpc": "2.0", "method": "rpc.discover", "id": "9"}',
    ].join(", ")}]`,
    answer: [noSessions("1"), noSessions("2"), invalid(), notFound("5"), { id: "9", result: { openrpc: "1.3.2" } }],
  },
  {
    title: "a batch of notifications",
    text: '[{"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]}, {"jsonrpc": "2.0", "method": "session/list"}]',
    answer: undefined,
  },
];

/** Rules that the specification gives in words, and cases that it leaves open. */
export const further: readonly Example[] = [
  { title: "a batch with one answer is still a batch", text: `[${list("1")}, ${list()}]`, answer: [noSessions("1")] },
  { title: "a call with id null", text: list(null), answer: noSessions(null) },
  {
    title: "a failing call with id null differs from an unreadable one",
    text: '{"jsonrpc": "2.0", "method": "nope", "id": null}',
    answer: notFound(null),
  },
  { title: "a call with an empty id", text: list(""), answer: noSessions("") },
  { title: "a call with id 0", text: list(0), answer: noSessions(0) },
  { title: "a call with a negative id", text: list(-7), answer: noSessions(-7) },
  { title: "a call with a fraction as id", text: list(1.5), answer: noSessions(1.5) },
  {
    title: "a call with an id of unusual characters",
    text: list("\u0000\u{1f600}\u2028"),
    answer: noSessions("\u0000\u{1f600}\u2028"),
  },
  { title: "an id that is an object", text: list({}), answer: invalid(), status: 400 },
  { title: "an id that is an array", text: list([1]), answer: invalid(), status: 400 },
  { title: "an id that is true", text: list(true), answer: invalid(), status: 400 },
  {
    title: "an id that is not a finite number could not be written back",
    text: '{"jsonrpc": "2.0", "method": "session/list", "id": 1e999}',
    answer: invalid(),
    status: 400,
  },
  {
    title: "an id that would be written back as another one",
    text: '{"jsonrpc": "2.0", "method": "session/list", "id": 9007199254740993}',
    answer: invalid(),
    status: 400,
  },
  {
    title: "a request of version 1.0 is answered under its id",
    text: '{"jsonrpc": "1.0", "method": "session/list", "id": 8}',
    answer: invalid(8),
  },
  { title: "a request without a version", text: '{"method": "session/list", "id": 8}', answer: invalid(8) },
  {
    title: "a request with a numeric version",
    text: '{"jsonrpc": 2.0, "method": "session/list", "id": 8}',
    answer: invalid(8),
  },
  { title: "a request without a method", text: '{"jsonrpc": "2.0", "id": 8}', answer: invalid(8) },
  {
    title: "params that are a string",
    text: '{"jsonrpc": "2.0", "method": "session/list", "params": "x", "id": 8}',
    answer: invalid(8),
  },
  {
    title: "params that are null",
    text: '{"jsonrpc": "2.0", "method": "session/list", "params": null, "id": 8}',
    answer: invalid(8),
  },
  {
    title: "params that the method does not know",
    text: '{"jsonrpc": "2.0", "method": "session/list", "params": {"path": "/"}, "id": 8}',
    answer: badParams(8),
  },
  {
    title: "a member that JSON-RPC does not know",
    text: '{"jsonrpc": "2.0", "method": "session/list", "id": 8, "meta": 1}',
    answer: noSessions(8),
  },
  { title: "a response with a result", text: '{"jsonrpc": "2.0", "result": 19, "id": 1}', answer: undefined },
  {
    title: "a response with an error",
    text: '{"jsonrpc": "2.0", "error": {"code": 1, "message": ""}, "id": 1}',
    answer: undefined,
  },
  { title: "a batch of responses", text: '[{"jsonrpc": "2.0", "result": 19, "id": 1}]', answer: undefined },
  {
    title: "a response among calls",
    text: `[{"jsonrpc": "2.0", "result": 19, "id": 1}, ${list(2)}]`,
    answer: [noSessions(2)],
  },
  {
    title: "a message that is both request and response",
    text: '{"jsonrpc": "2.0", "method": "session/list", "result": 1, "id": 8}',
    answer: invalid(8),
  },
  { title: "a batch in a batch", text: `[[${list(1)}]]`, answer: [invalid()] },
  { title: "a bare string", text: '"session/list"', answer: invalid(), status: 400 },
  { title: "a bare null", text: "null", answer: invalid(), status: 400 },
  { title: "an empty text", text: "", answer: parseError, status: 400 },
  { title: "spaces only", text: " \n", answer: parseError, status: 400 },
  { title: "two requests without a batch", text: `${list(1)}\n${list(2)}`, answer: parseError, status: 400 },
  {
    title: "an error of a handler",
    text: JSON.stringify({ jsonrpc: "2.0", method: "delivery/get", params: { deliveryId }, id: 8 }),
    answer: { id: 8, error: { code: -32030, name: "delivery_not_found" } },
  },
  {
    title: "a cancellation of nothing, as a notification",
    text: '{"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 99}}',
    answer: undefined,
  },
  {
    title: "a cancellation of nothing, as a call",
    text: '{"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 99}, "id": 8}',
    answer: { id: 8, result: null },
  },
  ...[
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "rpc.foo",
    "session.list",
    "SESSION/LIST",
    "",
    "\u0000",
  ].map(
    (method): Example => ({
      title: `a call of the method ${JSON.stringify(method)}`,
      text: JSON.stringify({ jsonrpc: "2.0", method, id: 8 }),
      answer: notFound(8),
    }),
  ),
];

/** Fails unless a parsed answer is the example's; `undefined` stands for no answer. */
export function expectAnswer(given: unknown, { answer }: Example): void {
  if (answer === undefined) {
    expect(given).toBeUndefined();
  } else if (Array.isArray(answer)) {
    expect(sorted(given as readonly unknown[])).toEqual(sorted(answer.map(shape)));
  } else {
    expect(given).toEqual(shape(answer as Expected));
  }
}

/** A batch is answered in any order. */
function sorted(answers: readonly unknown[]): readonly unknown[] {
  const key = (answer: unknown): string => String((answer as { id: unknown }).id);
  return answers.toSorted((a, b) => key(a).localeCompare(key(b)));
}

function shape(expected: Expected): unknown {
  if ("result" in expected) return { jsonrpc: "2.0", ...expected };
  const { code, name } = expected.error;
  const error = {
    code,
    message: expect.any(String),
    data: expect.objectContaining({ name, retryable: expect.any(Boolean) }),
  };
  return { jsonrpc: "2.0", id: expected.id, error };
}
