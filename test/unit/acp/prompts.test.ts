import { expect, onTestFinished, test } from "vitest";
import { AcpError } from "../../../acp/acp-error.ts";
import { AnswersAtEnd } from "../../../acp/answers-at-end.ts";
import type { Port } from "../../../acp/port.ts";
import { Prompts } from "../../../acp/prompts.ts";
import type { SessionParts } from "../../../acp/session-version.ts";
import { AnswersAtInsertion } from "../../../acp/v2/answers-at-insertion.ts";
import type { Foreground } from "../../../acp/v2/foreground.ts";
import { unchecked } from "../../helpers/partial.ts";

test("a command of a client that has gone meanwhile leaves no error that nobody handles", async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  process.prependListener("unhandledRejection", note);
  onTestFinished(() => void process.removeListener("unhandledRejection", note));
  const left = new AbortController();
  const port = unchecked<Port>({
    call: async (method: string) => {
      if (method !== "session/getCommands") throw new Error("The connection has ended.");
      left.abort(new AcpError("internalError", "The client has left."));
      return { commands: [] };
    },
  });
  const common = { sessionId: "s-1", port, left: left.signal };
  const answers = new AnswersAtEnd(unchecked<SessionParts>(common));
  const prompts = new Prompts({ ...common, saveExport: undefined, answers });
  const prompt = [{ type: "text", text: "/name It" }];
  await expect(prompts.prompt({ prompt }, new AbortController().signal)).rejects.toThrow("The client has left.");
  await new Promise((resolve) => setImmediate(resolve));
  expect(unhandled).toEqual([]);
});

test("a prompt whose request version 2 cancels before the daemon has it is not sent", async () => {
  const request = new AbortController();
  const called: string[] = [];
  const port = unchecked<Port>({
    call: async (method: string) => {
      called.push(method);
      request.abort();
      return { commands: [] };
    },
  });
  const common = { sessionId: "s-1", port, left: new AbortController().signal };
  const parts = unchecked<SessionParts>(common);
  const answers = new AnswersAtInsertion({ parts, foreground: unchecked<Foreground>({}), lastMessage: () => "" });
  const prompts = new Prompts({ ...common, saveExport: undefined, answers });
  const prompt = [{ type: "text", text: "/unknown" }];
  await expect(prompts.prompt({ prompt }, request.signal)).rejects.toMatchObject({ code: -32_800 });
  expect(called).toEqual(["session/getCommands"]);
});
