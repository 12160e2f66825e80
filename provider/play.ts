import type { PromptCache } from "./cache/prompt-cache.ts";
import type { AnswerHead, AnswerPiece, Dialect, StreamEncoder } from "./dialect.ts";
import type { Exchange } from "./exchange.ts";
import { countCharacters } from "./messages.ts";
import type { AnswerReply, Break, OverflowReply, Part, Piece, Reply, StatusReply, StopReason, Usage } from "./reply.ts";
import type { MessageThreads } from "./threads.ts";

export interface PlayOptions {
  readonly exchange: Exchange;
  readonly dialect: Dialect;
  /** The base of the ids in the answer, unique in this provider. */
  readonly answerId: string;
  /** Counts tokens; without it, they are a quarter of the characters. */
  readonly cache: PromptCache | undefined;
  readonly threads: MessageThreads;
}

/** Sends a reply. Rejects if the connection or the provider ends first; otherwise the entry has its outcome. */
export async function play(reply: Reply, options: PlayOptions): Promise<void> {
  for (const pause of reply.before ?? []) await options.exchange.pause(pause);
  switch (reply.kind) {
    case "status":
      return await playStatus(reply, options);
    case "overflow":
      return await playStatus(overflowStatus(reply, options.dialect), options);
    case "reset":
      return options.exchange.reset();
    case "hang":
      return await options.exchange.hang();
    case "answer":
      return await (options.exchange.entry.stream ? playStream(reply, options) : playWhole(reply, options));
  }
}

async function playStatus(reply: StatusReply, { exchange, dialect }: PlayOptions): Promise<void> {
  const body = reply.body === undefined ? dialect.errorBody(reply) : reply.body;
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const type = typeof body === "string" ? "text/plain" : "application/json";
  exchange.sendHeaders(reply.status, {
    "content-type": type,
    "content-length": String(Buffer.byteLength(text)),
    ...reply.headers,
  });
  await exchange.write(text);
  await exchange.finish(reply.status >= 200 && reply.status < 300 ? "answered" : "refused");
}

function overflowStatus({ tokens, limitTokens }: OverflowReply, dialect: Dialect): StatusReply {
  return { kind: "status", status: 400, body: dialect.overflowBody(tokens, limitTokens) };
}

async function playStream(reply: AnswerReply, options: PlayOptions): Promise<void> {
  const { exchange, dialect, threads } = options;
  const head = await headOf(reply, options);
  const encoder = dialect.encoder(head, exchange.entry.body);
  exchange.sendHeaders(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    ...reply.headers,
  });
  await exchange.write(encoder.start());
  const parts = identified(reply.parts, options);
  for (const part of parts) {
    if (isPause(part)) await exchange.pause(part);
    else if (isBreak(part)) return await breakOff(part, exchange, encoder);
    else await exchange.write(part.kind === "raw" ? part.data : encoder.piece(part));
  }
  // Before its end, because the next request may follow at once.
  threads.keep(exchange.entry.body, () => dialect.whole({ head, pieces: parts.filter(isPiece), stop: stopOf(reply) }));
  await exchange.write(encoder.finish(stopOf(reply)));
  await exchange.finish("answered");
}

/** The headers first, then the pauses, then the body in one piece; a break sends half of it. */
async function playWhole(reply: AnswerReply, options: PlayOptions): Promise<void> {
  const { exchange, dialect } = options;
  const parts = identified(reply.parts, options);
  const pieces = parts.filter(isPiece);
  const text = JSON.stringify(dialect.whole({ head: await headOf(reply, options), pieces, stop: stopOf(reply) }));
  exchange.sendHeaders(200, { "content-type": "application/json", ...reply.headers });
  for (const part of parts) {
    if (isPause(part)) await exchange.pause(part);
    if (!isBreak(part)) continue;
    await exchange.write(text.slice(0, Math.ceil(text.length / 2)));
    return await breakOff(part, exchange, undefined);
  }
  await exchange.write(text);
  await exchange.finish("answered");
}

async function breakOff(part: Break, exchange: Exchange, encoder: StreamEncoder | undefined): Promise<void> {
  switch (part.kind) {
    case "reset":
      return exchange.reset();
    case "hang":
      return await exchange.hang();
    case "error":
      await exchange.write(encoder?.error(part.error) ?? "");
      return await exchange.finish("broken");
    case "cut":
      return await exchange.finish("broken");
  }
}

type IdentifiedPart = Exclude<Part, Piece> | AnswerPiece;

function identified(parts: readonly Part[], { answerId }: PlayOptions): readonly IdentifiedPart[] {
  return parts.map((part, index) => (part.kind === "toolCall" ? { id: `call_${answerId}_${index}`, ...part } : part));
}

function isPause(part: IdentifiedPart): part is Extract<IdentifiedPart, { readonly kind: "hold" | "delay" }> {
  return part.kind === "hold" || part.kind === "delay";
}

function isBreak(part: IdentifiedPart): part is Break {
  return part.kind === "reset" || part.kind === "hang" || part.kind === "cut" || part.kind === "error";
}

function isPiece(part: IdentifiedPart): part is AnswerPiece {
  return part.kind === "text" || part.kind === "thinking" || part.kind === "toolCall";
}

function stopOf(reply: AnswerReply): StopReason {
  return reply.stop ?? (reply.parts.some((part) => part.kind === "toolCall") ? "toolUse" : "stop");
}

async function headOf(reply: AnswerReply, { exchange, answerId, cache }: PlayOptions): Promise<AnswerHead> {
  const { entry } = exchange;
  const written = writtenBy(reply);
  const counted = await (cache?.usageOf(entry, written) ?? quarters(countCharacters(entry.messages), written.length));
  const usage = { ...counted, ...reply.usage };
  entry.recordUsage(usage);
  return { id: answerId, model: entry.model ?? "", createdAt: Date.now(), usage };
}

function writtenBy({ parts }: AnswerReply): string {
  const written = parts.map((part) => {
    if (part.kind === "text" || part.kind === "thinking") return part.text;
    return part.kind === "toolCall" ? JSON.stringify(part.arguments ?? {}) : "";
  });
  return written.join("");
}

function quarters(charactersRead: number, charactersWritten: number): Usage {
  return {
    inputTokens: Math.ceil(charactersRead / 4),
    outputTokens: Math.ceil(charactersWritten / 4),
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
  };
}
