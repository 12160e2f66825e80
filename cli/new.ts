import { resolve } from "node:path";
import type { Client, DialogPolicy, Params, SessionHandle } from "../client/index.ts";
import { noModelAdvice } from "./credentials.ts";
import { UsageError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { noteIfSlow } from "./slow-start.ts";
import { oneLine } from "./text.ts";
import { labels, list, seconds } from "./values.ts";
import { withClient } from "./with-client.ts";

/** Creates a session and prints its id. */
export async function newSession(invocation: Invocation<"new">): Promise<number> {
  const { options, output, signal } = invocation;
  const params = paramsOf(options);
  return withClient(invocation, async (client) => {
    const session = await noteIfSlow(client.createSession(params, { signal }), output);
    await noteIfNoModel(client, session, invocation);
    if (output.json) {
      output.document(session.info);
      return exitCodes.done;
    }
    output.print(session.id);
    const { model, cwd } = session.info ?? {};
    const modelName = model === undefined ? "no model" : `${model.provider}/${model.id}`;
    if (output.isTerminal) output.aside(output.paintAside("dim", oneLine(`${modelName} in ${cwd}`)));
    return exitCodes.done;
  });
}

/**
 * Notes that no model has credentials, or that the named one has none. pi checks this only for models that it chooses
 * itself.
 */
async function noteIfNoModel(
  client: Client,
  session: SessionHandle,
  { options, output, env, signal }: Invocation<"new">,
): Promise<void> {
  const { model } = session.info ?? {};
  const isNamed = options.model !== undefined || options.profile !== undefined;
  if (model !== undefined) {
    // The session's pi runs, so this call starts no other. Its failure is not an error, because the session exists.
    const list = isNamed ? await client.listModels({ sessionId: session.id }, { signal }).catch(() => {}) : undefined;
    if (list?.providers.some(({ id, models }) => id === model.provider && models > 0) !== false) return;
  }
  const info = await client.info({ signal });
  output.note("no_model", noModelAdvice(model, { info, env }));
}

function paramsOf(options: Invocation<"new">["options"]): Params<"session/create"> {
  const { model, thinking, name, tools, "exclude-tools": excludeTools, dialogs, approve } = options;
  const { profile, label, ephemeral, extension, "append-system-prompt": appendSystemPrompt } = options;
  return {
    cwd: resolve(options.cwd ?? "."),
    ...(model !== undefined && { model }),
    ...(thinking !== undefined && { thinking }),
    ...(name !== undefined && { name }),
    ...(tools !== undefined && { tools: list(tools, { option: "tools", command: "new" }) }),
    ...(excludeTools !== undefined && {
      excludeTools: list(excludeTools, { option: "exclude-tools", command: "new" }),
    }),
    ...(dialogs !== undefined && { dialogPolicy: policyOf(dialogs) }),
    ...(approve === true && { approve }),
    ...(profile !== undefined && { profile }),
    ...(label !== undefined && { labels: labels(label, { option: "label", command: "new" }) }),
    ...(ephemeral === true && { ephemeral }),
    ...(extension !== undefined && {
      extensions: list(extension, { option: "extension", command: "new" }).map((path) => resolve(path)),
    }),
    ...(appendSystemPrompt !== undefined && { appendSystemPrompt }),
  };
}

function policyOf(word: string): DialogPolicy {
  if (word === "cancel" || word === "wait") return { kind: word };
  if (/^\d/.test(word)) return { kind: "default", afterMs: seconds(word, { option: "dialogs", command: "new" }) };
  throw new UsageError(`--dialogs takes cancel, wait or a number of seconds, not "${word}".`, "new");
}
