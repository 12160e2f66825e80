import type { ComponentChildren, JSX } from "preact";
import type { Composition } from "../../protocol/provider.ts";
import type { Figures } from "../state/figures.ts";
import type { OpenSession } from "../state/open-session.ts";
import type { ShownRequest } from "../state/request-facts.ts";
import { tokenKinds } from "../state/tape.ts";
import { Visible } from "../text/visible.tsx";
import { usePage } from "./context.ts";
import { sizeWords } from "./items/long-text.tsx";
import { leadToMessage } from "./lead.ts";
import { RequestBodySection } from "./request-bodies.tsx";
import { causeWords, kindOf, modelName, outcomeSigns } from "./request-words.ts";
import { kindWords } from "./tape-parts.tsx";
import { Count, msWords, shortCount, Usd, wholeCount } from "./widgets/figures.tsx";
import { Icon } from "./widgets/icon.tsx";
import { Time } from "./widgets/time.tsx";

const evidenceWords: Readonly<Record<string, string>> = {
  headers: "the provider accepted it",
  start: "the provider began to answer",
  content: "the answer began",
  message: "the answer is complete",
};

interface RequestDetailsProps {
  readonly open: OpenSession;
  readonly figures: Figures;
}

/** All that is known about the chosen request. */
export function RequestDetails({ open, figures }: RequestDetailsProps): JSX.Element {
  const { looks } = usePage();
  const { conversation } = open;
  const { requests } = figures;
  const all = requests.all.value;
  const request = requests.chosen.value;
  if (request === undefined) {
    return (
      <section class="request-details">
        <p class="quiet">
          Choose a request to see its attempt, evidence, pushes, and what changed since the one before.
        </p>
      </section>
    );
  }
  const before = all[request.number - 2];
  return (
    <section class="request-details" aria-label="The chosen request">
      <header>
        <h2>Request {request.number}</h2>
        <button
          type="button"
          class="button bare small push-right"
          aria-label="The request before"
          disabled={request.number === 1}
          onClick={() => requests.step(-1)}
        >
          <kbd>[</kbd>
        </button>
        <button
          type="button"
          class="button bare small"
          aria-label="The next request"
          disabled={request.number === all.length}
          onClick={() => requests.step(1)}
        >
          <kbd>]</kbd>
        </button>
      </header>
      <Facts request={request} />
      <TokenTable request={request} />
      <Pushes open={open} deliveryIds={request.deliveryIds} />
      <Changes changes={changesOf(request, before)} isFirst={before === undefined} />
      <MadeOf composition={request.live?.composition} before={before?.live?.composition} />
      <LiveFacts request={request} />
      <RequestBodySection bodies={figures.bodies} requestId={request.live?.requestId} />
      <div class="row-of-buttons">
        <button type="button" class="button" onClick={() => void leadToMessage(looks, conversation, request)}>
          Show in the conversation
        </button>
      </div>
    </section>
  );
}

function Facts({ request }: { readonly request: ShownRequest }): JSX.Element {
  const { model, outcome, status, evidence, stopReason, error, startedAt, endedAt, totalMs, toolsMs } = request;
  const [icon, tone, word] = outcomeSigns[outcome];
  const kind = kindOf(request);
  return (
    <dl class="facts">
      <Fact name="Status">
        <span class={`status ${tone}`}>
          <Icon name={icon} />
          {word}
          {status !== undefined && `, HTTP ${status}`}
        </span>
      </Fact>
      {error !== undefined && (
        <Fact name="Error">
          <Visible text={error} />
        </Fact>
      )}
      {kind !== "" && <Fact name="For">{kind}</Fact>}
      <Fact name="Model">{model ?? <span class="quiet">pi does not store it</span>}</Fact>
      {stopReason !== undefined && outcome === "answered" && (
        <Fact name="Ended by">
          <Visible text={stopWords.get(stopReason) ?? stopReason} />
        </Fact>
      )}
      {evidence !== undefined && <Fact name="Evidence">{evidenceWords[evidence] ?? evidence}</Fact>}
      <Fact name={startedAt === undefined ? "Written" : "Sent"}>
        <Time at={startedAt ?? endedAt} />
      </Fact>
      {totalMs !== undefined && <Fact name="Took">{msWords(totalMs)}</Fact>}
      {toolsMs !== undefined && <Fact name="Its tools">{msWords(toolsMs)}, until the next request</Fact>}
    </dl>
  );
}

const stopWords: ReadonlyMap<string, string> = new Map([
  ["stop", "its end"],
  ["toolUse", "calls of tools"],
  ["length", "the model's limit of tokens"],
]);

function TokenTable({ request: { usage } }: { readonly request: ShownRequest }): JSX.Element {
  if (usage === undefined) return <p class="quiet">The provider has reported no tokens and no cost.</p>;
  return (
    <table class="plain small-figures">
      <caption class="unseen">Tokens and cost</caption>
      <tbody>
        {tokenKinds.map((kind) => (
          <tr key={kind}>
            <th scope="row">{kindWords[kind]}</th>
            <td class="number">{wholeCount(usage[kind])}</td>
            <td class="number">
              <Usd value={usage.cost[kind]} />
            </td>
          </tr>
        ))}
        <tr class="sum">
          <th scope="row">together</th>
          <td class="number">{wholeCount(usage.totalTokens)}</td>
          <td class="number">
            <Usd value={usage.cost.total} />
          </td>
        </tr>
      </tbody>
    </table>
  );
}

interface PushesProps {
  readonly open: OpenSession;
  readonly deliveryIds: readonly string[];
}

function Pushes({ open, deliveryIds }: PushesProps): JSX.Element | null {
  if (deliveryIds.length === 0) return null;
  return (
    <>
      <h3>Pushes in it</h3>
      <ul class="labels">
        {deliveryIds.map((deliveryId) => (
          <li key={deliveryId} class="tag" title={deliveryId}>
            <bdi>{open.conversation.delivery(deliveryId)?.customType ?? deliveryId}</bdi>
          </li>
        ))}
      </ul>
    </>
  );
}

function Changes({
  changes,
  isFirst,
}: {
  readonly changes: readonly string[];
  readonly isFirst: boolean;
}): JSX.Element {
  return (
    <>
      <h3>Since the one before</h3>
      {changes.length === 0 ? (
        <p class="quiet">{isFirst ? "There is none before it here." : "Nothing that is known."}</p>
      ) : (
        <ul class="changes">
          {changes.map((change) => (
            <li key={change}>{change}</li>
          ))}
        </ul>
      )}
    </>
  );
}

function changesOf(request: ShownRequest, before: ShownRequest | undefined): readonly string[] {
  if (before === undefined) return [];
  const { model, usage, lost, pauseMs, live } = request;
  const changes: string[] = [];
  if (before.kind !== "answer") changes.push(`Between them: ${kindOf(before)}.`);
  if (before.outcome === "failed" && (live?.attempt ?? 1) > 1)
    changes.push("pi sent it again, because the one before failed.");
  if (pauseMs !== undefined) changes.push(`A pause of ${msWords(pauseMs)}.`);
  if (model !== undefined && before.model !== undefined && model !== before.model)
    changes.push(`The model: ${modelName(before.model)} before, ${modelName(model)} now.`);
  if (usage !== undefined && before.usage !== undefined) {
    const grown = inputOf(usage) - inputOf(before.usage);
    if (grown !== 0)
      changes.push(`The provider read ${shortCount(Math.abs(grown))} tokens ${grown > 0 ? "more" : "less"}.`);
  }
  if (lost !== undefined) {
    const why = lost.cause === undefined ? "; why is not known here" : `: ${causeWords(lost.cause)}`;
    changes.push(`It read ${shortCount(lost.tokens)} tokens less from the cache than were there${why}.`);
  }
  if (live !== undefined && before.live !== undefined) changes.push(...liveChanges(live, before.live));
  return changes;
}

type Live = NonNullable<ShownRequest["live"]>;

function liveChanges(live: Live, before: Live): readonly string[] {
  const messages = live.messageCount - before.messageCount;
  const isSame = live.payloadSha256 !== undefined && live.payloadSha256 === before.payloadSha256;
  const bytes =
    live.payloadBytes === undefined || before.payloadBytes === undefined ? 0 : live.payloadBytes - before.payloadBytes;
  return [
    ...(messages === 0
      ? []
      : [`${Math.abs(messages)} message${Math.abs(messages) === 1 ? "" : "s"} ${messages > 0 ? "more" : "fewer"}.`]),
    ...(isSame ? ["The same payload."] : []),
    ...(bytes === 0 ? [] : [`Its payload is ${sizeWords(Math.abs(bytes))} ${bytes > 0 ? "larger" : "smaller"}.`]),
  ];
}

function inputOf({ input, cacheRead, cacheWrite }: NonNullable<ShownRequest["usage"]>): number {
  return input + cacheRead + cacheWrite;
}

const partWords: Readonly<Record<keyof Composition, string>> = {
  system: "system prompt",
  tools: "definitions of tools",
  user: "messages of users",
  assistant: "answers",
  thinking: "thoughts",
  toolCalls: "calls of tools",
  toolResults: "results of tools",
  bash: "commands of users",
  summaries: "summaries",
  pushes: "pushes",
  custom: "extensions",
  images: "images",
};

interface MadeOfProps {
  readonly composition: Composition | undefined;
  readonly before: Composition | undefined;
}

/** What fills the request, the largest first. */
function MadeOf({ composition, before }: MadeOfProps): JSX.Element | null {
  if (composition === undefined) return null;
  const parts = (Object.keys(partWords) as (keyof Composition)[])
    .flatMap((kind) => {
      const characters = composition[kind];
      return characters === undefined ? [] : [{ kind, characters, grown: characters - (before?.[kind] ?? 0) }];
    })
    .sort((one, other) => other.characters - one.characters);
  const sum = parts.reduce((total, { characters }) => total + characters, 0);
  return (
    <table class="plain small-figures">
      <caption>Made of, in characters</caption>
      <tbody>
        {parts.map(({ kind, characters, grown }) => (
          <tr key={kind}>
            <th scope="row">{partWords[kind]}</th>
            <td class="number">{wholeCount(characters)}</td>
            <td class="number">{Math.round((100 * characters) / sum)} %</td>
            <td class="number quiet">{before === undefined || grown === 0 ? "" : signed(grown)}</td>
          </tr>
        ))}
        <tr class="sum">
          <th scope="row">together</th>
          <td class="number">{wholeCount(sum)}</td>
          <td />
          <td />
        </tr>
      </tbody>
    </table>
  );
}

function signed(count: number): string {
  return `${count > 0 ? "+" : "−"}${shortCount(Math.abs(count))}`;
}

function LiveFacts({ request: { live, untilAnswerMs } }: { readonly request: ShownRequest }): JSX.Element {
  return (
    <>
      <h3>Known only live</h3>
      {live === undefined ? (
        <p class="quiet">
          Attempt, size, hash and the time to the answer are not stored. This page shows them for requests that are made
          while it shows the session.
        </p>
      ) : (
        <dl class="facts">
          <Fact name="Attempt">{live.attempt}</Fact>
          <Fact name="Until the answer">
            {untilAnswerMs === undefined ? <span class="quiet">not known</span> : msWords(untilAnswerMs)}
          </Fact>
          <Fact name="Messages">
            <Count value={live.messageCount} />
          </Fact>
          <Fact name="Size">
            {live.payloadBytes === undefined ? <span class="quiet">not known</span> : sizeWords(live.payloadBytes)}
          </Fact>
          <Fact name="SHA-256">
            {live.payloadSha256 === undefined ? (
              <span class="quiet">not known</span>
            ) : (
              <span class="mono" title={live.payloadSha256}>
                {live.payloadSha256.slice(0, 12)}…
              </span>
            )}
          </Fact>
          {live.end?.kind === "failed" && live.end.willRetry !== undefined && (
            <Fact name="Then">{live.end.willRetry ? "pi tries again" : "pi does not try again"}</Fact>
          )}
        </dl>
      )}
    </>
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
