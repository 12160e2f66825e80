import { lastText } from "./messages.ts";
import { answer, delay, type Part } from "./reply.ts";
import type { Responder } from "./script.ts";

const maxEchoCharacters = 400;

/**
 * Answers with the text of the last message, word by word: `Echo: hello`, or `The tool said: …` after a tool result.
 * The same request always gets the same text. At most 400 characters are repeated. Between words it waits `wordDelayMs`
 * (default 0).
 */
export function echo(options: { readonly wordDelayMs?: number } = {}): Responder {
  const { wordDelayMs = 0 } = options;
  return (request) => {
    const { text, isToolResult } = lastText(request.messages);
    const said = `${isToolResult ? "The tool said" : "Echo"}: ${shortened(text)}`;
    const words = said.split(/(?<=\s)(?=\S)/);
    const pause: readonly Part[] = wordDelayMs > 0 ? [delay(wordDelayMs)] : [];
    return answer(...words.flatMap((word, index) => [...(index === 0 ? [] : pause), word]));
  };
}

function shortened(text: string): string {
  if (text.trim() === "") return "(nothing)";
  return text.length > maxEchoCharacters ? `${text.slice(0, maxEchoCharacters).toWellFormed()}…` : text;
}
