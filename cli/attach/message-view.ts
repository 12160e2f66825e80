import { type PiEvent, type PiMessage, textOf } from "../../client/pi-events.ts";
import { oneLine, printable } from "../text.ts";
import type { Canvas } from "./canvas.ts";

interface Block {
  readonly type?: unknown;
  readonly text?: unknown;
  readonly thinking?: unknown;
}

interface MessageViewOptions {
  readonly canvas: Canvas;
  readonly thinking: boolean;
}

/** Shows messages: the assistant's text as it streams, and the rest of a message when it is complete. */
export class MessageView {
  readonly #canvas: Canvas;
  readonly #thinking: boolean;
  /** The shown text of each content block of the streaming message. */
  readonly #streamed = new Map<number, string>();
  #block: number | undefined;

  constructor({ canvas, thinking }: MessageViewOptions) {
    this.#canvas = canvas;
    this.#thinking = thinking;
  }

  started(): void {
    this.#streamed.clear();
    this.#block = undefined;
  }

  /** Shows a piece of text or of thinking. Other updates show nothing. */
  updated(event: PiEvent): void {
    const update = event["assistantMessageEvent"] as Readonly<Record<string, unknown>> | undefined;
    const { type, contentIndex, delta } = update ?? {};
    if (typeof delta !== "string" || typeof contentIndex !== "number") return;
    if (type === "text_delta") this.#stream(contentIndex, delta, false);
    else if (type === "thinking_delta") this.#stream(contentIndex, delta, true);
  }

  /** Completes a message. */
  ended(message: PiMessage): void {
    switch (message.role) {
      case "assistant":
        this.#rest(message);
        break;
      case "user":
        this.#said("❯", textOf(message));
        break;
      case "custom":
        this.#said(`» [${oneLine(String(message["customType"] ?? ""))}]`, textOf(message));
        break;
      case "bashExecution":
        this.#canvas.line(`$ ${oneLine(String(message["command"] ?? ""))}`, "cyan");
        break;
      case "branchSummary":
      case "compactionSummary":
        this.#canvas.line(oneLine(`summary: ${String(message["summary"] ?? "")}`).slice(0, 400), "dim");
        break;
      default:
      // Tool results have separate lines.
    }
    this.started();
  }

  #said(mark: string, text: string): void {
    const [first = "", ...more] = printable(text).trimEnd().split("\n");
    this.#canvas.line([`${mark} ${first}`, ...more.map((line) => `  ${line}`)].join("\n"), "cyan");
  }

  #rest(message: PiMessage): void {
    const blocks = Array.isArray(message.content) ? (message.content as readonly (Block | null)[]) : [];
    for (const [index, block] of blocks.entries()) {
      const isThinking = block?.type === "thinking";
      const text = isThinking ? block.thinking : block?.type === "text" ? block.text : undefined;
      if (typeof text !== "string") continue;
      const shown = this.#streamed.get(index) ?? "";
      if (shown === text) continue;
      // If streamed pieces were lost, the complete text is shown again.
      if (!text.startsWith(shown)) this.#block = undefined;
      this.#stream(index, text.startsWith(shown) ? text.slice(shown.length) : text, isThinking);
    }
    this.#canvas.endLine();
    const { stopReason, errorMessage } = message;
    if (typeof errorMessage === "string" && errorMessage !== "") this.#canvas.line(`✘ ${oneLine(errorMessage)}`, "red");
    else if (stopReason === "length") this.#canvas.line("✘ the answer was cut off because it was too long", "red");
  }

  #stream(index: number, delta: string, isThinking: boolean): void {
    if (isThinking && !this.#thinking) return;
    if (this.#block !== index) {
      this.#canvas.endLine();
      this.#block = index;
    }
    this.#streamed.set(index, (this.#streamed.get(index) ?? "") + delta);
    this.#canvas.stream(printable(delta), isThinking ? "dim" : undefined);
  }
}
