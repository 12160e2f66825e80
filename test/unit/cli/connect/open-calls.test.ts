import { expect, test } from "vitest";
import { OpenCalls } from "../../../../cli/connect/open-calls.ts";
import { further, specification } from "../../../helpers/json-rpc-examples.ts";

const answered: readonly (readonly [string, boolean])[] = [
  ['{"jsonrpc":"2.0","id":1,"method":"a"}', true],
  ['{"jsonrpc":"2.0","id":null,"method":"a"}', true],
  ['{"jsonrpc":"2.0","method":"a"}', false],
  ['{"jsonrpc":"2.0"}', true],
  ["{", true],
  ["null", true],
  ["[]", true],
  ['[{"jsonrpc":"2.0","method":"a"}]', false],
  ['[{"jsonrpc":"2.0","method":"a"},1]', true],
  ['[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":2,"method":"a"}]', true],
];

test.each(answered)("%s: an answer is awaited: %s", (message, isAwaited) => {
  const calls = new OpenCalls();
  calls.sent(Buffer.from(message));
  expect(calls.isEmpty).toBe(!isAwaited);
  calls.received(Buffer.from('{"jsonrpc":"2.0","method":"session/event","params":{}}'));
  expect(calls.isEmpty).toBe(!isAwaited);
  calls.received(Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}'));
  expect(calls.isEmpty).toBe(true);
});

test.each([...specification, ...further])("an answer is awaited if JSON-RPC requires one: $title", (example) => {
  const calls = new OpenCalls();
  calls.sent(Buffer.from(example.text));
  expect(calls.isEmpty).toBe(example.answer === undefined);
});
