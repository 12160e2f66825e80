import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useMemo } from "preact/hooks";
import { Pieces } from "../state/long-texts.ts";
import type { PiValue } from "../state/pi-values.ts";
import type { RequestBodies, RequestBody } from "../state/request-bodies.ts";
import { Visible } from "../text/visible.tsx";
import { PlainText } from "./items/long-text.tsx";
import { Copy } from "./widgets/copy.tsx";

interface RequestBodiesProps {
  readonly bodies: RequestBodies;
  /** Undefined: the page did not show the session when the request was made. */
  readonly requestId: string | undefined;
}

/** What was sent to the provider, if a person wants the page to get that. */
export function RequestBodySection({ bodies, requestId }: RequestBodiesProps): JSX.Element {
  const problem = useSignal("");
  const level = bodies.level.value;
  const body = requestId === undefined ? undefined : bodies.known.value.get(requestId);
  const start = async (): Promise<void> => {
    const outcome = await bodies.start();
    problem.value = outcome.kind === "refused" ? outcome.words : "";
  };
  return (
    <section class="request-body">
      <h3>Messages and payload</h3>
      {level === "off" ? (
        <p class="quiet">
          This page gets them only when you ask for it, from the next request on. They contain all that the model is
          told, also secrets.{" "}
          <button type="button" class="link" onClick={() => void start()}>
            Get them
          </button>
          {problem.value !== "" && <span class="is-bad"> {problem.value}</span>}
        </p>
      ) : (
        <>
          {body === undefined ? (
            <p class="quiet">This page got none of this request. It keeps those of the last 5 from now on.</p>
          ) : (
            <Body key={requestId} body={body} isAllowed={level === "payload"} />
          )}
          <button type="button" class="link" onClick={() => bodies.stop()}>
            Forget them, and get no more
          </button>
        </>
      )}
    </section>
  );
}

function Body({ body, isAllowed }: { readonly body: RequestBody; readonly isAllowed: boolean }): JSX.Element {
  const { messages, payload, isCut } = body;
  return (
    <>
      {messages !== undefined && <Messages messages={messages} />}
      {payload !== undefined && (
        <Folded summary="The payload">
          <Json value={payload} />
        </Folded>
      )}
      {isCut && <p class="is-warn">The daemon left out what was too large, or what pi did not show.</p>}
      {!isAllowed && (
        <p class="quiet">
          The payload needs a page that was opened with <code>pi-rpcd web --payload</code>.
        </p>
      )}
    </>
  );
}

/** More would make the page slow; the first ones are in the payload. */
const maxMessages = 100;

function Messages({ messages }: { readonly messages: readonly PiValue[] }): JSX.Element {
  const shown = messages.slice(-maxMessages);
  const first = messages.length - shown.length;
  return (
    <Folded summary={messages.length === 1 ? "1 message" : `${messages.length} messages`}>
      {first > 0 && <p class="quiet">{first} messages before these are not listed.</p>}
      <ol class="messages" start={first + 1}>
        {shown.map((message, index) => (
          <li key={first + index}>
            <Folded summary={<MessageHead message={message} />}>
              <Json value={message} />
            </Folded>
          </li>
        ))}
      </ol>
    </Folded>
  );
}

function MessageHead({ message }: { readonly message: PiValue }): JSX.Element {
  const { role, customType, toolName } = message;
  const name = typeof customType === "string" ? customType : typeof toolName === "string" ? toolName : undefined;
  return (
    <>
      <Visible text={typeof role === "string" ? role : "no role"} />
      {name !== undefined && (
        <>
          {" "}
          <span class="quiet">
            <Visible text={name} />
          </span>
        </>
      )}
    </>
  );
}

function Json({ value }: { readonly value: unknown }): JSX.Element {
  const json = useMemo(() => JSON.stringify(value, undefined, 2), [value]);
  const text = useMemo(() => new Pieces([{ text: json }]), [json]);
  return (
    <>
      <Copy what="the text" text={() => json} />
      <PlainText text={text} namesHidden={true} />
    </>
  );
}

interface FoldedProps {
  readonly summary: ComponentChildren;
  readonly children: ComponentChildren;
}

/** Is built when it is opened. */
function Folded({ summary, children }: FoldedProps): JSX.Element {
  const isOpen = useSignal(false);
  return (
    <details
      onToggle={(event) => {
        if (event.target === event.currentTarget) isOpen.value = event.currentTarget.open;
      }}
    >
      <summary>{summary}</summary>
      {isOpen.value && children}
    </details>
  );
}
