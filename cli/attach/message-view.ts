import { type PiEvent, type PiMessage, textOf } from "../../client/pi-events.ts";
import { mebibytes } from "../format.ts";
import { oneLine } from "../text.ts";
import { type Canvas, userMark } from "./canvas.ts";

interface Block {
  readonly type?: unknown;
  readonly text?: unknown;
  readonly thinking?: unknown;
  readonly mimeType?: unknown;
  readonly data?: unknown;
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

  /** Completes a message. `who` is the client of a user's message, if it is another one. */
  ended(message: PiMessage, who?: string): void {
    const images = imagesOf(message);
    switch (message.role) {
      case "assistant":
        this.#rest(message);
        for (const image of images) this.#canvas.line(image, "dim");
        break;
      case "user":
        this.#canvas.said({
          mark: who === undefined ? userMark : `${userMark} ${oneLine(who)}:`,
          text: textOf(message),
          images,
        });
        break;
      case "custom":
        this.#canvas.said({
          mark: `» [${oneLine(String(message["customType"] ?? ""))}]`,
          text: textOf(message),
          images,
        });
        break;
      case "bashExecution":
        this.#canvas.line(`$ ${oneLine(String(message["command"] ?? ""))}`, "cyan");
        break;
      case "branchSummary":
      case "compactionSummary":
        this.#canvas.line(oneLine(`summary: ${String(message["summary"] ?? "")}`).slice(0, 400), "dim");
        break;
      default:
      // Tool results are shown when their tools end.
    }
    this.started();
  }

  #rest(message: PiMessage): void {
    for (const [index, block] of blocksOf(message).entries()) {
      const isThinking = block?.type === "thinking";
      const text = isThinking ? block.thinking : block?.type === "text" ? block.text : undefined;
      if (typeof text !== "string") continue;
      const shown = this.#streamed.get(index) ?? "";
      if (shown === text) continue;
      // If streamed pieces were lost, the complete text replaces them.
      if (text.startsWith(shown)) this.#stream(index, text.slice(shown.length), isThinking);
      else this.#stream(index, text, isThinking, this.#block === index);
    }
    this.#canvas.endStream();
    const { stopReason, errorMessage } = message;
    if (typeof errorMessage === "string" && errorMessage !== "")
      this.#canvas.line(`✘ ${errorMessage.trim().slice(0, 4_000)}`, "red");
    else if (stopReason === "length") this.#canvas.line("✘ the answer was cut off because it was too long", "red");
  }

  #stream(index: number, delta: string, isThinking: boolean, restart = false): void {
    if (isThinking && !this.#thinking) return;
    if (this.#block !== index) {
      this.#canvas.endStream();
      this.#block = index;
    }
    this.#streamed.set(index, restart ? delta : (this.#streamed.get(index) ?? "") + delta);
    this.#canvas.stream(delta, isThinking ? "thinking" : "text", restart);
  }
}

/** Describes the images of a message or of a tool's result. */
export function imagesOf(message: { readonly content?: unknown }): readonly string[] {
  return blocksOf(message).flatMap((block) => {
    if (block?.type !== "image") return [];
    const bytes = typeof block.data === "string" ? `, ${mebibytes((block.data.length * 3) / 4)}` : "";
    return [`[image: ${oneLine(String(block.mimeType ?? "unknown type"))}${bytes}]`];
  });
}

function blocksOf({ content }: { readonly content?: unknown }): readonly (Block | null)[] {
  return Array.isArray(content) ? (content as readonly (Block | null)[]) : [];
}
