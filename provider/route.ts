import type { Dialect, Target } from "./dialect.ts";
import { anthropic } from "./dialects/anthropic.ts";
import { google } from "./dialects/google.ts";
import { openai } from "./dialects/openai.ts";
import { openaiResponses } from "./dialects/openai-responses.ts";

export interface Route {
  readonly dialect: Dialect;
  readonly target: Target;
}

/** The paths that the 404 for any other path names. */
export const routesHelp =
  "POST …/chat/completions, POST …/responses, POST …/v1/messages, POST …/models/{id}:streamGenerateContent?alt=sse";

/** The API of a request, by the end of its path: every base path works. */
export function routeOf(method: string | undefined, url: string): Route | undefined {
  if (method !== "POST") return undefined;
  const [path = "", query = ""] = url.split("?", 2);
  if (path.endsWith("/chat/completions")) return { dialect: openai, target: {} };
  if (path.endsWith("/responses")) return { dialect: openaiResponses, target: {} };
  if (path.endsWith("/v1/messages")) return { dialect: anthropic, target: {} };
  const match = /\/models\/([^/]+):(generateContent|streamGenerateContent)$/.exec(path);
  if (match?.[1] === undefined) return undefined;
  const stream = match[2] === "streamGenerateContent" && new URLSearchParams(query).get("alt") === "sse";
  return { dialect: google, target: { model: decoded(match[1]), stream } };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
