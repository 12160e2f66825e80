import type { ApiName } from "../../../provider/dialect.ts";
import type { ScriptedProvider } from "../../../provider/server.ts";

export type Json = Record<string, unknown>;
export type Api = ApiName;

export const apis: readonly Api[] = ["openai", "openai-responses", "anthropic", "google"];

/** A response that was read to its end, or until it broke. */
export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The data of each event, parsed; the end mark of OpenAI stays text. */
  readonly events: readonly (Json & { readonly event?: string })[];
  readonly json: Json;
  /** True when the connection broke before the body ended. */
  readonly isBroken: boolean;
}

/** The smallest request of an API with a text. */
export function request(api: Api, text = "hello", more: Json = {}): Json {
  switch (api) {
    case "openai":
      return { model: "model-1", stream: true, messages: [{ role: "user", content: text }], ...more };
    case "openai-responses":
      return { model: "model-1", stream: true, input: [{ role: "user", content: text }], ...more };
    case "anthropic":
      return { model: "model-1", stream: true, max_tokens: 100, messages: [{ role: "user", content: text }], ...more };
    case "google":
      return { contents: [{ role: "user", parts: [{ text }] }], ...more };
  }
}

export function urlOf(provider: ScriptedProvider, api: Api, isStreamed = true): string {
  switch (api) {
    case "openai":
      return `${provider.baseUrls.openai}/chat/completions`;
    case "openai-responses":
      return `${provider.baseUrls.openai}/responses`;
    case "anthropic":
      return `${provider.baseUrls.anthropic}/v1/messages?beta=true`;
    case "google": {
      const method = isStreamed ? "streamGenerateContent?alt=sse" : "generateContent";
      return `${provider.baseUrls.google}/models/model-1:${method}`;
    }
  }
}

/** A request of an API without a text. */
export function emptyRequest(api: Api): Json {
  const key = { google: "contents", "openai-responses": "input", openai: "messages", anthropic: "messages" }[api];
  return request(api, "", { [key]: [] });
}

export interface PostOptions {
  readonly signal?: AbortSignal;
  readonly headers?: Record<string, string>;
}

export function post(url: string, body: unknown, options: PostOptions = {}): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...options.headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...(options.signal !== undefined && { signal: options.signal }),
  });
}

export async function ask(provider: ScriptedProvider, api: Api, body: Json = request(api)): Promise<Answered> {
  const isStreamed = body["stream"] !== false;
  const { stream: _, ...googleBody } = body;
  return await read(await post(urlOf(provider, api, isStreamed), api === "google" ? googleBody : body));
}

export async function read(response: Response): Promise<Answered> {
  const decoder = new TextDecoder();
  let text = "";
  let isBroken = false;
  try {
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += decoder.decode(chunk, { stream: true });
    }
  } catch {
    isBroken = true;
  }
  return {
    status: response.status,
    headers: response.headers,
    text,
    isBroken,
    events: eventsOf(text),
    json: jsonOf(text),
  };
}

function eventsOf(text: string): readonly Json[] {
  return text
    .split(/\r?\n\r?\n/)
    .filter((block) => /^data: /m.test(block))
    .map((block) => {
      const data = /^data: (.*)$/m.exec(block)?.[1] ?? "";
      const event = /^event: (.*)$/m.exec(block)?.[1];
      return { ...jsonOf(data), ...(event !== undefined && { event }), ...(data === "[DONE]" && { data }) };
    });
}

function jsonOf(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return {};
  }
}

/** The text of an answer, in any API and form. */
export function textOf(answered: Answered, api: Api): string {
  const bodies = answered.events.length > 0 ? answered.events : [answered.json];
  return bodies.map((body) => pieceOf(body, api)).join("");
}

function pieceOf(body: Json, api: Api): string {
  const path = (...keys: (string | number)[]): unknown =>
    keys.reduce<unknown>((value, key) => (value as Json | undefined)?.[key], body);
  switch (api) {
    case "openai":
      return String(path("choices", 0, "delta", "content") ?? path("choices", 0, "message", "content") ?? "");
    case "openai-responses":
      if (body["type"] === "response.output_text.delta") return String(body["delta"]);
      return String(path("output", 0, "content", 0, "text") ?? "");
    case "anthropic":
      return String(path("delta", "text") ?? path("content", 0, "text") ?? "");
    case "google":
      return String(path("candidates", 0, "content", "parts", 0, "text") ?? "");
  }
}
