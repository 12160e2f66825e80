import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { usePage } from "./context.ts";
import { Time } from "./widgets/time.tsx";
import { Words } from "./widgets/words.tsx";

/** Shorter losses of the connection are not shown. */
const shownAfterMs = 1_000;

/** What is wrong with the connection. All that was loaded stays below it. */
export function News(): JSX.Element | null {
  const connection = usePage().app.connection.value;
  if (connection.kind === "lost") return <Lost since={connection.since} nextTryAt={connection.nextTryAt} />;
  if (connection.kind !== "ended") return null;
  return (
    <section class="news is-bad" aria-label="Connection">
      <p role="alert">
        <Words text={connection.words} /> What was loaded stays.
      </p>
    </section>
  );
}

function Lost({ since, nextTryAt }: { readonly since: number; readonly nextTryAt: number }): JSX.Element | null {
  const now = useSignal(Date.now());
  useEffect(() => {
    const timer = setInterval(() => {
      now.value = Date.now();
    }, shownAfterMs / 2);
    return () => clearInterval(timer);
  }, []);
  if (now.value - since < shownAfterMs) return null;
  const seconds = Math.ceil((nextTryAt - now.value) / 1_000);
  return (
    <section class="news" aria-label="Connection">
      <p>
        The connection was lost at <Time at={since} />. {seconds > 0 ? `Next try in ${seconds} s.` : "Trying now."}
      </p>
    </section>
  );
}
