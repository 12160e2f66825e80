import type { JSX } from "preact";
import { usePage } from "./context.ts";
import { Words } from "./widgets/words.tsx";

/** What is shown before the first connection, and if there is none. */
export function Welcome(): JSX.Element {
  const connection = usePage().app.connection.value;
  return (
    <main class="empty welcome">
      {connection.kind === "ended" ? (
        <>
          <h1>Not connected</h1>
          <p>
            <Words text={connection.words} />
          </p>
        </>
      ) : (
        <>
          <h1>Connecting</h1>
          <p>The page looks for its daemon.</p>
        </>
      )}
    </main>
  );
}
