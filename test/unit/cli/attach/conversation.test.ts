import { describe, expect, onTestFinished, test, vi } from "vitest";
import { completion } from "../../../../cli/attach/completion.ts";
import { Conversation } from "../../../../cli/attach/conversation.ts";
import { LocalCommands } from "../../../../cli/attach/local-commands.ts";
import { Questions } from "../../../../cli/attach/questions.ts";
import { Screen } from "../../../../cli/attach/screen.ts";
import type { Client, Dialog, SessionHandle } from "../../../../client/index.ts";
import type { DaemonInfo } from "../../../../protocol/daemon.ts";
import { WireError } from "../../../../protocol/errors.ts";
import { MemoryTerminal } from "./memory-terminal.ts";

const esc = "\u001b";
const altEnter = "\u001b\r";
const controlC = "\u0003";
const controlD = "\u0004";

/** A screen with everything but a daemon: the calls are recorded. */
function stage({ isRunning = false, refused = false, isTemporary = false, error = new Error("refused") } = {}) {
  const terminal = new MemoryTerminal(100, 40);
  const screen = new Screen({ NO_COLOR: "1" }, terminal);
  const calls: unknown[][] = [];
  const called = async (...call: unknown[]): Promise<object> => {
    calls.push(call);
    if (refused) throw error;
    return {};
  };
  const session: Pick<SessionHandle, "id" | "prompt" | "abort" | "bash" | "command" | "compact"> = {
    id: "session-1",
    prompt: ((text, options) => called("prompt", text, options)) as SessionHandle["prompt"],
    abort: (async () => await called("abort")) as unknown as SessionHandle["abort"],
    bash: (async (command, options) => {
      await called("bash", command, { excludeFromContext: options?.excludeFromContext });
      return { bashId: "b", output: "some output", exitCode: 0, cancelled: false, truncated: false };
    }) as SessionHandle["bash"],
    compact: (async (options) => await called("compact", options)) as SessionHandle["compact"],
    command: (async (command) => await called("command", command)) as SessionHandle["command"],
  };
  const client: Pick<Client, "call" | "listSessions" | "listModels" | "info"> = {
    listModels: async () => ({ models: [], providers: [], asOf: 0 }),
    info: async () => ({ pi: { source: "path", path: "/usr/bin/pi" } }) as unknown as DaemonInfo,
    call: (async (method: string) => {
      if (method === "session/getCommands") return { commands: [{ name: "review", source: "prompt" }] };
      return await called(method);
    }) as unknown as Client["call"],
    listSessions: async () => [],
  };
  const view = { isRunning, isCompacting: false };
  const questions = new Questions(screen);
  const left = vi.fn();
  const commands = new LocalCommands({
    client: client as Client,
    session: session as SessionHandle,
    ...{ screen, isTemporary, env: {} },
    onSwitch: left,
    onLeave: left,
  });
  const conversation = new Conversation({
    ...{ session, view, screen, questions, commands, isTemporary },
    ifRunning: "steer",
  });
  screen.onKey = conversation.onKey;
  screen.isReady = true;
  screen.open();
  onTestFinished(() => screen.close());
  const text = (): string => {
    screen.tui.renderNow();
    return terminal.text;
  };
  const send = (typed: string): void => {
    terminal.type(typed);
    terminal.press("\r");
  };
  return { terminal, screen, calls, view, questions, commands, conversation, text, send, left };
}

function dialog(more: Partial<Dialog>): Dialog {
  return { dialogId: "dialog-1", title: "Which?", ...more } as Dialog;
}

const never = new AbortController().signal;

describe("Enter", () => {
  test("sends what was typed, and Alt-Enter queues it", async () => {
    const { send, terminal, calls } = stage();
    send("hello");
    send("   ");
    terminal.type("later");
    terminal.press(altEnter);
    await expect
      .poll(() => calls)
      .toEqual([
        ["prompt", "hello", { ifRunning: "steer" }],
        ["prompt", "later", { ifRunning: "followUp" }],
      ]);
  });

  test("sends a paste of 2,000 lines whole, which the editor shows as one mark and draws once", async () => {
    const { terminal, screen, calls, text } = stage();
    const pasted = Array.from({ length: 2_000 }, (_, index) => `line ${index} ${"x".repeat(70)}`).join("\n");
    text();
    const before = terminal.written.length;
    terminal.paste(pasted);
    expect(text()).toContain("[paste #1 +2000 lines]");
    expect(terminal.written.length - before).toBeLessThan(2_000);
    await new Promise((resolve) => setImmediate(resolve));
    expect(calls).toEqual([]);
    terminal.press("\r");
    await expect.poll(() => calls).toEqual([["prompt", pasted, { ifRunning: "steer" }]]);
    expect(screen.editor.getText()).toBe("");
  });

  test("before the session is known begins a new line, and sends nothing", async () => {
    const { terminal, screen, calls, send } = stage();
    screen.isReady = false;
    send("first");
    send("second");
    expect(screen.editor.getText()).toBe("first\nsecond\n");
    await new Promise((resolve) => setImmediate(resolve));
    expect(calls).toEqual([]);
    screen.isReady = true;
    terminal.press("\r");
    await expect.poll(() => calls).toEqual([["prompt", "first\nsecond\n", { ifRunning: "steer" }]]);
  });

  test("returns a text to the editor that was refused, is too long, or has no daemon to go to", async () => {
    const { send, text, screen, calls, conversation, terminal } = stage({ refused: true });
    send("refused text");
    await expect.poll(() => screen.editor.getText()).toBe("refused text");
    expect(text()).toContain("✘ refused (unexpected)");
    terminal.press(controlC);
    conversation.isConnected = false;
    send("no daemon");
    expect(screen.editor.getText()).toBe("no daemon");
    expect(text()).toContain("pi-rpcd start");
    terminal.press(controlC);
    conversation.isConnected = true;
    const long = "y".repeat(16 * 1_048_576);
    terminal.paste(long);
    terminal.press("\r");
    expect(screen.editor.getText() === long).toBe(true);
    expect(calls).toHaveLength(1);
    screen.editor.setText("");
    expect(text()).toContain("the text has 16.0 MiB");
  });
});

describe("the keys", () => {
  test("Esc aborts the run, and nothing if there is none", () => {
    const { terminal, calls, view } = stage({ isRunning: true });
    terminal.press(esc);
    expect(calls).toEqual([["abort"]]);
    view.isRunning = false;
    terminal.press(esc);
    expect(calls).toHaveLength(1);
  });

  test("Esc ends a compaction", () => {
    const { terminal, calls, view, text } = stage();
    view.isCompacting = true;
    terminal.press(esc);
    expect(calls).toEqual([["abort"]]);
    expect(text()).toContain("ending the compaction");
  });

  test("a second Ctrl-C leaves within two seconds only, and a row says so", async () => {
    vi.useFakeTimers();
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const { terminal, conversation, text } = stage();
    const left = vi.fn();
    void conversation.left.then(left);
    terminal.type("a text");
    terminal.press(controlC);
    expect(text()).toContain("Ctrl-C again leaves");
    vi.advanceTimersByTime(2_000);
    expect(text()).not.toContain("Ctrl-C again leaves");
    terminal.press(controlC);
    await vi.advanceTimersByTimeAsync(1_999);
    expect(left).not.toHaveBeenCalled();
    terminal.press(controlC);
    await vi.advanceTimersByTimeAsync(0);
    expect(left).toHaveBeenCalledOnce();
  });

  test("Ctrl-C clears the text, which the history keeps, and twice leaves; a key between them resets this", async () => {
    const { terminal, screen, text, conversation, calls } = stage({ isRunning: true });
    terminal.type("half a text");
    await expect.poll(() => terminal.text).toContain("half a text");
    terminal.press(controlC);
    expect(screen.editor.getText()).toBe("");
    await expect.poll(() => terminal.text).not.toContain("half a text");
    terminal.press("\u001b[A");
    expect(screen.editor.getText()).toBe("half a text");
    terminal.press(controlC);
    terminal.type("x");
    terminal.press(controlC);
    terminal.press("\u001b[D");
    terminal.press(controlC);
    expect(text()).toContain("Esc aborts the run; Ctrl-C again leaves");
    terminal.press(controlC);
    await conversation.left;
    expect(calls).toEqual([]);
  });

  test("Ctrl-D leaves if nothing is typed", async () => {
    const { terminal, conversation, screen } = stage();
    terminal.type("ab");
    terminal.press("\u001b[D");
    terminal.press(controlD);
    expect(screen.editor.getText()).toBe("a");
    terminal.press(controlC);
    terminal.press(controlD);
    await conversation.left;
  });
});

describe("commands", () => {
  test("of the screen do not reach the model; those of pi do, and text that begins with a space", async () => {
    const { send, calls, text, left } = stage();
    send("?");
    send("/help");
    await expect
      .poll(text)
      .toMatch(/Ctrl-D +leaves[\s\S]*\/compact \[INSTRUCTIONS\][\s\S]*Commands of pi in this session: \/review/);
    send("/quit");
    await expect.poll(() => left.mock.calls.length).toBe(1);
    expect(calls).toEqual([]);
    send("/review this");
    send(" /help me");
    send("/etc/hosts is odd");
    await expect
      .poll(() => calls.map(([method, prompt]) => [method, prompt]))
      .toEqual([
        ["prompt", "/review this"],
        ["prompt", " /help me"],
        ["prompt", "/etc/hosts is odd"],
      ]);
  });

  test("that are unknown are not sent, and stay in the editor", async () => {
    const { send, calls, text, screen } = stage();
    send("/modle fast");
    await expect.poll(() => screen.editor.getText()).toBe("/modle fast");
    expect(text()).toContain("/modle is not a command. Did you mean /model? To send it as text, begin with a space.");
    expect(calls).toEqual([]);
  });

  test.each([
    ["/help?", "/help"],
    ["/quit!", "/quit"],
    ["/ help", "/help"],
    ["/modèle", "/model"],
    ["/Help", "/help"],
    ["/reviews it", "/review"],
  ])("that are misspelt like %s are not sent, and the nearest is named", async (typed, near) => {
    const { send, calls, text, screen, left } = stage();
    send(typed);
    await expect.poll(() => screen.editor.getText()).toBe(typed);
    expect(text()).toContain(`Did you mean ${near}?`);
    expect([calls, left.mock.calls]).toEqual([[], []]);
  });

  test("are not run in a text that begins with a blank or a path", async () => {
    const { send, calls } = stage();
    const texts = [" !ls", "\u00a0!ls", "\u00a0/quit", "//compact", "/srv/x: why?"];
    for (const one of texts) send(one);
    await expect.poll(() => calls).toEqual(texts.map((one) => ["prompt", one, { ifRunning: "steer" }]));
  });

  test("of the shell run in the session: ! adds the output to the context, !! does not", async () => {
    const { send, calls, text } = stage();
    send("!make test");
    send("!!  env");
    await expect.poll(text).toMatch(/\[bash\] make test[\s\S]*some output[\s\S]*✔ bash[\s\S]*\] env[\s\S]*some output/);
    expect(calls).toEqual([
      ["bash", "make test", { excludeFromContext: false }],
      ["bash", "env", { excludeFromContext: true }],
    ]);
  });

  test("that fail return to the editor", async () => {
    const { send, screen, text } = stage({ refused: true });
    send("/compact a long instruction");
    await expect.poll(() => screen.editor.getText()).toBe("/compact a long instruction");
    expect(text()).toContain("✘ refused (unexpected)");
  });

  test("of pi's own terminal say what to run, and so does /model without a login", async () => {
    const { send, screen, text, calls } = stage();
    const say = async (typed: string, said: RegExp): Promise<void> => {
      send(typed);
      await expect.poll(() => screen.editor.getText()).toBe(typed);
      expect(text().replaceAll("\n", " ")).toMatch(said);
      screen.editor.setText("");
    };
    await say("/login", /\/login is a command of pi's terminal\. Run `pi-rpcd pi`/);
    await say("/model", /No model has credentials: prompts will fail\. Run `pi-rpcd pi`/);
    expect(calls).toEqual([]);
  });

  test("that pi refuses show its lines, and what to run if it names /login", async () => {
    const error = new WireError("refused_by_pi", 'pi refused "prompt": No API key.\n\nUse /login to log in.', {
      command: "prompt",
      error: "No API key.",
    });
    const { send, text } = stage({ refused: true, error });
    send("hello");
    await expect
      .poll(text)
      .toMatch(/No API key\.\n\nUse \/login to log in\.[\s\S]*\/login is a command of pi's terminal/);
  });

  test("that are refused say it in words of commands", async () => {
    const findings = [{ path: "/name", message: "must not begin with -" }];
    const error = new WireError("invalid_params", "The params of session/rename are not valid.", {
      method: "session/rename",
      findings,
    });
    const { send, text } = stage({ refused: true, error });
    send("/name -x");
    await expect.poll(text).toContain("✘ NAME must not begin with -. (invalid_params)");
  });

  test("say what leaving does to a temporary session", async () => {
    const { send, text, terminal, screen } = stage({ isTemporary: true });
    send("/help");
    await expect
      .poll(text)
      .toMatch(/Ctrl-D +leaves; the session is removed[\s\S]*\/quit +leaves; the session is removed/);
    send("/sessions");
    await expect.poll(() => screen.editor.getText()).toBe("/sessions");
    expect(text()).toContain("There is no other session.");
    expect(text()).not.toContain("pi-rpcd new");
    terminal.press(controlC);
    expect(text()).toContain("Ctrl-C again leaves, and the session is removed");
  });

  test("of the shell are an activity while they run", async () => {
    const { send, conversation } = stage();
    send("!make test");
    expect(conversation.activity).toMatchObject({ what: "make test runs" });
    await expect.poll(() => conversation.activity).toBeUndefined();
  });

  test("of the shell that the daemon refuses say why", async () => {
    const { send, text } = stage({ refused: true });
    send("!rm -r x");
    await expect.poll(text).toMatch(/\[bash\] rm -r x\n {2}refused \(unexpected\)\n {2}✘ bash/);
  });
});

describe("completions", () => {
  async function completing() {
    const set = stage();
    const { screen, commands } = set;
    await commands.load();
    screen.editor.setAutocompleteProvider(completion({ commands: commands.completions(), cwd: "/", env: {} }));
    /** Types a text, and waits until its completions are shown. */
    const offer = async (typed: string, shown: RegExp): Promise<void> => {
      set.terminal.type(typed);
      await expect.poll(set.text).toMatch(shown);
    };
    return { ...set, offer };
  }

  test.each([
    ["/c", /→ compact/, "/compact "],
    ["/pact", /→ compact/, "/compact "],
    ["/q", /→ quit/, "/quit "],
  ])("of %s by Enter are not run before a second Enter", async (typed, shown, completed) => {
    const { offer, terminal, screen, calls, left } = await completing();
    await offer(typed, shown);
    terminal.press("\r");
    expect(screen.editor.getText()).toBe(completed);
    await new Promise((resolve) => setImmediate(resolve));
    expect([calls, left.mock.calls]).toEqual([[], []]);
    terminal.press("\r");
    await expect.poll(() => left.mock.calls.length + calls.length).toBe(1);
  });

  test("do not delay a command that is complete", async () => {
    const { offer, terminal, left } = await completing();
    await offer("/quit", /→ quit/);
    terminal.press("\r");
    await expect.poll(() => left.mock.calls.length).toBe(1);
  });

  test("disappear with the text, and never change another text", async () => {
    const { offer, terminal, screen, text, calls } = await completing();
    await offer("/he", /→ help/);
    terminal.press("\u0015");
    expect(text()).not.toMatch(/→ help/);
    terminal.press("\r");
    await offer("/he", /→ help/);
    terminal.press("\u0015");
    terminal.type("/bogus");
    terminal.press("\r");
    await expect.poll(() => screen.editor.getText()).toBe("/bogus");
    terminal.press(controlC);
    await offer("/", /→ help/);
    terminal.type("/compact");
    terminal.press("\r");
    await expect.poll(() => calls).toEqual([["prompt", "//compact", { ifRunning: "steer" }]]);
    expect(text()).not.toContain("Ctrl-D");
  });
});

describe("questions", () => {
  test("are asked one at a time", async () => {
    const { terminal, send, questions, screen, text, calls } = stage();
    const options = ["b two", "2", "third"];
    const select = questions.ask(dialog({ method: "select", options }), never);
    const confirm = questions.ask(dialog({ method: "confirm", title: "Sure?", message: "No way back." }), never);
    const words = questions.ask(dialog({ method: "editor", title: "Words", prefill: "some" }), never);
    const dismissed = questions.ask(dialog({ method: "input", title: "More?" }), never);
    expect(text()).toMatch(/\? Which\? \(arrow keys, Enter chooses, Esc dismisses\)\n→ b two\n {2}2\n {2}third/);
    send("2");
    expect(text()).toMatch(
      /No way back\.[\s\S]*\? Sure\? \(y, n or arrow keys, Enter chooses, Esc dismisses\)\n {2}yes\n→ no/,
    );
    send("n");
    expect(text()).toMatch(/\? Words/);
    send(" more");
    expect(text()).toMatch(/\? More\?/);
    terminal.press(esc);
    expect(await Promise.all([select, confirm, words, dismissed])).toEqual([
      { value: "2" },
      { confirmed: false },
      { value: "some more" },
      { cancelled: true },
    ]);
    expect(screen.input).toBe(screen.editor);
    expect(text()).toMatch(
      /\? Which\?: 2\n[\s\S]*\? Sure\?: no\n[\s\S]*\? Words: some more\n[\s\S]*\? More\?: dismissed\n/,
    );
    expect(calls).toEqual([]);
  });

  test("wait while the user types, and keys that were meant for the editor answer none", async () => {
    vi.useFakeTimers();
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const { terminal, questions, screen, text, view, calls } = stage();
    view.isRunning = true;
    const answered = vi.fn();
    terminal.type("Is this ");
    void questions.ask(dialog({ method: "confirm", title: "Delete all?" }), never).then(answered);
    terminal.type("yes");
    expect(screen.editor.getText()).toBe("Is this yes");
    vi.advanceTimersByTime(60_000);
    expect(text()).toMatch(/\? Delete all\? · waits until your text is sent or cleared \(Ctrl-C\)/);
    terminal.press(esc);
    terminal.press("\r");
    terminal.type("y");
    terminal.press("\u007f");
    vi.advanceTimersByTime(999);
    terminal.press("\r");
    expect(text()).not.toContain("Esc dismisses");
    vi.advanceTimersByTime(1_000);
    expect(text()).toContain("Esc dismisses");
    expect(text()).not.toContain("waits until");
    expect(calls[0]).toEqual(["abort"]);
    await vi.advanceTimersByTimeAsync(0);
    expect(answered).not.toHaveBeenCalled();
    terminal.press("\r");
    await vi.advanceTimersByTimeAsync(0);
    expect(answered.mock.calls).toEqual([[{ confirmed: false }]]);
    void questions.ask(dialog({ method: "confirm", title: "Really?" }), never).then(answered);
    terminal.press("y");
    terminal.press("\r");
    await vi.advanceTimersByTimeAsync(0);
    expect(answered).toHaveBeenLastCalledWith({ confirmed: true });
  });

  test("disappear if they end elsewhere", async () => {
    const { questions, screen } = stage();
    const elsewhere = new AbortController();
    const asked = questions.ask(dialog({ method: "confirm" }), elsewhere.signal);
    expect(screen.input).not.toBe(screen.editor);
    elsewhere.abort();
    expect(await asked).toBeUndefined();
    expect(await questions.ask(dialog({ method: "confirm" }), elsewhere.signal)).toBeUndefined();
    expect(screen.input).toBe(screen.editor);
  });

  test("with hostile texts cannot control the terminal, and are not answered before a key is pressed", async () => {
    const { questions, text, terminal } = stage();
    const evil = "ls\u0003\u001b[2J\u001b]52;c;QQ==\u0007\u2028\u009b1m";
    let answered = false;
    const asked = questions.ask(dialog({ method: "editor", title: evil, message: evil, prefill: evil }), never);
    void asked.then(() => {
      answered = true;
    });
    expect(text()).toMatch(/\? ls\[2J\]52;c;QQ==[\s\S]*control characters were removed/);
    await new Promise((resolve) => setImmediate(resolve));
    expect(answered).toBe(false);
    terminal.press("\r");
    expect(await asked).toEqual({ value: "ls[2J]52;c;QQ==1m" });
    const select = questions.ask(dialog({ method: "select", title: evil, options: [evil, "b"] }), never);
    expect(text()).toContain("→ ls[2J]52;c;QQ==");
    terminal.press("\r");
    expect(await select).toEqual({ value: evil });
  });
});
