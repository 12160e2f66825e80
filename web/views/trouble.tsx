import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { OpenSession } from "../state/open-session.ts";
import { Visible } from "../text/visible.tsx";
import { Icon } from "./widgets/icon.tsx";
import { Time } from "./widgets/time.tsx";

/** What happened to the session's pi, and prompts that it has lost. */
export function Trouble({ open }: { readonly open: OpenSession }): JSX.Element | null {
  const info = open.info.value;
  const [said, setSaid] = useState<string>();
  if (info === undefined) return null;
  const { exit, restarts, unresponsive, lostPrompts } = info;
  const hasCrashed = info.state === "crashed" && exit !== undefined;
  if (!hasCrashed && info.ephemeral !== "lost" && unresponsive === undefined && lostPrompts.length === 0) return null;
  const resend = async (promptId: string): Promise<void> => {
    const outcome = await open.composer.resend(promptId);
    setSaid(outcome.kind === "refused" ? outcome.words : undefined);
  };
  return (
    <section class="trouble" aria-label="Trouble">
      {hasCrashed && (
        <>
          <p>
            <Icon name="failed" /> pi ended unexpectedly at <Time at={exit.at} />
            {exit.signal !== null ? `, by ${exit.signal}` : `, with code ${exit.code}`}.{" "}
            {restarts?.nextAt === undefined ? (
              "The next message starts it again."
            ) : (
              <>
                It is started again at <Time at={restarts.nextAt} />.
              </>
            )}
          </p>
          {exit.stderrTail !== "" && (
            <details>
              <summary>The end of what it wrote to stderr</summary>
              <pre class="output wrap">
                <Visible text={exit.stderrTail} />
              </pre>
            </details>
          )}
        </>
      )}
      {info.ephemeral === "lost" && (
        <p>
          <Icon name="failed" /> This session was only in the memory of its pi, which has ended. It cannot go on.
        </p>
      )}
      {unresponsive !== undefined && (
        <p>
          <Icon name="wait" /> pi has not answered since <Time at={unresponsive.since} />. Nothing is stopped; this goes
          away when it answers.
        </p>
      )}
      {lostPrompts.map(({ promptId, text, length }) => (
        <p key={promptId} class="lost-prompt">
          <span>
            pi lost this message when it ended: “<Visible text={text.slice(0, 200)} />
            {length > 200 && "…"}”
          </span>
          <button type="button" class="button small" onClick={() => void resend(promptId)}>
            Send again
          </button>
        </p>
      ))}
      {said !== undefined && <p role="status">{said}</p>}
    </section>
  );
}
