import { describe, expect, test } from "vitest";
import { UsageError } from "../../../cli/errors.ts";
import { pushText, slowCommand, tourReply } from "../../../cli/try/tour.ts";
import { tryOut } from "../../../cli/try.ts";
import type { RequestMessage } from "../../../provider/messages.ts";
import type { Reply } from "../../../provider/reply.ts";
import { memoryOutput } from "./memory-output.ts";

const empty = { texts: [], thinking: [], toolCalls: [], toolResults: [], imageCount: 0 };

function user(text: string): RequestMessage {
  return { ...empty, role: "user", texts: [text] };
}

function called(name: string): RequestMessage {
  return { ...empty, role: "assistant", texts: ["I call a tool."], toolCalls: [{ id: "1", name, arguments: {} }] };
}

function result(text: string): RequestMessage {
  return { ...empty, role: "tool", toolResults: [{ callId: "1", text, isError: false }] };
}

function said(reply: Reply): string {
  if (reply.kind !== "answer") return reply.kind;
  return reply.parts.map((part) => (part.kind === "text" ? part.text : "")).join("");
}

function callIn(reply: Reply): unknown {
  return reply.kind === "answer" ? reply.parts.find(({ kind }) => kind === "toolCall") : undefined;
}

function reply(...messages: readonly RequestMessage[]): Reply {
  return tourReply({ messages, toolNames: ["bash", "ask_user"] });
}

describe("the scripted model of try", () => {
  const began = [user("hello"), called("bash")];
  const toured = [user("hello"), { ...empty, role: "assistant", texts: ["That was the tour."] } as const];

  test("answers the first prompt in pieces, and calls a tool", () => {
    const first = reply(user("hello"));
    expect(said(first)).toContain("You wrote: “hello”");
    expect(first).toMatchObject({ parts: expect.arrayContaining([{ kind: "text", text: "word " }]) });
    expect(callIn(first)).toMatchObject({ name: "bash", arguments: { command: slowCommand } });
  });

  test("names a push only if its request has it, and asks a question", () => {
    const second = reply(...began, result("42 of 42 checks passed"), user(pushText("318-abc")));
    expect(said(second)).toContain("“Build 318-abc is green.”");
    expect(callIn(second)).toMatchObject({ name: "ask_user" });
    expect(said(reply(...began, result("42 of 42 checks passed")))).toContain("No push has reached me");
  });

  test("quotes what the user typed while the tool ran", () => {
    const typed = [user(pushText("318-abc")), user("and\nthen?")];
    expect(said(reply(...began, result("42 of 42 checks passed"), ...typed))).toContain("“and then?”");
  });

  test("explains the user's choice, or that there was none", () => {
    const asked = [...began, result("42 of 42 checks passed"), called("ask_user")];
    expect(said(reply(...asked, result("The user chose: Who else sees this session?")))).toMatch(
      /\*\*Who else sees this session\?\*\*\n\nEvery client/,
    );
    expect(said(reply(...asked, result("The user chose nothing.")))).toContain("You dismissed the question.");
  });

  test("gives the tour once, and again when asked for it", () => {
    expect(said(reply(...toured, user("what is 2+2?")))).toContain("cannot answer that");
    expect(callIn(reply(...toured, user("Again!")))).toMatchObject({ name: "bash" });
  });

  test("begins again after an aborted tool", () => {
    expect(callIn(reply(...began, result("Operation aborted"), user("hello?")))).toMatchObject({ name: "bash" });
  });

  test("answers a request without tools, such as one for a summary, with plain text", () => {
    expect(callIn(tourReply({ messages: [user("Summarize this.")], toolNames: [] }))).toBeUndefined();
  });
});

test("try without a terminal names the demo", async () => {
  const { output } = memoryOutput();
  const invocation = { options: {}, arguments: [], output, env: {}, signal: new AbortController().signal };
  const refused = await tryOut(invocation).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(UsageError);
  expect(String(refused)).toContain("pi-rpcd demo");
});
