import { expect, test, vi } from "vitest";
import { type Frame, unnumberedFrame } from "../../../server/frames/frame.ts";
import { AnswerOrder } from "../../../server/log/answer-order.ts";
import { patience } from "../../helpers/patience.ts";

const frame = (text: string): Frame => unnumberedFrame(Buffer.from(text));

function order({ maxWaitMs = 600_000, maxBytes = 1_000 } = {}) {
  const sent: string[] = [];
  const given = new AnswerOrder(
    ({ bytes }) => void sent.push(bytes.toString()),
    { maxWaitMs, maxBytes },
    (error) => {
      throw error;
    },
  );
  return { given, sent, send: (text: string) => given.send(frame(text)) };
}

test("a frame waits for the answers before it, and an answer for nothing after it", () => {
  const { given, sent, send } = order();
  send("a");
  const first = given.place();
  send("b");
  const second = given.place();
  send("c");
  expect(sent).toEqual(["a"]);
  second.fill(frame("2"));
  expect(sent).toEqual(["a"]);
  first.fill(frame("1"));
  expect(sent).toEqual(["a", "1", "b", "2", "c"]);
  send("d");
  expect(sent.at(-1)).toBe("d");
});

test("an answer that is not given holds nothing up", () => {
  const { given, sent, send } = order();
  const place = given.place();
  send("a");
  place.fill(undefined);
  expect(sent).toEqual(["a"]);
});

test("an answer that takes too long comes after what was sent meanwhile", async () => {
  const { given, sent, send } = order({ maxWaitMs: 1 });
  const place = given.place();
  send("a");
  await vi.waitFor(() => expect(sent).toEqual(["a"]), patience);
  place.fill(frame("1"));
  expect(sent).toEqual(["a", "1"]);
});

test("more bytes than the limit wait for no answer", () => {
  const { given, sent, send } = order({ maxBytes: 3 });
  const [first, second] = [given.place(), given.place()];
  send("abc");
  expect(sent).toEqual([]);
  send("d");
  expect(sent).toEqual(["abc", "d"]);
  second.fill(frame("2"));
  first.fill(frame("1"));
  expect(sent).toEqual(["abc", "d", "2", "1"]);
});

test("at the end, frames that wait are dropped, and answers are given", () => {
  const { given, sent, send } = order();
  const [first, second, third] = [given.place(), given.place(), given.place()];
  send("a");
  second.fill(frame("2"));
  third.fill(undefined);
  given.end();
  expect(sent).toEqual(["2"]);
  first.fill(frame("1"));
  expect(sent).toEqual(["2", "1"]);
});
