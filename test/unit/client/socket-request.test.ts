import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type HttpAnswer, postToSocket } from "../../../client/socket-request.ts";

/** Sends a request to a server that writes these pieces and closes the connection, and returns the answer. */
async function answerOf(
  pieces: readonly string[],
  headers: Readonly<Record<string, string>> = {},
): Promise<HttpAnswer> {
  const directory = mkdtempSync(join(tmpdir(), "pi-rpcd-test-"));
  const socketPath = join(directory, "s");
  const server = createServer((socket) => {
    socket.on("error", () => {});
    const send = ([piece, ...later]: readonly string[]): void => {
      if (piece === undefined) socket.end();
      else socket.write(piece, () => send(later));
    };
    socket.once("data", () => send(pieces));
  }).listen(socketPath);
  try {
    await once(server, "listening");
    return await postToSocket({ socketPath, path: "/", headers, body: "", signal: undefined, maxAnswerBytes: 20_000 });
  } finally {
    server.close();
    rmSync(directory, { recursive: true });
  }
}

const ok = "HTTP/1.1 200 OK\r\n";

test.each([
  ["with its length", [`${ok}Content-Length: 2\r\n\r\n{}`]],
  ["that ends with the connection", [`${ok}date: now\r\n\r\n{}`]],
  ["in pieces of one byte", [...`${ok}content-length: 2\r\n\r\n{}`]],
])("an answer %s is complete", async (_, pieces) => {
  expect(await answerOf(pieces)).toEqual({ status: 200, body: "{}" });
});

test.each([
  ["has fewer bytes than its length", `${ok}content-length: 3\r\n\r\n{}`, "socket hang up"],
  ["ends in its head", ok, "socket hang up"],
  ["has more bytes than its length", `${ok}content-length: 1\r\n\r\n{}`, "longer than its content-length"],
  ["has two lengths", `${ok}content-length: 2\r\ncontent-length: 1\r\n\r\n{}`, "content-length that is not valid"],
  ["has a length that is not a number", `${ok}content-length: +2\r\n\r\n{}`, "content-length that is not valid"],
  ["is chunked", `${ok}transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`, "transfer-encoding"],
  ["has a broken header", `${ok}content-length : 2\r\n\r\n{}`, "header that is not valid"],
  ["has an endless head", `${ok}${"a".repeat(17_000)}`, "headers are too long"],
  ["announces too much", `${ok}content-length: 20001\r\n\r\n`, "maxAnswerBytes (20000)"],
  ["is too long", `${ok}\r\n${"a".repeat(20_001)}`, "maxAnswerBytes (20000)"],
  ["is not HTTP", "SSH-2.0-x\r\n\r\n", "not HTTP"],
])("an answer that %s is refused", async (_, text, message) => {
  await expect(answerOf([text])).rejects.toThrow(message);
});

test("a header cannot contain another one", async () => {
  await expect(answerOf([ok], { authorization: "a\r\nb: c" })).rejects.toThrow(TypeError);
});
