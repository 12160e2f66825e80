import { Markdown } from "@earendil-works/pi-tui";
import { describe, expect, onTestFinished, test } from "vitest";
import { Screen } from "../../../../cli/attach/screen.ts";
import { hasUnicode, toAscii } from "../../../../cli/attach/terminal.ts";
import { MemoryTerminal } from "./memory-terminal.ts";

function stage({ columns = 80, rows = 24, env = {} as NodeJS.ProcessEnv } = {}) {
  const terminal = new MemoryTerminal(columns, rows);
  const screen = new Screen({ TERM: "xterm-256color", ...env }, terminal);
  screen.open();
  onTestFinished(() => screen.close());
  const text = (): string => {
    screen.tui.renderNow();
    return terminal.text;
  };
  return { terminal, screen, text };
}

describe("hostile text", () => {
  const evil =
    "a\u001b[2J\u001b]0;title\u0007\u001b]52;c;ZXZpbA==\u0007\u001bP+q\u001b\\\u009b31m\u0007\rb\u202ec\u001b_Gi=1;A\u001b\\";
  const seen = /a\[2J\]0;title\]52;c;ZXZpbA==P\+q\\31mb?c?/;

  // The terminal of these tests throws at any other control character or sequence.
  test.each([
    ["text", evil],
    ["a heading", `# ${evil}`],
    ["a code fence and its language", `\`\`\`${evil}\n${evil}\n\`\`\``],
    ["a fence of a language", `\`\`\`ts\n// ${evil}\nconst a = "${evil}";\n\`\`\``],
    ["a link", `[${evil}](https://example.org/${evil})`],
    ["a table", `| a | b |\n|---|---|\n| ${evil} | ${evil} |`],
    ["a list and a quotation", `- ${evil}\n  1. ${evil}\n\n> ${evil}`],
    ["HTML and entities", `<b>${evil}</b> &#27;]0;title&#7; &#x9b;31m`],
    ["mathematics", `$$ ${evil} $$ and \\(${evil}\\)`],
  ])("in %s of the model cannot control the terminal", (_, markdown) => {
    const { screen, text } = stage({ columns: 200 });
    screen.stream(markdown, "text");
    screen.stream(markdown, "thinking");
    expect(text()).toMatch(/title/);
    screen.tui.requestRender(true);
    text();
  });

  test("of a tool, an extension, a client or a session cannot control the terminal", () => {
    const { screen, terminal, text } = stage({ columns: 300, rows: 60 });
    screen.line(evil, "red");
    screen.said({ mark: evil, text: evil, images: [evil] });
    screen.toolStarted({ id: "1", name: evil, args: { command: evil } });
    screen.toolOutput("1", evil, true);
    text();
    screen.toolEnded({ id: "1", name: evil, text: evil, images: [evil], isError: true, tookMs: 1 });
    screen.toolEnded({
      id: "2",
      name: evil,
      text: "",
      diff: `+${evil}\n-${evil}`,
      images: [],
      isError: false,
      tookMs: 1,
    });
    screen.activity = { what: evil, since: 0 };
    screen.footer = [evil];
    screen.editor.setText(evil);
    terminal.paste(`${evil}\u009b31m`);
    expect(text()).toMatch(seen);
    terminal.press("\u000f");
    terminal.press("\u0014");
    text();
  });

  test("that is nested too deeply or very long is shown or replaced, and ends nothing", () => {
    const { screen, text } = stage();
    screen.stream(`${">".repeat(20_000)} deep`, "text");
    screen.endStream();
    screen.stream(`${"[".repeat(5_000)}\n`, "text");
    screen.endStream();
    screen.stream("afterwards", "text");
    expect(text()).toContain("afterwards");
  });
});

describe("the conversation", () => {
  test("is shown once in screen and scrollback, also after changes of the size", () => {
    const { screen, terminal, text } = stage({ rows: 10 });
    const lines = Array.from({ length: 60 }, (_, index) => `line ${index} of the conversation`);
    for (const line of lines) {
      screen.line(line);
      screen.tui.renderNow();
    }
    screen.stream("The answer streams", "text");
    text();
    for (const [columns, rows] of [
      [50, 10],
      [200, 30],
      [80, 10],
      [50, 50],
    ] as const) {
      terminal.resize(columns, rows);
      screen.stream(" on", "text");
      const shown = text();
      for (const line of lines) expect(shown.split(line)).toHaveLength(2);
      expect(shown.match(/The answer streams/g)).toHaveLength(1);
    }
  });

  test("that has left the window is not written again when it changes: the scrollback is never cleared", () => {
    const { screen, terminal, text } = stage({ rows: 20 });
    const lines = Array.from({ length: 12 }, (_, index) => `result ${index}`).join("\n");
    const calls = ["a", "b", "c", "d", "e", "f", "g", "h"];
    for (const id of calls) screen.toolStarted({ id, name: "bash", args: { command: `run ${id}` } });
    text();
    for (const id of calls) {
      screen.toolOutput(id, lines, false);
      text();
    }
    for (const id of calls) {
      screen.toolEnded({ id, name: "bash", text: lines, images: [], isError: false, tookMs: 1_000 });
      text();
    }
    for (let index = 0; index < 40; index += 1) {
      screen.stream(`word ${index}\n\n`, "text");
      text();
    }
    terminal.press("\u000f");
    terminal.press("\u0014");
    screen.stream("end", "text", true);
    const shown = text();
    expect(terminal.written).not.toContain("\u001b[3J");
    expect(screen.tui.fullRedraws).toBe(1);
    expect(shown.match(/✔ bash/g)).toHaveLength(calls.length);
    expect(shown.match(/word 0\n/g)).toHaveLength(1);
    expect(shown).toMatch(/\nend\n/);
    terminal.resize(81);
    expect(text().match(/✔ bash/g)?.length).toBeGreaterThanOrEqual(calls.length);
  });

  test("of thousands of rows stays in the scrollback, and is not drawn again for each change", () => {
    const { screen, terminal, text } = stage();
    const lines = Array.from({ length: 9_000 }, (_, index) => `row ${index}.`);
    for (const [index, line] of lines.entries()) {
      screen.line(line);
      if (index % 50 === 0) screen.tui.renderNow();
    }
    const shown = text();
    expect(shown.match(/row \d+\./g)).toEqual(lines);
    expect(screen.tui.fullRedraws).toBe(1);
    terminal.resize(100);
    expect(
      text()
        .match(/row \d+\./g)
        ?.at(-1),
    ).toBe("row 8999.");
    expect(terminal.text.match(/row \d+\./g)?.length).toBeLessThan(7_000);
  });

  test.each([50, 80, 200])("fits %d columns, with wide characters, emoji, long words and tabs", (columns) => {
    const { screen, text } = stage({ columns });
    const wide = `${"語".repeat(120)} e\u0301e\u0301 👍🏽 👨‍👩‍👧‍👦 🇩🇪 ${"x".repeat(230)}\ta\tb`;
    screen.stream(`${wide}\n\n| a | b |\n|---|---|\n| ${wide} | ${wide} |\n\n\`\`\`\n${wide}\n\`\`\``, "text");
    screen.said({ mark: "❯", text: wide, images: [] });
    screen.toolEnded({ id: "1", name: "read", text: wide, images: [], isError: false, tookMs: 1 });
    screen.activity = { what: wide, since: Date.now() };
    screen.footer = [wide];
    screen.editor.setText(wide);
    expect(text()).toContain("👨‍👩‍👧‍👦");
  });

  test("keeps thinking and long outputs folded until the reader asks for them", () => {
    const { screen, terminal, text } = stage({ rows: 100 });
    screen.stream("First I wonder.\nThen I know.", "thinking");
    const output = Array.from({ length: 30 }, (_, index) => `output ${index}.`).join("\n");
    screen.toolStarted({ id: "1", name: "bash", args: { command: "make" } });
    screen.toolEnded({ id: "1", name: "bash", text: output, images: [], isError: false, tookMs: 1_234 });
    expect(text()).toMatch(/thinking: First I wonder\. \| Then I know\. \(Ctrl-T shows it\)/);
    expect(text()).toMatch(
      /\[bash\] make[\s\S]*output 9\.\n {2}… 20 more lines \(Ctrl-O shows them\)\n {2}✔ bash \(1\.2 s\)/,
    );
    terminal.press("\u0014");
    terminal.press("\u000f");
    expect(text()).toMatch(/^First I wonder\.\nThen I know\.$/m);
    expect(text()).toContain("output 29.");
  });

  test("writes as much for a streamed piece after thousands of records as before them", () => {
    const { screen, terminal } = stage();
    const writtenFor = (pieces: number): number => {
      screen.endStream();
      const before = terminal.written.length;
      for (let piece = 0; piece < pieces; piece += 1) {
        screen.stream(piece % 50 === 49 ? "the end.\n\n" : "some **words** ", "text");
        screen.tui.renderNow();
      }
      return terminal.written.length - before;
    };
    const first = writtenFor(500);
    for (let record = 0; record < 5_000; record += 1) screen.line(`record ${record}`);
    screen.tui.renderNow();
    expect(writtenFor(500)).toBeLessThan(1.5 * first);
  });

  test("has the prompts of users in the history of the editor, without control characters", () => {
    const { screen, terminal } = stage();
    screen.said({ mark: "❯ vim:", text: "an earlier prompt\u001b[31m", images: [] });
    screen.said({ mark: "» [note]", text: "a push", images: [] });
    terminal.press("\u001b[A");
    expect(screen.editor.getText()).toBe("an earlier prompt[31m");
  });

  test("keeps a text that streams whole if lines of others arrive meanwhile", () => {
    const { screen, text } = stage();
    screen.stream("Before.\n\n```ts\nconst a = 1;\n", "text");
    screen.line(" queued by vim: later");
    screen.said({ mark: "»", text: "a push", images: [] });
    screen.toolStarted({ id: "1", name: "bash", args: { command: "make" } });
    screen.stream("const b = 2;\n```\n\nAfter.", "text");
    expect(text()).toMatch(
      /```ts\n {2}const a = 1;\n {2}const b = 2;\n```\n\nAfter\.\n[\s\S]*queued by vim[\s\S]*a push[\s\S]*make/,
    );
    screen.endStream();
    screen.stream("The next.", "text");
    expect(text()).toMatch(/make\n\nThe next\./);
  });

  test("keeps all characters of its last row when the screen is closed", async () => {
    const { screen, terminal, text } = stage();
    screen.line("the last row");
    screen.footer = ["a fact"];
    text();
    await screen.close();
    expect(terminal.text).toBe("the last row");
  });

  test("is followed by the text that was not sent if the process ends", () => {
    const terminal = new MemoryTerminal();
    const before = process.listeners("exit");
    const screen = new Screen({}, terminal);
    screen.open();
    terminal.type("half a thought");
    screen.tui.renderNow();
    const [onExit] = process.listeners("exit").filter((listener) => !before.includes(listener));
    onExit?.(1);
    expect(terminal.text).toMatch(/\nNot sent:\nhalf a thought$/);
    expect(process.listeners("exit")).toEqual(before);
  });

  test("has the session's id and directory below it, whatever the length of its name", () => {
    const { screen, text } = stage();
    screen.footer = ["n".repeat(80), "scripted/model-1", "01234567", "~/project"];
    expect(text()).toMatch(/n… · scripted\/model-1 · 01234567 · ~\/project$/);
  });

  test("has a hint above it if Enter is pressed before the session is ready", () => {
    const { screen, terminal, text } = stage();
    screen.activity = { what: "starting pi", since: Date.now() };
    expect(text()).not.toContain("Enter");
    terminal.press("\r");
    expect(text()).toContain("· starting pi 0 s · Enter sends when the session is ready");
    screen.isReady = true;
    expect(text()).not.toContain("Enter");
  });

  test("shows the output of tools without its colours", () => {
    const { screen, text } = stage();
    screen.toolStarted({ id: "1", name: "bash", args: { command: "npm test" } });
    screen.toolOutput("1", "\u001b[32m✓\u001b[39m first", true);
    expect(text()).toMatch(/^ {2}✓ first$/m);
    screen.toolEnded({
      ...{ id: "1", name: "bash", text: "\u001b[1;32m✓\u001b[0m all", images: [], isError: false, tookMs: 1 },
    });
    expect(text()).toMatch(/^ {2}✓ all$/m);
  });

  test("shows a long text while it streams as it shows the whole text at once", () => {
    const { screen, text } = stage({ env: { NO_COLOR: "1" } });
    const part = (index: number): string =>
      [
        ...[`## Part ${index}`, "A paragraph.", "1. one\n\n   more of one\n\n2. two\n   - nested"],
        ...["| a | b |\n|---|---|\n| c | d |", "> quoted\n\n> again", "- x\n\n- y"],
        "```ts\nconst a = 1;\n\nconst b = 2;\n```",
      ].join("\n\n");
    const whole = Array.from({ length: 60 }, (_, index) => part(index)).join("\n\n");
    for (let from = 0; from < whole.length; from += 50) screen.stream(whole.slice(from, from + 50), "text");
    const rows = new Markdown(whole, 0, 0, screen.theme.markdown).render(80).map((row) => row.trimEnd());
    expect(text().split("\n").slice(0, rows.length)).toEqual(rows);
  });

  test("shows a long text completely while it streams, whatever its code fences", () => {
    const { screen, text } = stage({ rows: 4_000 });
    const code = Array.from({ length: 3_000 }, (_, index) => `const value${index} = ${index};`).join("\n");
    const whole = `Before.\n\n\`\`\`ts\n${code}\n\`\`\`\n\nBetween.\n\n${"A paragraph.\n\n".repeat(2_000)}After.`;
    for (let from = 0; from < whole.length; from += 7_000) screen.stream(whole.slice(from, from + 7_000), "text");
    const shown = text();
    expect(shown.match(/const value\d+/g)).toHaveLength(3_000);
    expect(shown.match(/A paragraph\./g)).toHaveLength(2_000);
    expect(shown).toMatch(/Before\.[\s\S]*Between\.[\s\S]*After\./);
  });
});

describe("the styles", () => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the test looks for them
  const colours = /\u001b\[(?:1|2|3|4|9|3\d|9\d)m/;

  test("colour code and changes, and NO_COLOR turns them off", () => {
    for (const [env, isColoured] of [
      [{}, true],
      [{ NO_COLOR: "1" }, false],
    ] as const) {
      const { screen, terminal, text } = stage({ env });
      screen.stream('**bold** `code`\n\n```ts\nconst a = "b"; // c\n```', "text");
      screen.toolEnded({
        id: "1",
        name: "edit",
        text: "",
        diff: "-1 old\n+1 new",
        images: [],
        isError: false,
        tookMs: 1,
      });
      expect(text()).toMatch(/bold code[\s\S]*const a = "b"; \/\/ c[\s\S]*-1 old\n {2}\+1 new/);
      expect(colours.test(terminal.written)).toBe(isColoured);
    }
  });

  test("need no Unicode", () => {
    expect(toAscii("── a… ✔ ❯ 語 👍 \u001b[1mb")).toBe("-- a. + > ?? ?? \u001b[1mb");
    expect([{}, { LANG: "de_DE.UTF-8" }, { LC_ALL: "en_US.utf8", LANG: "C" }].map(hasUnicode)).toEqual([
      true,
      true,
      true,
    ]);
    expect([{ LANG: "C" }, { LC_ALL: "POSIX", LANG: "de_DE.UTF-8" }].map(hasUnicode)).toEqual([false, false]);
  });
});
