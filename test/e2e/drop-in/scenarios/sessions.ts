import { answer, hold } from "../../../../provider/reply.ts";
import { otherDirectoryOpens } from "../allowances.ts";
import type { FrontEnd } from "../front-end.ts";
import type { Scenario } from "../scenario.ts";

const storedId = "019aa000-0000-7000-8000-000000000001";

/** The lines of a session file with one prompt and its answer. */
function storedSession(cwd: string): string {
  const timestamp = "2025-01-01T00:00:00.000Z";
  const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2 };
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  const assistant = { api: "openai-completions", provider: "scripted", model: "model-1", stopReason: "stop" };
  const message = (id: string, parentId: string | null, content: object): object => ({
    ...{ type: "message", id, parentId, timestamp },
    message: { timestamp: 1_735_689_600_000, ...content },
  });
  const lines = [
    { type: "session", version: 3, id: storedId, timestamp, cwd },
    message("aaaaaaa1", null, { role: "user", content: [{ type: "text", text: "stored prompt" }] }),
    message("aaaaaaa2", "aaaaaaa1", {
      role: "assistant",
      content: [{ type: "text", text: "stored answer" }],
      ...assistant,
      usage: { ...usage, cost },
    }),
  ];
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

async function sessionFile(front: FrontEnd): Promise<unknown> {
  const { data } = await front.call({ type: "get_state" });
  return data?.["sessionFile"];
}

async function lastForkEntry(front: FrontEnd): Promise<unknown> {
  const messages = await front.list<{ readonly entryId: string }>("get_fork_messages", "messages");
  return messages.at(-1)?.entryId;
}

/** Which session: at the start, and by the commands that replace it. */
export const sessions: readonly Scenario[] = [
  {
    name: "export_html to a relative, an absolute and pi's own path",
    play: async (front) => {
      await front.call({ type: "export_html", outputPath: "empty.html" });
      await front.prompt("hello");
      await front.call({ type: "export_html", outputPath: "relative.html" });
      await front.call({ type: "export_html", outputPath: front.world.path("tmp/absolute.html") });
      await front.call({ type: "export_html" });
      await front.call({ type: "export_html", outputPath: "no/such/directory.html" });
    },
  },
  {
    name: "new_session",
    play: async (front) => {
      await front.prompt("hello");
      await front.call({ type: "new_session" });
      await front.call({ type: "get_state" });
      await front.call({ type: "get_entries" });
      await front.prompt("in the new one");
      await front.call({ type: "get_entries" });
    },
  },
  {
    name: "new_session before anything, and with a parent",
    play: async (front) => {
      const parentSession = await sessionFile(front);
      await front.call({ type: "new_session", parentSession });
      await front.call({ type: "get_state" });
      await front.prompt("hello");
    },
  },
  {
    name: "new_session during a run",
    script: (gates) => [answer("one ", hold(gates.named("one")), "more"), "two"],
    play: async (front) => {
      await front.call({ type: "prompt", message: "hello" });
      await front.streamed("one");
      await front.call({ type: "new_session" });
      await front.prompt("again");
    },
  },
  {
    name: "switch_session there and back",
    play: async (front) => {
      await front.prompt("in the first");
      const first = await sessionFile(front);
      await front.call({ type: "new_session" });
      await front.prompt("in the second");
      const second = await sessionFile(front);
      await front.call({ type: "switch_session", sessionPath: first });
      await front.call({ type: "get_messages" });
      await front.prompt("in the first again");
      await front.call({ type: "switch_session", sessionPath: second });
      await front.call({ type: "get_state" });
      await front.call({ type: "get_entries" });
    },
  },
  {
    name: "switch_session during a run",
    script: (gates) => ["one", answer("two ", hold(gates.named("two")), "more"), "three"],
    play: async (front) => {
      await front.prompt("in the first");
      const first = await sessionFile(front);
      await front.call({ type: "new_session" });
      await front.call({ type: "prompt", message: "in the second" });
      await front.streamed("two");
      await front.call({ type: "switch_session", sessionPath: first });
      await front.call({ type: "get_messages" });
      await front.prompt("in the first again");
    },
  },
  {
    name: "switch_session to a stored file",
    files: { "cwd/stored.jsonl": storedSession("<root>/cwd") },
    play: async (front) => {
      await front.call({ type: "switch_session", sessionPath: front.world.path("cwd/stored.jsonl") });
      await front.call({ type: "get_messages" });
      await front.prompt("go on");
      await front.call({ type: "get_entries" });
    },
  },
  {
    name: "switch_session to a path that does not exist",
    play: async (front) => {
      await front.call({ type: "switch_session", sessionPath: front.world.path("tmp/new.jsonl") });
      await front.call({ type: "get_state" });
      await front.prompt("hello");
    },
  },
  {
    name: "fork from an earlier prompt, and from an unknown entry",
    play: async (front) => {
      await front.prompt("first");
      await front.prompt("second");
      await front.call({ type: "fork", entryId: "unknown" });
      await front.call({ type: "fork", entryId: await lastForkEntry(front) });
      await front.call({ type: "get_state" });
      await front.call({ type: "get_messages" });
      await front.prompt("third");
      await front.call({ type: "get_entries" });
    },
  },
  {
    name: "fork from the first prompt",
    play: async (front) => {
      await front.prompt("first");
      await front.call({ type: "fork", entryId: await lastForkEntry(front) });
      await front.call({ type: "get_state" });
      await front.prompt("instead");
    },
  },
  {
    name: "clone, also of an empty session",
    play: async (front) => {
      await front.call({ type: "clone" });
      await front.prompt("first");
      await front.call({ type: "clone" });
      await front.call({ type: "get_state" });
      await front.call({ type: "get_entries" });
      await front.prompt("second");
    },
  },
  {
    name: "fork during a run",
    script: (gates) => ["zero", answer("one ", hold(gates.named("one")), "more"), "two"],
    play: async (front) => {
      await front.prompt("hello");
      const entryId = await lastForkEntry(front);
      await front.call({ type: "prompt", message: "second" });
      await front.streamed("one");
      await front.call({ type: "fork", entryId });
      await front.prompt("again");
    },
  },
  {
    name: "--no-session",
    args: ["--no-session"],
    play: async (front) => {
      await front.call({ type: "get_state" });
      await front.prompt("hello");
      await front.call({ type: "get_session_stats" });
      await front.call({ type: "new_session" });
      await front.call({ type: "get_state" });
    },
  },
  {
    name: "--no-session with an id of its own",
    args: ["--no-session", "--session-id", "my-own-id"],
    play: async (front) => {
      await front.call({ type: "get_state" });
      await front.prompt("hello");
      await front.call({ type: "new_session" });
      await front.call({ type: "get_state" });
    },
  },
  {
    name: "--session with the path of a stored file",
    args: ["--session", "stored.jsonl"],
    files: { "cwd/stored.jsonl": storedSession("<root>/cwd") },
    play: async (front) => {
      await front.call({ type: "get_state" });
      await front.call({ type: "get_messages" });
      await front.prompt("go on");
    },
  },
  {
    name: "--session with a path that does not exist",
    args: ["--session", "<root>/tmp/new.jsonl"],
    play: async (front) => {
      await front.call({ type: "get_state" });
      await front.prompt("hello");
      await front.call({ type: "get_state" });
    },
  },
  {
    name: "--session-id that is new",
    args: ["--session-id", "my-own-id"],
    play: async (front) => {
      await front.call({ type: "get_state" });
      await front.prompt("hello");
    },
  },
  {
    name: "--session-dir, and --continue without a session",
    args: ["--session-dir", "<root>/tmp/sessions", "--continue"],
    play: async (front) => {
      await front.call({ type: "get_state" });
      await front.prompt("hello");
    },
  },
  {
    name: "--session-dir and --continue with a stored session",
    args: ["--session-dir", "<root>/tmp/sessions", "--continue"],
    files: { "tmp/sessions/2025-01-01T00-00-00-000Z_stored.jsonl": storedSession("<root>/cwd") },
    play: async (front) => {
      await front.call({ type: "get_state" });
      await front.prompt("go on");
    },
  },
  {
    name: "--fork of a stored file",
    args: ["--fork", "stored.jsonl"],
    files: { "cwd/stored.jsonl": storedSession("<root>/other"), "other/file.txt": "" },
    play: async (front) => {
      await front.call({ type: "get_state" });
      await front.call({ type: "get_entries" });
      await front.prompt("go on");
    },
  },
  {
    name: "--fork of the beginning of an id, from another directory, with an id and a name of its own",
    args: ["--fork", storedId.slice(0, 12), "--session-id", "my-own-id", "--name", "a fork"],
    files: {
      "agent/sessions/--other--/2025-01-01T00-00-00-000Z_stored.jsonl": storedSession("<root>/other"),
      "other/file.txt": "",
    },
    play: async (front) => {
      await front.call({ type: "get_state" });
      await front.call({ type: "get_entries" });
      await front.prompt("go on");
    },
  },
  {
    name: "--fork with the id of a session that exists",
    args: ["--fork", "no-such-session", "--session-dir", "<root>/tmp/sessions", "--session-id", storedId],
    files: { "tmp/sessions/2025-01-01T00-00-00-000Z_stored.jsonl": storedSession("<root>/cwd") },
    play: (front) => front.ended(),
  },
  {
    name: "--fork of an unknown id",
    args: ["--fork", "no-such-session"],
    play: (front) => front.ended(),
  },
  {
    name: "--fork of a file that does not exist",
    becomesPi: true,
    args: ["--fork", "<root>/tmp/nothing.jsonl"],
    play: (front) => front.ended(),
  },
  {
    name: "--fork of a file that is not a session",
    becomesPi: true,
    args: ["--fork", "notes.jsonl"],
    files: { "cwd/notes.jsonl": '{"type":"note"}\n' },
    play: (front) => front.ended(),
  },
  {
    name: "--session with an unknown id",
    args: ["--session", "no-such-session"],
    play: (front) => front.ended(),
  },
  {
    name: "--session with a file whose directory is gone",
    becomesPi: true,
    args: ["--session", "stored.jsonl"],
    files: { "cwd/stored.jsonl": storedSession("<root>/gone") },
    play: (front) => front.ended(),
  },
  {
    name: "an unknown flag",
    becomesPi: true,
    args: ["--no-such-flag"],
    play: (front) => front.ended(),
  },
  {
    name: "an unknown provider",
    becomesPi: true,
    args: ["--provider", "unknown", "--model", "x"],
    play: (front) => front.ended(),
  },
  {
    name: "an extension that does not exist",
    becomesPi: true,
    args: ["--extension", "missing.ts"],
    play: (front) => front.ended(),
  },
  {
    name: "a file as an argument",
    becomesPi: true,
    args: ["@notes.txt"],
    files: { "cwd/notes.txt": "text" },
    play: (front) => front.ended(),
  },
  {
    name: "an unknown model of a known provider",
    becomesPi: true,
    args: ["--model", "scripted/unknown"],
    play: async (front) => {
      await front.call({ type: "get_state" });
    },
  },
  {
    name: "a system prompt and more of it, tools, and files of instructions",
    args: ["--system-prompt", "You are brief.", "--append-system-prompt", "more.md", "--tools", "read,bash"],
    files: { "cwd/more.md": "Say please.", "cwd/AGENTS.md": "Be kind.", "agent/AGENTS.md": "Be quick." },
    play: async (front) => {
      await front.prompt("hello");
      await front.call({ type: "get_messages" });
    },
  },
  {
    name: "--session with the id of another directory",
    args: ["--session", storedId],
    files: {
      "agent/sessions/--other--/2025-01-01T00-00-00-000Z_stored.jsonl": storedSession("<root>/other"),
      "other/file.txt": "",
    },
    allow: [otherDirectoryOpens("state", "<id 1>")],
    play: async (front) => {
      front.send({ id: "state", type: "get_state" });
      if (front.isDropIn) await front.response("state");
      else await front.ended();
    },
  },
];
