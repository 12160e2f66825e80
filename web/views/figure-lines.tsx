import type { ComponentChildren, JSX } from "preact";
import { windowOf } from "../state/context-facts.ts";
import type { Figures } from "../state/figures.ts";
import type { OpenSession } from "../state/open-session.ts";
import { usePage } from "./context.ts";
import { showPushesOf } from "./moves.ts";
import { Count, shareWords, Usd, usdWords } from "./widgets/figures.tsx";

interface FigureLinesProps {
  readonly open: OpenSession;
  readonly figures: Figures;
}

/** Context, cost and pushes of a session in a line each; the tabs have the rest. */
export function FigureLines({ open, figures }: FigureLinesProps): JSX.Element {
  const { looks } = usePage();
  const { value: info } = open.info;
  const { value: asked } = figures.costs.report;
  const last = figures.requests.all.value.findLast(({ usage, kind }) => kind === "answer" && usage !== undefined);
  const known = info?.summary?.contextUsage;
  const tokens = last?.usage?.totalTokens ?? known?.tokens;
  return (
    <section>
      <h2 class="unseen">Figures</h2>
      <dl class="facts">
        <Line name="Context">
          {tokens === undefined ? (
            <NotKnown />
          ) : (
            <Window tokens={tokens} size={windowOf(open.choices.model.value, last?.model, known?.contextWindow)} />
          )}
        </Line>
        <Line name="Cost">
          {asked.kind !== "known" ? (
            <NotKnown />
          ) : (
            <>
              <Usd value={asked.value.total.cost.total} />
              {asked.value.budget !== undefined && ` of ${usdWords(asked.value.budget.usd)}`}
              {asked.value.estimated && <span class="is-warn"> or more: a price is missing</span>}
            </>
          )}
        </Line>
        <Line name="Pushes">
          {info === undefined ? (
            <NotKnown />
          ) : (
            <button type="button" class="link" onClick={() => showPushesOf(looks, open.sessionId)}>
              <span class="unseen">Pushes: </span>
              {info.pendingDeliveries === 0 ? "none waits" : `${info.pendingDeliveries} on the way to the model`}
            </button>
          )}
        </Line>
      </dl>
    </section>
  );
}

/** How much of the window the last answer, with all that was sent for it, has taken. */
function Window({ tokens, size }: { readonly tokens: number; readonly size: number | undefined }): JSX.Element {
  if (size === undefined) {
    return (
      <>
        <Count value={tokens} /> tokens with the last answer
      </>
    );
  }
  return (
    <>
      <Count value={tokens} /> of <Count value={size} />, {shareWords(tokens / size)}
    </>
  );
}

function NotKnown(): JSX.Element {
  return <span class="quiet">not known yet</span>;
}

function Line({ name, children }: { readonly name: string; readonly children: ComponentChildren }): JSX.Element {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
