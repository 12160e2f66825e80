import { describe, expect, test } from "vitest";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import { withoutCarriers } from "../../../extension/stages/carrier.ts";
import { withHead } from "../../../extension/stages/head.ts";
import { CARRIER_TYPE } from "../../../protocol/link.ts";

type Fields = Readonly<Record<string, unknown>>;
const message = (role: string, fields: Fields = {}): AgentMessage =>
  Object.freeze({ role, content: "", timestamp: 1, ...fields }) as unknown as AgentMessage;
const system = (fields: Fields): AgentMessage => message("system", fields);
const user = message("user", { content: "Hello." });
const push = message("custom", { customType: "test", content: "Pushed." });
const carrier = message("custom", { customType: CARRIER_TYPE, content: "Go on." });
const answer = message("assistant", { stopReason: "stop" });
const failed = message("assistant", { stopReason: "error" });
const list = (...messages: readonly AgentMessage[]): readonly AgentMessage[] => Object.freeze([...messages]);

describe("the head", () => {
  const prompt = (): string => "You are pi.";
  const tools = [{ name: "bash" }];
  const full = system({ sections: { intro: "You are pi." }, toolsAdded: tools });

  test.for([
    ["has its sections", list(full, user)],
    ["has its text", list(system({ content: "You are somebody." }), user)],
    ["is patched later", list(full, user, system({ sections: { date: "Monday" } }), user)],
  ] as const)("a list whose head %s stays as it is", ([, messages]) => {
    expect(withHead(messages, prompt)).toBe(messages);
  });

  test("a head with only tools gets the prompt", () => {
    const messages = list(system({ toolsAdded: tools }), push);
    expect(withHead(messages, prompt)).toEqual([system({ content: "You are pi.", toolsAdded: tools }), push]);
  });

  test("a list without any system message gets a head", () => {
    expect(withHead(list(push), prompt)).toEqual([{ role: "system", content: "You are pi.", timestamp: 0 }, push]);
  });

  test("without a prompt none is invented", () => {
    for (const messages of [list(push), list(system({ toolsAdded: tools }), push)])
      expect(withHead(messages, () => "")).toBe(messages);
  });

  test("a prompt after the history comes first, with its tools", () => {
    expect(withHead(list(user, answer, full, user), prompt)).toEqual([full, user, answer, user]);
  });

  test("a late prompt joins the tools that came first, and later changes of the tools stay in order", () => {
    const added = system({ toolsAdded: [{ name: "late" }] });
    const late = system({
      sections: { intro: "You are pi." },
      toolsAdded: [{ name: "more" }],
      toolsRemoved: [{ name: "late" }],
    });
    const patch = system({ sections: { date: "Monday" } });
    expect(withHead(list(system({ toolsAdded: tools }), push, added, answer, late, user, patch), prompt)).toEqual([
      system({ sections: { intro: "You are pi." }, toolsAdded: tools }),
      push,
      added,
      answer,
      system({ toolsAdded: [{ name: "more" }], toolsRemoved: [{ name: "late" }] }),
      user,
      patch,
    ]);
  });

  test("a late prompt that changes no tools leaves nothing", () => {
    const late = system({ sections: { intro: "You are pi." } });
    expect(withHead(list(system({ toolsAdded: tools }), push, late, user), prompt)).toEqual([
      system({ sections: { intro: "You are pi." }, toolsAdded: tools }),
      push,
      user,
    ]);
  });
});

describe("carriers", () => {
  test.for([
    ["after a push", [user, answer, push, carrier], [user, answer, push]],
    ["after a push whose request has failed", [push, failed, carrier], [push, failed]],
    ["one after the other", [push, carrier, carrier], [push]],
    ["with later messages", [push, carrier, answer, user], [push, answer, user]],
    ["alone", [carrier], []],
  ] as const)("one %s is left out", ([, messages, expected]) => {
    expect(withoutCarriers(list(...messages))).toEqual(expected);
  });

  test("one directly after an answer stays, once, because a request must not end with the model's own words", () => {
    const patch = system({ sections: { date: "Monday" } });
    expect(withoutCarriers(list(user, answer, patch, carrier, carrier))).toEqual([user, answer, patch, carrier]);
  });

  test("a list without carriers is unchanged", () => {
    const messages = list(user, answer);
    expect(withoutCarriers(messages)).toBe(messages);
  });
});
