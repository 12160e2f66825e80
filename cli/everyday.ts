import type { Client, PromptResult, SessionHandle } from "../client/index.ts";
import type { DeliveryEffects } from "../protocol/delivery.ts";
import type { Result } from "../protocol/methods.ts";
import { count } from "../protocol/number-text.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { messageText } from "./message-text.ts";
import type { Output } from "./output.ts";
import { findSession } from "./session-argument.ts";
import { oneLine } from "./text.ts";
import { withClient } from "./with-client.ts";

const stateTimeoutMs = 10_000;

type Verb = "abort" | "steer" | "follow-up" | "queue" | "compact" | "rename";

/** Runs `use` with the session that a word means, and prints its result as JSON or as lines. */
async function withSession<T>(
  invocation: Invocation<Verb>,
  word: string,
  {
    use,
    lines,
  }: {
    readonly use: (session: SessionHandle, client: Client) => Promise<T>;
    readonly lines: (result: T) => readonly string[];
  },
): Promise<number> {
  const { output, signal } = invocation;
  return withClient(invocation, async (client) => {
    const result = await use(await findSession(client, word, signal), client);
    if (output.json) output.document(result);
    else for (const line of lines(result)) output.print(line);
    return exitCodes.done;
  });
}

/** Aborts the run or the compaction of a session. */
export function abort(invocation: Invocation<"abort">): Promise<number> {
  const {
    arguments: [word = ""],
    output,
    signal,
  } = invocation;
  let isCompacting: boolean | undefined;
  return withSession(invocation, word, {
    use: async (session, client) => {
      // Asked before the abort and awaited after it, because a pi that does not answer must not delay the abort.
      const compacting = output.json ? undefined : compacts(client, session.id, signal);
      const result = await session.abort({ signal });
      isCompacting = await compacting;
      return result;
    },
    lines: ({ aborted, deliveries }) => [abortedLine(aborted, isCompacting), ...effects(deliveries)],
  });
}

/** Whether pi compacts the session; an abort does not return this. Undefined if pi does not answer in time. */
async function compacts(client: Client, sessionId: string, signal: AbortSignal): Promise<boolean | undefined> {
  const soon = AbortSignal.any([signal, AbortSignal.timeout(stateTimeoutMs)]);
  const state = await client.call("session/getState", { sessionId }, { signal: soon }).catch(() => undefined);
  return state?.isCompacting;
}

function abortedLine(aborted: boolean, isCompacting: boolean | undefined): string {
  if (aborted) return "The run is aborted.";
  if (isCompacting === undefined) return "No run was active.";
  return isCompacting ? "The compaction is aborted." : "Neither a run nor a compaction was active.";
}

/** Sends a message for the agent's next request. */
export async function steer(invocation: Invocation<"steer">): Promise<number> {
  const {
    arguments: [word = "", ...words],
    signal,
  } = invocation;
  const text = await messageText({ command: "steer", words, stdin: process.stdin, signal });
  return withSession(invocation, word, {
    use: (session) => session.steer(text, { signal }),
    lines: (result) => [acceptance(result, "The agent gets it before its next request.")],
  });
}

/** Sends a message that the agent gets when its run would end. */
export async function followUp(invocation: Invocation<"follow-up">): Promise<number> {
  const {
    arguments: [word = "", ...words],
    signal,
  } = invocation;
  const text = await messageText({ command: "follow-up", words, stdin: process.stdin, signal });
  return withSession(invocation, word, {
    use: (session) => session.followUp(text, { signal }),
    lines: (result) => [acceptance(result, "The agent gets it when its run would end.")],
  });
}

function acceptance({ disposition }: PromptResult, queued: string): string {
  if (disposition === "queued") return `Queued. ${queued}`;
  return disposition === "started"
    ? "No run was active, so the message started one."
    : "An extension handled the message.";
}

/** Shows the messages in a session's queue, or removes them. */
export function queue(invocation: Invocation<"queue">): Promise<number> {
  const {
    arguments: [action, word = ""],
    output,
    signal,
  } = invocation;
  if (action === "clear") {
    return withSession(invocation, word, {
      use: (session) => session.clearQueue({ signal }),
      lines: ({ steering, followUp: later, deliveries }) => [
        ...(steering.length + later.length === 0 ? ["The queue was empty."] : []),
        ...[...steering, ...later].map((text) => oneLine(`removed: ${text}`)),
        ...effects(deliveries),
      ],
    });
  }
  return withSession(invocation, word, {
    use: (session) => session.getQueue({ signal }),
    lines: (found) => queueLines(found, output),
  });
}

function queueLines({ steering, followUp: later }: Result<"session/getQueue">, output: Output): readonly string[] {
  if (steering.length + later.length === 0) return ["The queue is empty."];
  const section = (title: string, messages: typeof steering): readonly string[] =>
    messages.length === 0
      ? []
      : [
          output.paint("dim", title),
          ...messages.map(({ text, by }) => `  ${oneLine(`${text}${by?.name === undefined ? "" : ` (${by.name})`}`)}`),
        ];
  return [...section("BEFORE THE NEXT REQUEST", steering), ...section("WHEN THE RUN WOULD END", later)];
}

/** Compacts a session's context. */
export async function compact(invocation: Invocation<"compact">): Promise<number> {
  const {
    arguments: [word = "", ...words],
    signal,
  } = invocation;
  const instructions =
    words.length === 0 ? undefined : await messageText({ command: "compact", words, stdin: process.stdin, signal });
  return withSession(invocation, word, {
    use: (session) =>
      session.compact({ ...(instructions !== undefined && { customInstructions: instructions }), signal }),
    lines: ({ compaction: { tokensBefore, estimatedTokensAfter: after }, deliveries }) => [
      `Compacted: ${count(tokensBefore)} tokens${after === undefined ? "" : ` became about ${count(after)}`}.`,
      ...effects(deliveries),
    ],
  });
}

/** Renames a session. */
export function rename(invocation: Invocation<"rename">): Promise<number> {
  const {
    arguments: [word = "", ...words],
    signal,
  } = invocation;
  const name = words.join(" ");
  return withClient(invocation, async (client) => {
    const { id: sessionId } = await findSession(client, word, signal);
    await client.call("session/rename", { sessionId, name }, { signal });
    if (invocation.output.json) invocation.output.document({ sessionId, name });
    else invocation.output.print(oneLine(`${sessionId} is now called ${name}.`));
    return exitCodes.done;
  });
}

/** A line for each state, with the number of pushes that now have it. */
function effects(deliveries: DeliveryEffects): readonly string[] {
  return [...Map.groupBy(deliveries, ({ state }) => state)].map(
    ([state, { length }]) => `${length} ${length === 1 ? "push is" : "pushes are"} ${state}.`,
  );
}
