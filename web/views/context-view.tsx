import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { limitsOf, partsOf } from "../state/context-facts.ts";
import type { Figures } from "../state/figures.ts";
import type { OpenSession } from "../state/open-session.ts";
import type { ContextAction, Inspected, LastKnown, Pruned } from "../state/session-context.ts";
import { Visible } from "../text/visible.tsx";
import { usePage } from "./context.ts";
import {
  ContextBar,
  ContextPatterns,
  ContextSign,
  contextSentence,
  contextWords,
  WindowBar,
} from "./context-chart.tsx";
import { leadToMessage } from "./lead.ts";
import { ShareBar } from "./tape-parts.tsx";
import { Count, shareWords, wholeCount } from "./widgets/figures.tsx";
import { Icon } from "./widgets/icon.tsx";
import { Age, Time } from "./widgets/time.tsx";

interface ContextViewProps {
  readonly open: OpenSession;
  readonly figures: Figures;
}

/** What fills the context of a session, as pi last said, and how to make it smaller. */
export function ContextView({ open, figures }: ContextViewProps): JSX.Element {
  const { looks } = usePage();
  const { context } = figures;
  useEffect(() => context.look(), [context]);
  const said = useSignal("");
  const { value: inspected } = context.inspected;
  const { value: pruned } = context.pruned;
  const { value: isAsleep } = open.choices.isAsleep;
  const show = (action: ContextAction) => () => {
    context.prepared.value = action;
  };
  const ask = async (): Promise<void> => {
    const outcome = await context.ask(isAsleep);
    said.value = outcome.kind === "refused" ? outcome.words : "";
  };
  const askButton = (
    <button type="button" class="button" disabled={context.isAsking.value} onClick={() => void ask()}>
      <Icon name={context.isAsking.value ? "wait" : "again"} />
      {context.isAsking.value ? "Asking pi…" : isAsleep ? "Start pi and ask it" : "Ask pi now"}
    </button>
  );
  const compactButton = (
    <button type="button" class="button" onClick={show({ kind: "compact" })}>
      Compact…
    </button>
  );
  const why = (
    <p class="is-bad" role="alert">
      {said.value}
    </p>
  );
  if (inspected.kind === "asking") return <p class="quiet">Reading what is known…</p>;
  if (inspected.kind !== "known") {
    return (
      <div class="empty">
        <h2>What fills the context is not known yet</h2>
        {inspected.kind === "refused" && <p class="is-bad">{inspected.words}</p>}
        <p>
          Only pi can tell the system prompt, tools, messages and outputs that it sends.{" "}
          {isAsleep ? "It sleeps: asking starts it." : "Asking changes nothing."}
        </p>
        <div class="row-of-buttons">
          {askButton}
          {compactButton}
        </div>
        {why}
      </div>
    );
  }
  const known = inspected.value;
  const pruning = pruned.kind === "known" ? pruned.value : undefined;
  return (
    <div class="costs context-view">
      <ContextPatterns />
      <section>
        <Head inspected={known} pruning={pruning} />
        <div class="context-asked">
          <Asked inspected={known} />
          {askButton}
          {compactButton}
        </div>
        {why}
      </section>
      <Kinds window={known.window} />
      <Largest
        window={known.window}
        lead={(entryId) => void leadToMessage(looks, open.conversation, { entryId, startedAt: undefined })}
      />
      <Removed window={known.window} />
      <Blocks pruned={pruned} show={show} />
    </div>
  );
}

interface HeadProps {
  readonly inspected: Inspected;
  readonly pruning: Pruned | undefined;
}

function Head({ inspected, pruning }: HeadProps): JSX.Element {
  const { window } = inspected;
  const limits = limitsOf(inspected, pruning);
  return (
    <>
      <h2>Window</h2>
      <p class="cost-total">
        <strong>
          <Count value={window.used} />
        </strong>{" "}
        {window.tokens === null ? (
          "tokens; the size of the model's window is not known"
        ) : (
          <>
            of <Count value={window.tokens} /> tokens, {shareWords(window.used / window.tokens)}
          </>
        )}
      </p>
      {window.tokens !== null && <WindowBar used={window.used} tokens={window.tokens} limits={limits} />}
      {limits.length > 0 && (
        <ul class="context-limits">
          {limits.map(({ what, tokens }) => (
            <li key={what}>
              <Count value={tokens} /> <span class="quiet">{limitWords[what]}</span>
            </li>
          ))}
        </ul>
      )}
      {pruning?.off !== undefined && (
        <p class="is-warn">
          <Icon name="failed" /> The next request is not pruned: {pruning.off}
        </p>
      )}
    </>
  );
}

const limitWords = {
  reminds: "the model may be reminded to compress",
  tells: "the model is told to compress",
  compacts: "pi summarises the conversation",
} as const;

/** How old the answer is. */
function Asked({ inspected: { cached, cachedAt, outdated } }: { readonly inspected: Inspected }): JSX.Element {
  return (
    <p class={outdated === true ? "is-warn" : "quiet"}>
      {cached !== true || cachedAt === undefined ? (
        "Estimates, as pi has just said."
      ) : (
        <>
          Estimates, as pi said at <Time at={cachedAt} /> (<Age at={cachedAt} />
          ).
        </>
      )}
      {outdated === true && " The session has changed since."}
    </p>
  );
}

function Kinds({ window }: { readonly window: Inspected["window"] }): JSX.Element {
  const parts = partsOf(window);
  return (
    <section>
      <h2>What fills it</h2>
      <p class="context-sentence">{contextSentence(parts, window.tokens)}</p>
      <ContextBar parts={parts} />
      <Table head={["Content", "Tokens", "Share"]}>
        {parts.map(({ kind, tokens }) => (
          <tr key={kind}>
            <th scope="row">
              <ContextSign kind={kind} />
              {contextWords[kind]}
            </th>
            <td class="number">
              <Count value={tokens} />
            </td>
            <td class="number">{shareWords(tokens / window.used)}</td>
            <td class="bar-cell">
              <ShareBar share={tokens / window.used} />
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

interface LargestProps {
  readonly window: Inspected["window"];
  lead(entryId: string): void;
}

const shownAtFirst = 8;

function Largest({ window: { largest, used }, lead }: LargestProps): JSX.Element {
  const isWhole = useSignal(false);
  if (largest === undefined || largest.length === 0) {
    return (
      <section>
        <h2>Largest messages</h2>
        <p class="quiet">
          {largest === undefined ? "Not known: an older pi has answered." : "There are no messages yet."}
        </p>
      </section>
    );
  }
  return (
    <section>
      <h2>Largest messages</h2>
      <Table head={["Message", "Tokens", "Share"]}>
        {largest.slice(0, isWhole.value ? undefined : shownAtFirst).map(({ entryId, kind, tool, at, tokens }) => (
          <tr key={entryId}>
            <th scope="row">
              <button type="button" class="link" onClick={() => lead(entryId)}>
                {messageWords(kind)}
                {tool !== undefined && (
                  <>
                    {" of "}
                    <Visible text={tool} />
                  </>
                )}
              </button>{" "}
              <span class="quiet">
                <Time at={at} />
              </span>
            </th>
            <td class="number">
              <Count value={tokens} />
            </td>
            <td class="number">{shareWords(tokens / used)}</td>
            <td class="bar-cell">
              <ShareBar share={tokens / used} />
            </td>
          </tr>
        ))}
      </Table>
      {largest.length > shownAtFirst && (
        <More
          isWhole={isWhole.value}
          count={largest.length - shownAtFirst}
          toggle={() => (isWhole.value = !isWhole.value)}
        />
      )}
    </section>
  );
}

interface MoreProps {
  readonly isWhole: boolean;
  readonly count: number;
  toggle(): void;
}

function More({ isWhole, count, toggle }: MoreProps): JSX.Element {
  return (
    <button type="button" class="link" aria-expanded={isWhole} onClick={toggle}>
      {isWhole ? "Fewer" : `${count} more`}
    </button>
  );
}

function messageWords(kind: string): string {
  return messageKinds.get(kind) ?? "Message of an extension";
}

const messageKinds: ReadonlyMap<string, string> = new Map([
  ["user", "Your message"],
  ["assistant", "Answer"],
  ["toolResults", "Result"],
  ["pushes", "Push"],
  ["bash", "Command"],
  ["summaries", "Summary"],
]);

function Removed({ window: { masked } }: { readonly window: Inspected["window"] }): JSX.Element {
  const isWhole = useSignal(false);
  const newest = masked.toReversed();
  const tokens = masked.reduce((sum, one) => sum + one.tokens, 0);
  return (
    <section>
      <h2>Outputs that left it</h2>
      {masked.length === 0 ? (
        <p class="quiet">None was masked, shortened or pruned.</p>
      ) : (
        <>
          <p>
            {masked.length === 1 ? "One output" : `${wholeCount(masked.length)} outputs`}, about{" "}
            <Count value={tokens} /> tokens, left the context. The model can recall{" "}
            {masked.length === 1 ? "it" : "each"}.
          </p>
          <Table head={["Output", "Tokens", "Why it left"]} hasBars={false}>
            {newest.slice(0, isWhole.value ? undefined : shownAtFirst).map(({ recallId, tool, tokens: size, part }) => (
              <tr key={recallId}>
                <th scope="row">
                  <Visible text={tool} />
                </th>
                <td class="number">
                  <Count value={size} />
                </td>
                <td>
                  <Visible text={partWords(part)} />
                </td>
              </tr>
            ))}
          </Table>
          {newest.length > shownAtFirst && (
            <More
              isWhole={isWhole.value}
              count={newest.length - shownAtFirst}
              toggle={() => (isWhole.value = !isWhole.value)}
            />
          )}
        </>
      )}
    </section>
  );
}

/** Why it left. */
function partWords(part: string): string {
  return reasons.get(part) ?? `pruned by ${part}`;
}

const reasons: ReadonlyMap<string, string> = new Map([
  ["masking", "masked because of its age"],
  ["toolResults", "shortened when it came"],
  ["deduplication", "a later output says the same"],
  ["purgeErrors", "its call had failed"],
  ["sweep", "taken out by hand"],
]);

interface BlocksProps {
  readonly pruned: LastKnown<Pruned>;
  show(action: ContextAction): () => void;
}

function Blocks({ pruned, show }: BlocksProps): JSX.Element {
  return (
    <section>
      <h2>Compressed blocks</h2>
      {pruned.kind === "refused" && (
        <>
          <p class="quiet">Without pruning there are no blocks, and nothing can be compressed or taken out here.</p>
          <p class="quiet">{pruned.words}</p>
        </>
      )}
      {pruned.kind === "unknown" && <p class="quiet">Not known yet: pi has not been asked.</p>}
      {pruned.kind === "known" && <KnownBlocks pruned={pruned.value} show={show} />}
    </section>
  );
}

function KnownBlocks({ pruned, show }: { readonly pruned: Pruned; show: BlocksProps["show"] }): JSX.Element {
  const { blocks, candidates, mode } = pruned;
  const current = blocks.filter(({ state }) => state === "active" || state === "inactive").toReversed();
  const taken = blocks.length - current.length;
  const [candidate] = candidates;
  return (
    <>
      <p class={current.length === 0 ? "quiet" : ""}>
        {current.length === 0
          ? "There are none."
          : `${current.length === 1 ? "One block" : `${current.length} blocks`}.`}
        {taken > 0 && ` ${taken} more are part of others, or of a summary of pi.`}{" "}
        {mode === "manual" ? "The model compresses only when it is asked." : "The model decides when it compresses."}{" "}
        {candidate !== undefined &&
          `About ${wholeCount(candidates.reduce((sum, one) => sum + one.tokens, 0))} tokens could be compressed now.`}
      </p>
      {current.length > 0 && (
        <ul class="context-blocks">
          {current.map((block) => {
            const { id, topic, state, tokensBefore, tokensAfter, isShortened } = block;
            return (
              <li key={id}>
                <div>
                  <strong>
                    <Visible text={topic} />
                  </strong>
                  <p class="quiet">
                    {state === "active"
                      ? `A summary of ${wholeCount(tokensAfter)} tokens replaces ${wholeCount(tokensBefore)}.`
                      : `Open: its ${wholeCount(tokensBefore)} tokens are in the context.`}
                    {isShortened && " The context has only the beginning of the summary."}
                  </p>
                </div>
                <button
                  type="button"
                  class="button small"
                  onClick={show(state === "active" ? { kind: "open", block } : { kind: "close", block })}
                >
                  {state === "active" ? "Open…" : "Compress again…"}
                </button>
              </li>
            );
          })}
        </ul>
      )}
      <div class="row-of-buttons">
        <button type="button" class="button" onClick={show({ kind: "compress" })}>
          Compress…
        </button>
        <button type="button" class="button" onClick={show({ kind: "sweep" })}>
          Take outputs out…
        </button>
      </div>
    </>
  );
}

interface TableProps {
  readonly head: readonly [string, string, string];
  /** Whether the last column is a bar. Default: it is. */
  readonly hasBars?: boolean;
  readonly children: ComponentChildren;
}

function Table({ head: [first, second, third], hasBars = true, children }: TableProps): JSX.Element {
  return (
    <section class="table-frame" tabIndex={0} aria-label={`Table: ${[first, second, third].join(", ")}`}>
      <table class="plain costs-table">
        <thead>
          <tr>
            <th scope="col">{first}</th>
            <th scope="col" class="number">
              {second}
            </th>
            <th scope="col" class={hasBars ? "number" : ""}>
              {third}
            </th>
            {hasBars && <td class="bar-cell" />}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}
