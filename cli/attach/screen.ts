import {
  type Component,
  Container,
  isKeyRelease,
  matchesKey,
  setCapabilities,
  type Terminal,
  TuiMainScreen,
  truncateToWidth,
  visibleWidth,
} from "@earendil-works/pi-tui";
import { duration } from "../format.ts";
import type { Style } from "../output.ts";
import { oneLine, printable } from "../text.ts";
import { type Block, type BlockStyle, LineBlock, SaidBlock, TextBlock, ThinkingBlock, ToolBlock } from "./blocks.ts";
import { type Canvas, type Said, type ToolCall, type ToolResult, userMark } from "./canvas.ts";
import { PromptEditor } from "./prompt-editor.ts";
import { ScreenTerminal } from "./terminal.ts";
import { safeRow, Theme } from "./theme.ts";
import { Transcript } from "./transcript.ts";

/** What the session does now. */
export interface Activity {
  readonly what: string;
  /** When it began, by `Date.now()`. */
  readonly since: number;
  /** When the session last reported something. */
  readonly heardAt?: number;
  /** What the user can do about it. */
  readonly hint?: string;
}

const handledKeys = ["ctrl+c", "ctrl+d", "escape", "alt+enter"] as const;

/** Handles keys before the editor gets them; returns whether the key was handled. `other` is any other key. */
export type KeyHandler = (key: (typeof handledKeys)[number] | "other") => boolean;

const maxTools = 1_000;
const streamFrameMs = 50;
/** A longer silence of a session that does something is shown. */
const silenceMs = 3_000;

/**
 * The terminal of a user: the conversation, the session's activity, an editor or a question, and a line about the
 * session. What the user types is in the editor from {@link open} on.
 */
export class Screen implements Canvas {
  readonly theme: Theme;
  readonly tui: TuiMainScreen;
  readonly editor: PromptEditor;
  onKey: KeyHandler = () => false;
  /** Called for each key before anything handles it. */
  onTyped: () => void = () => {};
  /** Whether Enter sends. Before that, it begins a new line in the editor. */
  isReady = false;
  readonly #terminal: Terminal;
  readonly #style: BlockStyle;
  readonly #transcript: Transcript;
  readonly #input = new Container();
  readonly #inputs: Component[];
  readonly #tools = new Map<string, ToolBlock>();
  readonly #onExit = (): void => {
    const unsent = this.unsent;
    this.#stop();
    if (unsent !== "") this.#terminal.write(`${printable(unsent).replaceAll("\n", "\r\n")}\r\n`);
  };
  /** The blocks of the text that streams. */
  #streaming: (TextBlock | ThinkingBlock)[] = [];
  #frame: NodeJS.Timeout | undefined;
  #activity: Activity | undefined;
  #footer: readonly string[] = [];
  /** Whether Enter was pressed before it sends. */
  #isEarly = false;
  /** What the user must know about the keys now, by its kind. */
  readonly #notices = new Map<string, string>();
  #timer: NodeJS.Timeout | undefined;
  #isOpen = false;

  constructor(env: NodeJS.ProcessEnv, terminal: Terminal = new ScreenTerminal(env)) {
    // Links and images of a model are shown as text: their targets stay visible.
    setCapabilities({ images: null, hyperlinks: false, trueColor: false });
    this.theme = new Theme(env);
    this.#terminal = terminal;
    this.#style = { theme: this.theme, isThinkingShown: false, isOutputShown: false };
    this.tui = new TuiMainScreen(terminal);
    this.#transcript = new Transcript(this.tui, terminal);
    this.editor = new PromptEditor(this.tui, this.theme);
    this.#inputs = [this.editor];
    for (const part of [
      this.#transcript,
      row((width) => this.#activityRow(width)),
      { render: (width: number) => this.#noticeRows(width), invalidate: () => {} },
      this.#input,
      row((width) => this.#footerRow(width)),
    ]) {
      this.tui.addChild(part);
    }
    this.tui.addInputListener((data) => {
      if (!this.#isHandled(data)) return undefined;
      // The library draws only after input that it handles.
      this.tui.requestRender();
      return { consume: true };
    });
  }

  open(): void {
    this.#isOpen = true;
    this.#showInput();
    this.tui.start();
    process.once("exit", this.#onExit);
  }

  /** Restores the terminal. What was shown of the conversation stays. */
  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.activity = undefined;
    this.footer = [];
    this.#notices.clear();
    this.#input.clear();
    // The library writes a space at the cursor when it stops.
    this.#input.addChild(row(() => ""));
    this.tui.renderNow();
    // The terminal's replies to queries of the library must not reach the shell.
    if (this.#terminal instanceof ScreenTerminal) await this.#terminal.drainInput(200, 20);
    this.#stop();
  }

  /** Restores the terminal for the shell and stops this program, until the user runs `fg`. */
  suspend(): void {
    this.tui.stop();
    const resume = (): void => {
      clearTimeout(notStopped);
      process.removeListener("SIGCONT", resume);
      if (!this.#isOpen) return;
      this.tui.start();
      this.tui.requestRender(true);
    };
    process.once("SIGCONT", resume);
    // The system ignores the signal if no shell could continue the program. The timer does not run while it is stopped.
    const notStopped = setTimeout(resume, 500);
    process.kill(0, "SIGTSTP");
  }

  /** The text in the editor that was not sent; empty if there is none. */
  get unsent(): string {
    const text = this.editor.getExpandedText();
    return text.trim() === "" ? "" : `Not sent:\n${text}`;
  }

  /** The component that gets the keys: the editor, or a question. */
  get input(): Component {
    return this.#inputs.at(-1) ?? this.editor;
  }

  /** Shows a question instead of the editor, until {@link endInput}. */
  beginInput(question: Component): void {
    this.#inputs.push(question);
    this.#showInput();
  }

  endInput(question: Component): void {
    const index = this.#inputs.indexOf(question);
    if (index > 0) this.#inputs.splice(index, 1);
    this.#showInput();
  }

  set activity(activity: Activity | undefined) {
    this.#activity = activity;
    if (activity !== undefined && this.#timer === undefined) {
      this.#timer = setInterval(() => this.tui.requestRender(), 1_000);
    } else if (activity === undefined) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    this.tui.requestRender();
  }

  /** The facts of the session. If they do not fit, the longest is shortened. */
  set footer(facts: readonly string[]) {
    this.#footer = facts.map(oneLine);
    this.tui.requestRender();
  }

  /** Shows a row above the editor, or removes it. */
  notice(kind: "question" | "keys", text: string | undefined): void {
    if (text === undefined) this.#notices.delete(kind);
    else this.#notices.set(kind, oneLine(text));
    this.tui.requestRender();
  }

  stream(text: string, kind: "text" | "thinking", restart = false): void {
    if (restart) {
      this.#transcript.remove(this.#streaming);
      this.endStream();
    }
    const Wanted = kind === "text" ? TextBlock : ThinkingBlock;
    if (!(this.#streaming.at(-1) instanceof Wanted)) this.endStream();
    for (let rest: string | undefined = text; rest !== undefined; ) {
      const last: TextBlock | ThinkingBlock = this.#streaming.at(-1) ?? this.#continued(new Wanted(this.#style));
      rest = last.append(rest);
      if (rest !== undefined) this.#continued(new Wanted(this.#style));
    }
    this.#changedOften();
  }

  endStream(): void {
    this.#streaming = [];
  }

  // These do not end the stream: the text that streams continues above them, and its Markdown stays whole.

  line(text: string, style?: Style): void {
    this.#add(new LineBlock(text, style, this.#style));
  }

  said(message: Said): void {
    // Also prompts of other clients: most are this user's, from another terminal or an earlier attach.
    if (message.mark.startsWith(userMark)) this.editor.addToHistory(printable(message.text));
    this.#add(new SaidBlock(message, this.#style));
  }

  toolStarted(call: ToolCall): void {
    if (this.#tools.size >= maxTools) this.#tools.clear();
    const block = new ToolBlock(call, this.#style);
    this.#tools.set(call.id, block);
    this.#add(block);
  }

  toolOutput(id: string, text: string, append: boolean): void {
    this.#tools.get(id)?.output(text, append);
    this.#changedOften();
  }

  toolEnded(result: ToolResult): void {
    const block = this.#tools.get(result.id);
    if (block === undefined || this.#transcript.isAbove(block)) {
      this.toolStarted(block?.call ?? { id: result.id, name: result.name, args: undefined });
    }
    this.#tools.get(result.id)?.ended(result);
    this.#tools.delete(result.id);
    this.#changed();
  }

  #continued<T extends TextBlock | ThinkingBlock>(block: T): T {
    this.#streaming.push(block);
    this.#transcript.add(block);
    return block;
  }

  #add(block: Block): void {
    this.#transcript.add(block);
    this.#changed();
  }

  #changed(): void {
    this.#transcript.prune();
    this.tui.requestRender();
  }

  /** Draws what streams less often than keys, because it may continue for minutes. */
  #changedOften(): void {
    this.#frame ??= setTimeout(() => {
      this.#frame = undefined;
      this.#changed();
    }, streamFrameMs);
  }

  #isHandled(data: string): boolean {
    if (isKeyRelease(data)) return false;
    this.onTyped();
    if (matchesKey(data, "ctrl+z")) this.suspend();
    else if (matchesKey(data, "ctrl+t")) this.#unfold("isThinkingShown");
    else if (matchesKey(data, "ctrl+o")) this.#unfold("isOutputShown");
    else if (!this.isReady && matchesKey(data, "enter")) {
      this.editor.insertTextAtCursor("\n");
      this.#isEarly = true;
    } else return this.onKey(handledKeys.find((name) => matchesKey(data, name)) ?? "other");
    return true;
  }

  #showInput(): void {
    this.#input.clear();
    this.#input.addChild(this.input);
    this.tui.setFocus(this.input);
    this.tui.requestRender();
  }

  #unfold(what: "isThinkingShown" | "isOutputShown"): void {
    this.#style[what] = !this.#style[what];
    this.#transcript.invalidate();
    this.tui.requestRender();
  }

  #footerRow(width: number): string | undefined {
    if (this.#footer.length === 0) return undefined;
    const widths = this.#footer.map((fact) => visibleWidth(fact));
    const excess = widths.reduce((sum, one) => sum + one + 3, -3) - width;
    const longest = widths.indexOf(Math.max(...widths));
    const facts = this.#footer.map((fact, index) =>
      excess > 0 && index === longest ? truncateToWidth(fact, Math.max(8, visibleWidth(fact) - excess), "…") : fact,
    );
    return safeRow(this.theme.paint("dim", facts.join(" · ")), width);
  }

  #noticeRows(width: number): string[] {
    return [...this.#notices.values()].map((text) => safeRow(this.theme.paint("magenta", text), width));
  }

  #activityRow(width: number): string | undefined {
    if (this.#activity === undefined) return undefined;
    const { what, since, heardAt = since } = this.#activity;
    const hint = this.#isEarly && !this.isReady ? "Enter sends when the session is ready" : this.#activity.hint;
    const now = Date.now();
    const silent = heardAt > since && now - heardAt > silenceMs ? `, silent for ${duration(now - heardAt)}` : "";
    const row = `· ${what} ${duration(now - since)}${silent}${hint === undefined ? "" : ` · ${hint}`}`;
    return safeRow(this.theme.paint("yellow", oneLine(row)), width);
  }

  #stop(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    clearInterval(this.#timer);
    clearTimeout(this.#frame);
    process.removeListener("exit", this.#onExit);
    this.tui.stop();
  }
}

/** A component of at most one row. */
function row(draw: (width: number) => string | undefined): Component {
  return {
    render: (width) => {
      const drawn = draw(width);
      return drawn === undefined ? [] : [drawn];
    },
    invalidate: () => {},
  };
}
