import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { OrderedOutput } from "../../../../cli/rpc/ordered-output.ts";

function output(): { readonly ordered: OrderedOutput; readonly text: () => string } {
  const stream = new PassThrough();
  return { ordered: new OrderedOutput(stream), text: () => String(stream.read() ?? "") };
}

test("a line that is not known yet keeps its place", async () => {
  const { ordered, text } = output();
  const [first, second] = [Promise.withResolvers<string>(), Promise.withResolvers<string | undefined>()];
  ordered.write("a");
  ordered.writeLater(first.promise);
  ordered.write("b");
  ordered.writeLater(second.promise);
  ordered.write("c");
  expect(text()).toBe("a\n");
  second.resolve(undefined);
  first.resolve("1");
  await ordered.written();
  expect(text()).toBe("1\nb\nc\n");
  ordered.write("d");
  expect(text()).toBe("d\n");
});
