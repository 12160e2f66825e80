import { expect, test } from "vitest";
import { EntryMap } from "../../../../../context/parts/map/entry-map.ts";
import type { AgentMessage } from "../../../../../extension/pi-types.ts";

const user = (content: string, timestamp = 1): AgentMessage => ({ role: "user", content, timestamp });
const result = (toolCallId: string, timestamp = 1): AgentMessage =>
  ({ role: "toolResult", toolCallId, toolName: "t", content: [], isError: false, timestamp }) as AgentMessage;

const projected = (...messages: readonly AgentMessage[]) =>
  messages.map((message, at) => ({ sourceEntry: { id: `e${at + 1}` }, messages: [message] }));

/** The entries of these messages, once pi has shown them with this projection. */
function entriesOf(
  messages: readonly AgentMessage[],
  owned: readonly AgentMessage[],
): (string | undefined)[] | "ambiguous" {
  const map = new EntryMap();
  map.take(messages, projected(...owned));
  return map.isAmbiguous ? "ambiguous" : messages.map((message) => map.entryOf(message));
}

test("three messages in one millisecond are distinguished by their position", () => {
  const owned = [user("a"), user("a"), user("b")];
  expect(entriesOf(structuredClone(owned), owned)).toEqual(["e1", "e2", "e3"]);
});

test("a message that another extension puts before ours has no entry", () => {
  const owned = [user("a"), result("c1", 2), result("c2", 2)];
  const theirs = [user("theirs", 7), ...structuredClone(owned)];
  expect(entriesOf(theirs, owned)).toEqual([undefined, "e1", "e2", "e3"]);
  // In the same millisecond, but with other words.
  expect(entriesOf([user("theirs"), ...structuredClone(owned)], owned)).toEqual([undefined, "e1", "e2", "e3"]);
});

test("a message that another extension removes takes no other message's entry", () => {
  const owned = [user("a"), user("b"), user("c")];
  expect(entriesOf([user("a"), user("c")], owned)).toEqual(["e1", "e3"]);
});

test("a message that could belong to either of two entries gets none", () => {
  expect(entriesOf([user("a")], [user("a"), user("a")])).toBe("ambiguous");
  expect(entriesOf([user("a"), user("a")], [user("a")])).toBe("ambiguous");
  expect(entriesOf([user("changed"), user("new")], [user("a")])).toBe("ambiguous");
});

test("later copies are recognised by role, time and call, if only one message has these", () => {
  const owned = [user("a", 1), result("c1", 2), user("b", 3), user("c", 3)];
  const map = new EntryMap();
  map.take(structuredClone(owned), projected(...owned));
  expect(structuredClone(owned).map((message) => map.entryOf(message))).toEqual(["e1", "e2", undefined, undefined]);
  map.forget();
  expect(map.entryOf(owned[0] as AgentMessage)).toBeUndefined();
});

test("an entry may produce several messages, and system messages are not counted", () => {
  const map = new EntryMap();
  const system = { role: "system", content: "", timestamp: 0 } as unknown as AgentMessage;
  const messages = [user("a"), user("b")];
  map.take(messages, [
    { sourceEntry: { id: "e0" }, messages: [system] },
    { sourceEntry: { id: "e1" }, messages: [user("a"), user("b")] },
  ]);
  expect(messages.map((message) => map.entryOf(message))).toEqual(["e1", "e1"]);
});

test("an apparent copy is not one while the message itself is present, nor are two of them", () => {
  const owned = [user("a", 1), user("b", 2)];
  const map = new EntryMap();
  const [first, second] = structuredClone(owned) as [AgentMessage, AgentMessage];
  map.take([first, second], projected(...owned));
  const [stranger, copy, twin] = [user("stranger", 1), user("b", 2), user("b", 2)];
  map.seen([stranger, first, copy]);
  expect([stranger, first, copy].map((message) => map.entryOf(message))).toEqual([undefined, "e1", "e2"]);
  map.take([first, second], projected(...owned));
  map.seen([first, copy, twin]);
  expect([first, copy, twin].map((message) => map.entryOf(message))).toEqual(["e1", undefined, undefined]);
});
