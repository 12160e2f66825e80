import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { ErrorOutput } from "../../../../cli/rpc/error-output.ts";

test("the text for a stderr that nobody reads is limited, and a line says how much is missing", async () => {
  let isRead = false;
  let taken = "";
  let goOn: () => void = () => {};
  const stream = new Writable({
    write: (chunk: Buffer, _, done) => {
      taken += chunk.toString();
      if (isRead) done();
      else goOn = () => done();
    },
  });
  const output = new ErrorOutput(stream);
  const text = "x".repeat(64 * 1024);
  for (let i = 0; i < 100; i += 1) output.write(text);
  const waiting = stream.writableLength;
  expect(waiting).toBe(1024 * 1024);
  isRead = true;
  const drained = new Promise((resolve) => stream.once("drain", resolve));
  goOn();
  await drained;
  output.write("the newest\n", 5);
  const line = `pi-rpcd: ${100 * text.length - waiting + 5} bytes of pi's stderr are omitted here.\n`;
  expect(taken.slice(waiting)).toBe(`${line}the newest\n`);
});
