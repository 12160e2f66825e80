import { createHash } from "node:crypto";
import { answer, call, hold } from "../../../../provider/reply.ts";
import { extensionsDoNotEnd, newSessionHasOtherReason } from "../allowances.ts";
import type { FrontEnd } from "../front-end.ts";
import type { Scenario } from "../scenario.ts";

const args = ["--extension", "extension.ts"];

/** An extension whose function has this body. */
function extension(body: string): Scenario["files"] & object {
  return { "cwd/extension.ts": `export default function (pi) {\n${body}\n}\n` };
}

/** Where pi keeps the packages of its command line, below its own directory. */
const placeOf = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 8);
const npmPlace = placeOf("npm-");
const gitPlace = `git-example.org/${placeOf("git-example.org-twins/other")}/twins/other`;

/** A package with an extension that registers a command. */
function packageIn(place: string, command: string): Scenario["files"] & object {
  const manifest = { name: "twin", version: "1.0.0", pi: { extensions: ["./index.ts"] } };
  return {
    [`agent/tmp/extensions/${place}/package.json`]: JSON.stringify(manifest),
    [`agent/tmp/extensions/${place}/index.ts`]: `export default (pi) => pi.registerCommand("${command}", { description: "Is there.", handler: async () => {} });\n`,
  };
}

const showing = extension(`
  pi.on("session_start", (_event, { ui }) => {
    ui.setStatus("state", "started");
    ui.setTitle("a title");
  });
  pi.registerCommand("show", {
    description: "Shows everything once.",
    handler: async (text, { ui }) => {
      ui.notify("plain " + text);
      ui.notify("a warning", "warning");
      ui.setStatus("state", "shown");
      ui.setStatus("state", undefined);
      ui.setWidget("list", ["one", "two"]);
      ui.setWidget("list", ["three"], { placement: "belowEditor" });
      ui.setWidget("list", undefined);
      ui.setTitle("another title");
      ui.setEditorText("some text");
    },
  });
  pi.registerCommand("fail", { handler: async () => { throw new Error("it failed"); } });
`);

const asking = extension(`
  pi.registerCommand("ask", {
    description: "Asks one question after the other.",
    handler: async (_text, { ui }) => {
      const answers = [
        await ui.select("Which?", ["a", "b"]),
        await ui.confirm("Sure?", "For good."),
        await ui.input("Name?", "a name"),
        await ui.editor("Text?", "two\\nlines"),
      ];
      ui.notify(JSON.stringify(answers));
    },
  });
  pi.registerCommand("brief", {
    description: "Asks with a time limit.",
    handler: async (_text, { ui }) => ui.notify(String(await ui.confirm("Quick?", "", { timeout: 50 }))),
  });
  pi.on("tool_call", async (event, { ui }) =>
    (await ui.confirm("Run " + event.toolName + "?", "")) ? undefined : { block: true, reason: "The user said no." },
  );
`);

async function respond(front: FrontEnd, method: string, response: object): Promise<void> {
  const { id } = await front.request(method);
  front.send({ type: "extension_ui_response", id, ...response });
}

/** Commands, messages, questions and hooks of extensions. */
export const extensions: readonly Scenario[] = [
  {
    name: "an extension that shows messages, statuses, widgets and titles",
    args,
    files: showing,
    play: async (front) => {
      await front.call({ type: "get_commands" });
      await front.call({ type: "prompt", message: "/show some text" });
      await front.call({ type: "prompt", message: "/fail" });
      await front.call({ type: "steer", message: "/show" });
      await front.prompt("hello");
    },
  },
  {
    name: "an extension's command during a run",
    args,
    files: showing,
    script: (gates) => [answer("one ", hold(gates.named("one")), "more")],
    play: async (front) => {
      await front.call({ type: "prompt", message: "hello" });
      await front.streamed("one");
      await front.call({ type: "prompt", message: "/show in a run" });
      front.gate("one").open();
      await front.settled();
    },
  },
  {
    name: "questions that are answered",
    args,
    files: asking,
    play: async (front) => {
      front.send({ id: "ask", type: "prompt", message: "/ask" });
      await respond(front, "select", { value: "b" });
      await respond(front, "confirm", { confirmed: true });
      await respond(front, "input", { value: "Ada\u2028" });
      await respond(front, "editor", { value: "other\ntext" });
      await front.response("ask");
    },
  },
  {
    name: "questions that are cancelled, and answers to nothing",
    args,
    files: asking,
    play: async (front) => {
      front.send({ type: "extension_ui_response", id: "unknown", value: "x" });
      front.send({ id: "ask", type: "prompt", message: "/ask" });
      await respond(front, "select", { cancelled: true });
      await respond(front, "confirm", { confirmed: false });
      const { id } = await front.request("input");
      front.send({ type: "extension_ui_response", id, cancelled: true });
      await respond(front, "editor", { value: "" });
      await front.response("ask");
      front.send({ type: "extension_ui_response", id, value: "late" });
      await front.call({ type: "get_state" });
    },
  },
  {
    name: "a question that pi answers by itself after its time",
    args,
    files: asking,
    play: async (front) => {
      await front.call({ type: "prompt", message: "/brief" });
    },
  },
  {
    name: "a question before each tool",
    args,
    files: { ...asking, "cwd/notes.txt": "text" },
    script: () => [
      answer(call("read", { path: "notes.txt" }, "call_1")),
      answer(call("bash", { command: "echo never" }, "call_2")),
      "done",
    ],
    play: async (front) => {
      await front.call({ type: "prompt", message: "read it" });
      await respond(front, "confirm", { confirmed: true });
      await respond(front, "confirm", { confirmed: false });
      await front.settled();
    },
  },
  {
    name: "messages and entries of an extension",
    known: { "0.87.1": /differs at \.type: "agent_start" and "response"/ },
    args,
    files: extension(`
      pi.registerCommand("note", {
        description: "Appends an entry and a message.",
        handler: async (text) => {
          pi.appendEntry("note", { text });
          pi.sendMessage({ customType: "note", content: text, display: true }, { triggerTurn: false });
        },
      });
      pi.registerCommand("go", {
        description: "Starts a run.",
        handler: async (text) => pi.sendMessage({ customType: "go", content: text, display: true }, { triggerTurn: true }),
      });
    `),
    play: async (front) => {
      await front.prompt("hello");
      await front.call({ type: "prompt", message: "/note remember" });
      await front.call({ type: "prompt", message: "/go on" });
      await front.settled();
      await front.call({ type: "get_entries" });
    },
  },
  {
    name: "a tool and hooks of an extension",
    args,
    files: extension(`
      pi.registerTool({
        name: "count",
        label: "Count",
        description: "Counts.",
        parameters: { type: "object", properties: { to: { type: "number" } }, required: ["to"] },
        execute: async (_id, { to }, _signal, onUpdate) => {
          onUpdate({ content: [{ type: "text", text: "counting" }], details: { to } });
          return { content: [{ type: "text", text: "counted to " + to }], details: { to } };
        },
      });
      pi.on("input", (event) =>
        event.text === "swallow" ? { action: "handled" } : { action: "transform", text: event.text + "!" },
      );
      pi.on("before_agent_start", () => ({ message: { customType: "hint", content: "a hint", display: true } }));
      pi.on("turn_end", () => { throw new Error("a hook failed"); });
    `),
    script: () => [answer(call("count", { to: 3 }, "call_1")), "done"],
    play: async (front) => {
      await front.call({ type: "prompt", message: "swallow" });
      await front.prompt("count");
      await front.call({ type: "get_commands" });
    },
  },
  {
    name: "an extension that hears of sessions",
    known: { "0.87.1": /differs at \.id: "call-5"/, "1.5.2": /differs at \.id: "call-5"/ },
    args,
    files: extension(`
      pi.on("session_start", (event, { ui }) => ui.notify("session_start " + event.reason));
      pi.on("session_shutdown", (_event, { ui }) => ui.notify("session_shutdown"));
    `),
    allow: [newSessionHasOtherReason, extensionsDoNotEnd("session_shutdown")],
    play: async (front) => {
      await front.prompt("hello");
      await front.call({ type: "new_session" });
      await front.prompt("hello again");
      const [message] = await front.list<{ readonly entryId: string }>("get_fork_messages", "messages");
      await front.call({ type: "fork", entryId: message?.entryId });
    },
  },
  {
    name: "an extension that keeps the session",
    known: { "0.87.1": /"asked for new" and "asked for resume"/, "1.5.2": /"asked for new" and "asked for resume"/ },
    args,
    files: extension(`
      pi.on("session_before_switch", (event, { ui }) => {
        ui.notify("asked for " + event.reason);
        return { cancel: true };
      });
      pi.on("session_before_fork", () => ({ cancel: true }));
    `),
    play: async (front) => {
      await front.prompt("hello");
      await front.call({ type: "new_session" });
      await front.call({ type: "clone" });
      const [message] = await front.list<{ readonly entryId: string }>("get_fork_messages", "messages");
      await front.call({ type: "fork", entryId: message?.entryId });
      await front.call({ type: "switch_session", sessionPath: front.world.path("tmp/new.jsonl") });
      await front.call({ type: "get_state" });
    },
  },
  {
    name: "an extension that hears of a return to a session, and that may forbid it",
    args,
    files: extension(`
      let mayGo = true;
      pi.registerCommand("go", { description: "Allows it, or not.", handler: async (text) => { mayGo = text === "on"; } });
      pi.on("session_start", (event, { ui }) => ui.notify("session_start " + event.reason));
      pi.on("session_before_switch", (_event, { ui }) => {
        ui.notify(mayGo ? "goes" : "stays");
        return { cancel: !mayGo };
      });
    `),
    allow: [newSessionHasOtherReason],
    play: async (front) => {
      await front.prompt("in the first");
      const { data } = await front.call({ type: "get_state" });
      await front.call({ type: "new_session" });
      await front.prompt("in the second");
      await front.call({ type: "prompt", message: "/go off" });
      await front.call({ type: "switch_session", sessionPath: data?.["sessionFile"] });
      await front.call({ type: "get_messages" });
      await front.call({ type: "prompt", message: "/go on" });
      await front.call({ type: "switch_session", sessionPath: data?.["sessionFile"] });
      await front.call({ type: "get_messages" });
      await front.prompt("in the first again");
    },
  },
  {
    name: "an extension that replaces the session",
    known: {
      "0.87.1": /differs at \.data\.messageCount: 0 and 3/,
      "1.5.2": /differs at \.data\.messageCount: 0 and 3/,
    },
    args,
    files: extension(`
      pi.registerCommand("fresh", {
        description: "Starts a new session.",
        handler: async (_text, ctx) => { await ctx.newSession(); },
      });
    `),
    play: async (front) => {
      await front.prompt("hello");
      await front.call({ type: "prompt", message: "/fresh" });
      await front.call({ type: "get_state" });
      await front.prompt("in the new one");
    },
  },
  {
    name: "flags of an extension",
    args: ["--plan", ...args, "--depth=-3", "--file=@notes.txt", "--words", "--words=", "--who", "me"],
    files: extension(`
      pi.registerFlag("plan", { type: "boolean" });
      for (const name of ["depth", "file", "words", "who", "other"]) pi.registerFlag(name, { type: "string" });
      pi.registerCommand("flags", {
        description: "Tells the flags.",
        handler: async (_text, { ui }) =>
          ui.notify(JSON.stringify(["plan", "depth", "file", "words", "who", "other"].map((name) => pi.getFlag(name) ?? null))),
      });
    `),
    play: async (front) => {
      await front.call({ type: "prompt", message: "/flags" });
      await front.prompt("hello");
      await front.call({ type: "new_session" });
      await front.call({ type: "prompt", message: "/flags" });
    },
  },
  {
    name: "packages as extensions, which are installed already",
    // Nothing is downloaded offline.
    args: ["-e", "npm:twin@1.0.0", "--extension", "git:example.org/twins/other", "--offline"],
    files: { ...packageIn(`npm/${npmPlace}/node_modules/twin`, "one"), ...packageIn(gitPlace, "other") },
    play: async (front) => {
      await front.call({ type: "get_commands" });
      await front.prompt("hello");
    },
  },
  {
    name: "an extension of pi's own that does not exist",
    becomesPi: true,
    args: ["-e", "builtin:no-such-extension"],
    play: (front) => front.ended(),
  },
  {
    name: "a flag of an extension that needs a value",
    becomesPi: true,
    args: ["--who", ...args],
    files: extension('pi.registerFlag("who", { type: "string" });'),
    play: (front) => front.ended(),
  },
  {
    name: "an extension that ends pi",
    args,
    files: extension(`
      pi.registerCommand("bye", { description: "Ends pi.", handler: async (_text, ctx) => ctx.shutdown() });
    `),
    play: async (front) => {
      await front.prompt("hello");
      await front.call({ type: "prompt", message: "/bye" });
      await front.ended();
    },
  },
  {
    name: "an extension that does not load",
    becomesPi: true,
    args,
    files: { "cwd/extension.ts": 'throw new Error("not today");\n' },
    play: async (front) => {
      await front.ended();
    },
  },
  {
    name: "words of an extension on stdout and stderr",
    args,
    files: extension(`
      console.log("to stdout");
      console.error("to stderr");
      pi.registerCommand("talk", { description: "Talks.", handler: async () => console.error("more") });
    `),
    play: async (front) => {
      await front.call({ type: "prompt", message: "/talk" });
      await front.call({ type: "get_state" });
    },
  },
];
