import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Delivery } from "../../client/browser.ts";
import { evidenceWords } from "../state/evidence.ts";
import type { Outcome } from "../state/outcome.ts";
import { actionsOf, offsetWords, type TimelineRequest, type TimelineStep, timelineOf } from "../state/push-timeline.ts";
import { isOver, type OpenPush, pushGroupOf } from "../state/pushes.ts";
import { Visible } from "../text/visible.tsx";
import { usePage, useWorkspace } from "./context.ts";
import { PlainText, sizeWords } from "./items/long-text.tsx";
import { closePush, showInConversation } from "./moves.ts";
import { signOfPush } from "./push-state.ts";
import { Copy } from "./widgets/copy.tsx";
import { Icon } from "./widgets/icon.tsx";
import { durationWords, ExactTime, Time } from "./widgets/time.tsx";

/** The timeline of one push, what was pushed, and what can be done. */
export function PushDetails({ push }: { readonly push: OpenPush }): JSX.Element {
  const { app, looks } = usePage();
  const known = push.delivery.value;
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => title.current?.focus(), []);
  return (
    <section class="push-details" aria-labelledby="push-title">
      <header class="sheet-head">
        <h2 ref={title} id="push-title" class="cut" tabIndex={-1}>
          {known.kind === "known" ? <Visible text={known.value.customType} /> : "Push"}
        </h2>
        <span class="push-right" />
        <button
          type="button"
          class="button bare square"
          aria-label="Close the push"
          onClick={() => closePush(app, looks)}
        >
          <Icon name="cross" />
        </button>
      </header>
      {known.kind === "refused" && <p class="is-bad">{known.words}</p>}
      {known.kind === "asking" && <p class="quiet">Reading the push…</p>}
      {known.kind === "known" && <Known push={push} delivery={known.value} />}
    </section>
  );
}

const moments = {
  steer: "during a run: with the next request",
  followUp: "during a run: when it would end",
  nextTurn: "with the next prompt",
} as const;

function Known({ push, delivery }: { readonly push: OpenPush; readonly delivery: Delivery }): JSX.Element {
  const { app, looks } = usePage();
  const { sessions } = useWorkspace();
  const { sessionId, deliveryId, state, deliverAs, triggerTurn, createdAt, expiresAt, redelivered, preview } = delivery;
  const group = pushGroupOf(delivery);
  const { icon, tone, word } = signOfPush(state, group === "unanswered");
  const timeline = timelineOf(delivery);
  const session = sessions.find(sessionId);
  return (
    <>
      <p class={`push-sign ${tone}`}>
        <Icon name={icon} />
        {word}
      </p>
      {timeline.why !== undefined && (
        <p class="push-why">
          <Visible text={timeline.why} />
        </p>
      )}
      {redelivered === true && (
        <p class="push-why is-warn">The model may have seen it before: an earlier request ended without a verdict.</p>
      )}
      <Actions push={push} delivery={delivery} />
      <dl class="facts">
        <Fact name="Session">
          {session === undefined ? (
            <>
              closed <span class="mono quiet">{sessionId}</span>
            </>
          ) : (
            <button
              type="button"
              class="link cut"
              onClick={() => showInConversation(app, looks, sessionId, deliveryId)}
            >
              <bdi>{session.title}</bdi>
            </button>
          )}
        </Fact>
        <Fact name="Enters">
          {moments[deliverAs] ?? deliverAs}
          {deliverAs !== "nextTurn" && (triggerTurn ? "; starts a run if there is none" : "; starts no run")}
        </Fact>
        <Fact name="Pushed">
          <Time at={createdAt} />
        </Fact>
        {expiresAt !== undefined && !isOver(group) && delivery.insertedAt === undefined && (
          <Fact name="Expires">
            <Time at={expiresAt} />
          </Fact>
        )}
        <Fact name="Id">
          <span class="mono push-id">
            {deliveryId} <Copy what="the id" text={() => deliveryId} />
          </span>
        </Fact>
      </dl>
      <h3>What happened</h3>
      <ol class="timeline">
        {timeline.steps.map((step, index) => (
          <Step key={index} push={push} step={step} />
        ))}
      </ol>
      {timeline.requests.length > 0 && (
        <>
          <h3>Requests that carried it</h3>
          <ol class="push-requests">
            {timeline.requests.map((request) => (
              <Request key={request.requestId} request={request} />
            ))}
          </ol>
        </>
      )}
      <h3>What was pushed</h3>
      <PushedContent push={push} preview={preview} />
    </>
  );
}

function Step({ push, step }: { readonly push: OpenPush; readonly step: TimelineStep }): JSX.Element {
  const { state, at, sinceStartMs, words, attempt, evidence, by } = step;
  return (
    <li class={signOfPush(state).tone}>
      <span class="step-time">
        <ExactTime at={at} />
        <span>{offsetWords(sinceStartMs)}</span>
      </span>
      <span class="step-words">
        <strong>{state}</strong> <Visible text={words} />
        {by !== undefined && (
          <>
            {" "}
            By{" "}
            <span title={by.clientId}>
              {by.clientId === push.ownId ? "you" : by.name === undefined ? "a client" : <Visible text={by.name} />}
            </span>
            .
          </>
        )}
        {(attempt !== undefined || evidence !== undefined) && (
          <span class="step-tags">
            {attempt !== undefined && <span class="tag">request {attempt}</span>}
            {evidence !== undefined && (
              <span class="tag" title={evidenceWords(evidence)}>
                evidence: {evidence}
              </span>
            )}
          </span>
        )}
      </span>
    </li>
  );
}

const requestTones = {
  open: "is-accent",
  delivered: "is-good",
  failed: "is-bad",
  aborted: "is-warn",
  unknown: "is-warn",
};

function Request({ request }: { readonly request: TimelineRequest }): JSX.Element {
  const { n, requestId, preparedAt, sinceStartMs, outcome, words, payloadWords, evidence, status, tookMs, error } =
    request;
  return (
    <li>
      <p class="request-head">
        <strong>Request {n}</strong>
        <span class={requestTones[outcome]}>{words}</span>
      </p>
      <dl class="facts">
        <Fact name="Made">
          <ExactTime at={preparedAt} /> <span class="quiet">{offsetWords(sinceStartMs)}</span>
        </Fact>
        {tookMs !== undefined && <Fact name="Verdict">after {spanWords(tookMs)}</Fact>}
        {status !== undefined && <Fact name="Status">{status}</Fact>}
        {evidence !== undefined && (
          <Fact name="Evidence">
            {evidence}: {evidenceWords(evidence)}
          </Fact>
        )}
        <Fact name="Payload">{payloadWords}</Fact>
        {error !== undefined && (
          <Fact name="Error">
            <span class="is-bad plain-text">
              <Visible text={error} />
            </span>
          </Fact>
        )}
        <Fact name="Id">
          <span class="mono">
            <Visible text={requestId} />
          </span>
        </Fact>
      </dl>
    </li>
  );
}

function spanWords(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : durationWords(ms);
}

function Actions({ push, delivery }: { readonly push: OpenPush; readonly delivery: Delivery }): JSX.Element | null {
  const said = useSignal<{ readonly words: string; readonly isBad: boolean } | undefined>(undefined);
  const isBusy = useSignal(false);
  const over = isOver(pushGroupOf(delivery));
  const { cancel, resend } = actionsOf(delivery, over);
  const act = async (action: () => Promise<Outcome>, words: string): Promise<void> => {
    isBusy.value = true;
    const outcome = await action();
    isBusy.value = false;
    said.value = outcome.kind === "refused" ? { words: outcome.words, isBad: true } : { words, isBad: false };
  };
  const whyNot = [...new Set([cancel, resend].flatMap((possible) => (possible.kind === "no" ? [possible.words] : [])))];
  return (
    <div class="push-actions">
      {(cancel.kind === "yes" || resend.kind === "yes") && (
        <div class="row-of-buttons">
          {resend.kind === "yes" && (
            <button
              type="button"
              class="button"
              disabled={isBusy.value}
              onClick={() => void act(() => push.resend(), "A run carries it.")}
            >
              Send again
            </button>
          )}
          {cancel.kind === "yes" && (
            <button
              type="button"
              class="button"
              disabled={isBusy.value}
              onClick={() => void act(() => push.cancel(), "It was withdrawn.")}
            >
              Cancel it
            </button>
          )}
        </div>
      )}
      {!over && whyNot.length > 0 && <p class="quiet">{whyNot.join(" ")}</p>}
      <p class={`said ${said.value?.isBad === true ? "is-bad" : ""}`} role="status">
        {said.value?.words}
      </p>
    </div>
  );
}

/** A shorter preview is the whole text. */
const previewChars = 200;

function PushedContent({
  push,
  preview,
}: {
  readonly push: OpenPush;
  readonly preview: string | undefined;
}): JSX.Element {
  const content = push.content.value;
  const isCut = (preview?.length ?? 0) >= previewChars;
  if (content.kind === "known") {
    const { text, images } = content.value;
    return (
      <div class="push-content">
        {text.text.value !== "" && <PlainText text={text} namesHidden={true} />}
        {images.map(({ mimeType, bytes }, index) => (
          <p key={index} class="quiet">
            An image: {mimeType}, {sizeWords(bytes)}
          </p>
        ))}
        <Copy what="what was pushed" text={() => text.text.value} />
      </div>
    );
  }
  return (
    <div class="push-content">
      {preview !== undefined && preview !== "" && (
        <p class="plain-text quiet">
          <Visible text={preview} />
          {isCut && "…"}
        </p>
      )}
      {content.kind === "refused" && <p class="is-bad">{content.words}</p>}
      <button
        type="button"
        class="button small"
        disabled={content.kind === "asking"}
        onClick={() => void push.showContent()}
      >
        {content.kind === "asking" ? "Reading…" : "Show all of it"}
      </button>
    </div>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }): JSX.Element {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
