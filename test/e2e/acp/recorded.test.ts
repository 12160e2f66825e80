import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { LogEntry } from "../../../provider/log.ts";
import { lastText } from "../../../provider/messages.ts";
import { answer, call, hang, type Reply, thinking } from "../../../provider/reply.ts";
import { Editor, type Json } from "./editor.ts";
import { Scene } from "./scene.ts";
import { wrongIn } from "./wrong.ts";

// What editors sent to `pi-rpcd acp`, and the kinds of messages that they got. The first line of each file says who
// sent it. Names such as CWD, SESSION-1 and REQUEST-1 stand for what differs from run to run.

const folder = join(import.meta.dirname, "recorded");

type Line =
  | { readonly start: readonly string[] }
  | { readonly editor: Json }
  /** `sessionId`, `id`: the name of the session that the answer creates, or of the request. */
  | { readonly agent: string; readonly sessionId?: string; readonly id?: string }
  | { readonly end: "SIGHUP" | "SIGKILL" | "SIGTERM" };

test.each(readdirSync(folder))("the recorded traffic of %s gets the answers and updates that it got", async (file) => {
  const [, ...lines] = readFileSync(join(folder, file), "utf8").trim().split("\n");
  await using scene = await Scene.open(Array(30).fill(replyTo));
  writeFileSync(join(scene.cwd, "a.txt"), "one\ntwo\nthree\n");
  const names = new Map([["CWD", scene.cwd]]);
  let playback: Playback | undefined;
  for (const text of lines) {
    const line = JSON.parse(text) as Line;
    if ("start" in line) playback = new Playback(scene, names);
    else if ("editor" in line) await playback?.send(line.editor);
    else if ("agent" in line) playback?.expect(line);
    else await playback?.end(line.end);
  }
  expect(readFileSync(join(scene.cwd, "a.txt"), "utf8")).toBe("one\n2\nthree\n");
});

/** The model that the recorded prompts were sent to. */
function replyTo({ messages }: LogEntry): Reply {
  const { text, isToolResult } = lastText(messages);
  // A run that is cancelled goes on until then.
  if (isToolResult) return text.includes("The user said no") ? hang() : answer("It is done.");
  if (text.includes("well")) return answer("It is well.");
  if (text.endsWith("Wait.")) return answer(call("bash", { command: "sleep 600" }));
  if (text.includes("Run it")) return answer(call("bash", { command: "echo ask-first" }));
  const edit = call("edit", { path: "a.txt", edits: [{ oldText: "two", newText: "2" }] });
  return answer(thinking("The line is there."), edit);
}

/** One process of the agent. */
class Playback {
  readonly #editor: Editor;
  readonly #names: Map<string, string>;
  /** The methods of the requests that were sent, by their ids. */
  readonly #methods = new Map<unknown, string>();
  readonly #expected: Extract<Line, { agent: string }>[] = [];
  /** How many of the agent's messages came before the editor's newest. */
  #before = 0;

  constructor({ stage }: Scene, names: Map<string, string>) {
    this.#editor = new Editor({ ...stage, model: null });
    this.#names = names;
  }

  /** Sends a message when all that the editor got before it has come. */
  async send(message: Json): Promise<void> {
    await this.#answered();
    const { id, method } = message;
    if (id !== undefined && typeof method === "string") this.#methods.set(id, method);
    let text = JSON.stringify(message);
    for (const [name, value] of this.#names) text = text.replaceAll(name, value);
    this.#editor.write(text);
  }

  expect(line: Extract<Line, { agent: string }>): void {
    this.#expected.push(line);
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    await this.#answered();
    expect(await this.#editor.kill(signal)).toBe(signal === "SIGKILL" ? null : 128 + constants.signals[signal]);
    await this.#editor[Symbol.asyncDispose]();
  }

  async #answered(): Promise<void> {
    const expected = this.#expected.splice(0);
    if (expected.length === 0) return;
    const wanted = expected.map(({ agent }) => agent);
    const came = () => this.#editor.received.slice(this.#before);
    const kinds = (): readonly string[] => came().map(kindOf);
    const isComplete = (): boolean => wanted.every((kind) => kinds().includes(kind));
    // After an error nothing comes any more. What is missing, the comparison says.
    const isFailed = (): boolean => kinds().some((kind) => kind.includes(" error "));
    await this.#editor.until(() => isComplete() || isFailed()).catch(() => {});
    expect(different(kinds())).toEqual(different(wanted));
    for (const message of came()) {
      const method = this.#methods.get(message["id"]);
      if (message["method"] === undefined) expect(wrongIn(message, method), method).toBeUndefined();
      const line = expected.find(({ agent }) => agent === kindOf(message));
      const { sessionId } = (message["result"] ?? {}) as { readonly sessionId?: string };
      if (line?.sessionId !== undefined) this.#names.set(line.sessionId, String(sessionId));
      if (line?.id !== undefined) this.#names.set(line.id, String(message["id"]));
    }
    this.#before = this.#editor.received.length;
  }
}

/** The kinds without how often they came. A tool's output is told while it runs only if there is time for it. */
function different(kinds: readonly string[]): readonly string[] {
  return [...new Set([...kinds, "tool_call_update"])].sort();
}

/** As the recordings name it: an answer with its request, an update with the status that it tells, else the method. */
function kindOf({ id, method, params, result, error }: Json): string {
  if (method === "session/update") {
    const { sessionUpdate, status } = (params as { update: { sessionUpdate: string; status?: string } }).update;
    return status === undefined ? sessionUpdate : `${sessionUpdate} ${status}`;
  }
  if (typeof method === "string") return method;
  const { code } = (error ?? {}) as { readonly code?: number };
  const { stopReason } = (result ?? {}) as { readonly stopReason?: string };
  const outcome = code === undefined ? stopReason : `error ${code}`;
  return outcome === undefined ? `answer ${id}` : `answer ${id} ${outcome}`;
}
