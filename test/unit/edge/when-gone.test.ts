import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { whenGone } from "../../../server/edge/when-gone.ts";

/** The relevant part of a stream: it emits `close`, or has. */
function closable() {
  const emitter = new EventEmitter() as EventEmitter & { closed: boolean };
  emitter.closed = false;
  const close = (): void => {
    emitter.closed = true;
    emitter.emit("close");
  };
  return { emitter, close };
}

function request() {
  const socket = closable();
  const response = closable();
  const calls: string[] = [];
  const watch = (name: string, of = response): void =>
    whenGone(
      { socket: socket.emitter as unknown as Socket },
      of.emitter as unknown as ServerResponse,
      () => void calls.push(name),
    );
  return { socket, response, calls, watch };
}

test("a completed response ends its waits, once, whatever happens to its socket", () => {
  const { socket, response, calls, watch } = request();
  watch("a");
  watch("b");
  expect(calls).toEqual([]);
  response.close();
  expect(calls).toEqual(["a", "b"]);
  socket.close();
  expect(calls).toEqual(["a", "b"]);
});

test("a socket that closes ends all its responses, including those that do not emit an event", () => {
  const { socket, response, calls, watch } = request();
  const queued = closable();
  watch("first");
  watch("queued", queued);
  socket.close();
  expect(calls).toEqual(["first", "queued"]);
  // A later Node emits it anyway.
  response.close();
  queued.close();
  expect(calls).toHaveLength(2);
});

test("a stream that is already closed is reported immediately", () => {
  const behind = request();
  behind.socket.close();
  behind.watch("closed socket");
  const given = request();
  given.response.close();
  given.watch("closed response");
  expect([behind.calls, given.calls]).toEqual([["closed socket"], ["closed response"]]);
});

test("a socket of many requests keeps one listener", () => {
  const { socket, watch, calls } = request();
  for (let n = 0; n < 100; n += 1) {
    const response = closable();
    watch(String(n), response);
    response.close();
  }
  expect(socket.emitter.listenerCount("close")).toBe(1);
  expect(calls).toHaveLength(100);
});
