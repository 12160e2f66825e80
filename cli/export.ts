import { createReadStream, existsSync } from "node:fs";
import { resolve } from "node:path";
import type { SessionHandle } from "../client/index.ts";
import { writeNew } from "./context-file.ts";
import { CommandError, UsageError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import { shortId } from "./format.ts";
import type { Invocation } from "./invocation.ts";
import { findSession } from "./session-argument.ts";
import { withClient } from "./with-client.ts";

/** Writes a session as a page, or as pi's session file. */
export async function exportSession(invocation: Invocation<"export">): Promise<number> {
  const { options, output, signal } = invocation;
  const [word = "", file] = invocation.arguments;
  if (file !== undefined && !/\.(?:html|jsonl)$/.test(file)) {
    throw new UsageError(`FILE must end in .html or .jsonl, not "${file}".`, "export");
  }
  return withClient(invocation, async (client) => {
    const session = await findSession(client, word, signal);
    const path = resolve(file ?? `session-${shortId(session.id)}.html`);
    const page = async (): Promise<readonly string[]> => [
      (await client.call("session/export", { sessionId: session.id }, { signal })).html,
    ];
    const bytes = await writeNew(path, options.force === true, async () => {
      const pieces = path.endsWith(".html") ? await page() : await sessionFile(session, signal);
      return async (append) => {
        let sum = 0;
        for await (const piece of pieces) {
          signal.throwIfAborted();
          sum += Buffer.byteLength(piece);
          await append(piece);
        }
        return sum;
      };
    });
    if (output.json) output.document({ path, bytes });
    else output.print(path);
    return exitCodes.done;
  });
}

/** The bytes of pi's session file, which is on this machine. */
async function sessionFile(session: SessionHandle, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
  const { file } = await session.get({ signal });
  if (file === "") {
    throw new CommandError(
      "no_session_file",
      "The session exists only in pi's memory. Export it as a page: name a FILE that ends in .html.",
    );
  }
  if (!existsSync(file)) {
    throw new CommandError(
      "no_session_file",
      "The session has no file yet: pi writes it with the model's first answer. Send a prompt first.",
    );
  }
  return createReadStream(file);
}
