import type { SessionHandle } from "../client/index.ts";
import { UsageError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { findSession } from "./session-argument.ts";
import { oneLine } from "./text.ts";
import { withClient } from "./with-client.ts";

interface ForkMessage {
  readonly entryId: string;
  readonly text: string;
}

/** Forks a session, or lists the entries where it can be forked. */
export async function fork(invocation: Invocation<"fork">): Promise<number> {
  const { options, output, signal } = invocation;
  const { at, list } = options;
  const [word = ""] = invocation.arguments;
  if (at !== undefined && list === true)
    throw new UsageError("--list and --at cannot be combined: --list does not fork.", "fork");
  return withClient(invocation, async (client) => {
    const session = await findSession(client, word, signal);
    if (list === true) {
      const messages = await messagesOf(session, signal);
      if (output.json) output.document({ messages });
      else for (const { entryId, text } of messages) output.print(oneLine(`${entryId}  ${text}`));
      return exitCodes.done;
    }
    const made = at === undefined ? { session: await session.clone({ signal }) } : await session.fork(at, { signal });
    const { text } = { text: undefined, ...made };
    if (output.json) {
      output.document({ session: made.session.info, ...(text === undefined ? {} : { text }) });
      return exitCodes.done;
    }
    output.print(made.session.id);
    if (text !== undefined && output.isTerminal) output.aside(output.paintAside("dim", oneLine(`without: ${text}`)));
    return exitCodes.done;
  });
}

async function messagesOf(session: SessionHandle, signal: AbortSignal): Promise<readonly ForkMessage[]> {
  const data = await session.command({ type: "get_fork_messages" }, { signal });
  const messages: unknown = (data as { readonly messages?: unknown } | undefined)?.messages;
  return Array.isArray(messages) ? (messages as readonly ForkMessage[]) : [];
}
