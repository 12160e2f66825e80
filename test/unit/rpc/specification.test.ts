import { describe, expect, it } from "vitest";
import type { Transport } from "../../../server/edge/admission.ts";
import { http, json, openWebSocket, startEdge, type TestEdge } from "../../helpers/edge.ts";
import { type Example, type Expected, further, specification } from "./examples.ts";

/** Says one text to an edge; resolves with the answer, or undefined when there is none. */
type Say = (edge: TestEdge, example: Example) => Promise<unknown>;

const transports: Readonly<Record<string, Say>> = {
  "the dispatcher alone": async ({ dispatcher }, { text }) =>
    through(await dispatcher.converse(undefined, undefined).receive(Buffer.from(text))),
  "a WebSocket over TCP": (edge, { text }) => overWebSocket(edge, "tcp", text),
  "a WebSocket over a Unix socket": (edge, { text }) => overWebSocket(edge, "unix", text),
  "HTTP over TCP": (edge, example) => overHttp(edge, "tcp", example),
  "HTTP over a Unix socket": (edge, example) => overHttp(edge, "unix", example),
};

describe.each(Object.entries(transports))("JSON-RPC 2.0 over %s", (_name, say) => {
  it.each(specification)("answers as the specification's examples do: $title", async (example) => {
    await using edge = await startEdge();
    expectAnswer(await say(edge, example), example);
  });

  it.each(further)("answers to the letter: $title", async (example) => {
    await using edge = await startEdge();
    expectAnswer(await say(edge, example), example);
  });
});

async function overHttp(edge: TestEdge, transport: Transport, example: Example): Promise<unknown> {
  const { text, answer, status = answer === undefined ? 204 : 200 } = example;
  const given = await http(edge, { transport, method: "POST", path: "/v1/rpc", headers: json, body: text });
  expect(given.status).toBe(status);
  if (given.status !== 204) return given.body;
  expect(given.text).toBe("");
  return undefined;
}

/** Two calls follow the text, one after the other: what is not answered before the second is never answered. */
async function overWebSocket(edge: TestEdge, transport: Transport, text: string): Promise<unknown> {
  await using webSocket = await openWebSocket(edge, transport);
  webSocket.raw.send(text);
  const heard: unknown[] = [];
  for (const mark of ["first mark", "second mark"]) {
    webSocket.send({ jsonrpc: "2.0", id: mark, method: "daemon/info" });
    for (let message = await webSocket.next(); message.id !== mark; message = await webSocket.next())
      heard.push(message);
  }
  expect(heard.length).toBeLessThan(2);
  return heard[0];
}

function through(answer: unknown): unknown {
  return answer === undefined ? undefined : JSON.parse(JSON.stringify(answer));
}

function expectAnswer(given: unknown, { answer }: Example): void {
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
