import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { Asked, CacheReport, CostReport, Costs } from "../state/costs.ts";
import type { CostUsage } from "../state/request-facts.ts";
import { tokenKinds } from "../state/tape.ts";
import { causeWords } from "./request-words.ts";
import { kindWords, ShareBar } from "./tape-parts.tsx";
import { Count, Usd, usdWords, wholeCount } from "./widgets/figures.tsx";
import { Icon } from "./widgets/icon.tsx";
import { durationWords } from "./widgets/time.tsx";

/** What the session has cost by phase, model and source, and how much of it lost caches were. */
export function CostView({ costs }: { readonly costs: Costs }): JSX.Element {
  useEffect(() => costs.look(), [costs]);
  const { value: asked } = costs.report;
  if (asked.kind === "asking") return <p class="quiet">Reading the costs…</p>;
  if (asked.kind === "refused") {
    return (
      <p class="is-bad">
        {asked.words}{" "}
        <button type="button" class="link" onClick={() => void costs.reload()}>
          Read again
        </button>
      </p>
    );
  }
  const { value: report } = asked;
  if (
    report.requests === 0 &&
    report.total.cost.total === 0 &&
    report.budget === undefined &&
    report.phases.length === 0
  ) {
    return (
      <div class="empty">
        <h2>Nothing was spent yet</h2>
        <p>What the session's requests cost will be here, as soon as a provider has reported it.</p>
      </div>
    );
  }
  return (
    <div class="costs">
      <Total report={report} />
      <Phases report={report} />
      <ByName title="By model" name="Model" all={report.byModel} whole={report.total} />
      <ByName
        title="By source"
        name="Source"
        all={report.bySource}
        whole={report.total}
        wordsOf={(source) => sourceWords[source] ?? source}
      />
      <LostCaches cache={costs.cache.value} />
    </div>
  );
}

const sourceWords: Readonly<Record<string, string>> = {
  assistant: "answers",
  tool: "tools",
  compaction: "compactions",
  branch_summary: "summaries of branches",
  cache_warm: "requests that keep the cache",
  discarded: "answers that pi discarded",
  compaction_failed: "failed compactions, in no sum",
};

function Total({ report }: { readonly report: CostReport }): JSX.Element {
  const { total, requests, estimated, budget } = report;
  return (
    <section>
      <h2>In all</h2>
      <p class="cost-total">
        <strong>
          <Usd value={total.cost.total} />
        </strong>{" "}
        for {wholeCount(total.totalTokens)} tokens in {wholeCount(requests)} request{requests === 1 ? "" : "s"} whose
        use was reported
      </p>
      {estimated && (
        <p class="is-warn">
          <Icon name="failed" /> A price was missing, so it has cost more than this.
        </p>
      )}
      {budget !== undefined && <BudgetLine budget={budget} />}
      <Table head={["Tokens", "Number", "Cost"]}>
        {tokenKinds.map((kind) => (
          <tr key={kind}>
            <th scope="row">{kindWords[kind]}</th>
            <td class="number">{wholeCount(total[kind])}</td>
            <td class="number">
              <Usd value={total.cost[kind]} />
            </td>
            <td class="bar-cell">
              <ShareBar share={shareOf(total.cost[kind], total.cost.total)} />
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

function BudgetLine({ budget }: { readonly budget: NonNullable<CostReport["budget"]> }): JSX.Element {
  const { usd, spentUsd, warnAt, onBudget } = budget;
  const isSpent = spentUsd >= usd;
  const isNear = spentUsd >= usd * warnAt;
  const then = onBudget === "stop" ? "Then the next prompt is refused." : "Then a warning is sent; nothing is stopped.";
  return (
    <div class="budget">
      <ShareBar share={spentUsd / usd} markAt={warnAt} tone={isSpent ? "bad" : isNear ? "warn" : "accent"} />
      <p class={isSpent ? "is-bad" : isNear ? "is-warn" : ""}>
        {isNear && <Icon name="failed" />}{" "}
        {isSpent ? "The budget is spent: " : isNear ? "The budget is nearly spent: " : "Budget: "}
        {usdWords(spentUsd)} of {usdWords(usd)}. It warns at {usdWords(usd * warnAt)}. {then}
      </p>
    </div>
  );
}

function Phases({ report: { phases, total } }: { readonly report: CostReport }): JSX.Element {
  if (phases.length === 0) {
    return (
      <section>
        <h2>By phase</h2>
        <p class="quiet">The session has no phases. A client, a tool or an extension can begin them.</p>
      </section>
    );
  }
  return (
    <section>
      <h2>By phase</h2>
      <Table head={["Phase", "Requests", "Tokens", "Cost", "Time"]}>
        {phases.map(({ label, path, isOpen, usage, requests, wallMs, budget }, index) => (
          <tr key={index}>
            <th scope="row" style={{ paddingInlineStart: `${(path.length - 1) * 14}px` }}>
              <bdi>{label}</bdi>
              {isOpen && <span class="is-accent"> open</span>}
              {budget !== undefined && (
                <small class={budget.spentUsd >= budget.usd ? "is-bad" : "quiet"}>
                  {budget.spentUsd >= budget.usd ? "its budget is spent: " : "of its "}
                  {usdWords(budget.usd)}
                </small>
              )}
            </th>
            <td class="number">{wholeCount(requests)}</td>
            <td class="number">
              <Count value={usage.totalTokens} />
            </td>
            <td class="number">
              <Usd value={usage.cost.total} />
            </td>
            <td class="number">{durationWords(wallMs)}</td>
            <td class="bar-cell">
              <ShareBar share={shareOf(usage.cost.total, total.cost.total)} />
            </td>
          </tr>
        ))}
      </Table>
      <p class="quiet">A phase includes the phases in it.</p>
    </section>
  );
}

interface ByNameProps {
  readonly title: string;
  readonly name: string;
  readonly all: Readonly<Record<string, CostUsage>>;
  readonly whole: CostUsage;
  readonly wordsOf?: (name: string) => string;
}

function ByName({ title, name: column, all, whole, wordsOf = (name) => name }: ByNameProps): JSX.Element {
  const entries = Object.entries(all).sort(([, a], [, b]) => b.cost.total - a.cost.total);
  return (
    <section>
      <h2>{title}</h2>
      <Table head={[column, "Tokens", "Cost"]}>
        {entries.map(([name, { totalTokens, cost }]) => (
          <tr key={name}>
            <th scope="row">
              <bdi>{wordsOf(name)}</bdi>
            </th>
            <td class="number">
              <Count value={totalTokens} />
            </td>
            <td class="number">
              <Usd value={cost.total} />
            </td>
            <td class="bar-cell">
              <ShareBar share={shareOf(cost.total, whole.cost.total)} />
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

function LostCaches({ cache }: { readonly cache: Asked<CacheReport> }): JSX.Element {
  return (
    <section>
      <h2>Lost caches</h2>
      <LostCachesTable cache={cache} />
    </section>
  );
}

function LostCachesTable({ cache }: { readonly cache: Asked<CacheReport> }): JSX.Element {
  if (cache.kind === "asking") return <p class="quiet">Reading…</p>;
  if (cache.kind === "refused") {
    return (
      <>
        <p class="quiet">It is not known what they cost: the session's part for caches has to be on.</p>
        <p class="quiet">{cache.words}</p>
      </>
    );
  }
  const causes = Object.entries(cache.value.causes).sort(([, a], [, b]) => b.missedUsd - a.missedUsd);
  const sum = causes.reduce((usd, [, { missedUsd }]) => usd + missedUsd, 0);
  if (causes.length === 0) return <p>None was lost since the session's pi was started.</p>;
  return (
    <>
      <Table head={["Cause", "Times", "Tokens", "Cost"]}>
        {causes.map(([cause, { count, missedTokens, missedUsd }]) => (
          <tr key={cause}>
            <th scope="row">
              <bdi>{causeWords(cause)}</bdi>
            </th>
            <td class="number">{wholeCount(count)}</td>
            <td class="number">
              <Count value={missedTokens} />
            </td>
            <td class="number">
              <Usd value={missedUsd} />
            </td>
            <td class="bar-cell">
              <ShareBar share={shareOf(missedUsd, sum)} tone="bad" />
            </td>
          </tr>
        ))}
      </Table>
      <p class="quiet">
        Together {usdWords(sum)} more than reading these tokens from the cache, since the session's pi was started.
        {cache.value.cached === true && " As pi last said: it sleeps."}
      </p>
    </>
  );
}

interface TableProps {
  readonly head: readonly string[];
  readonly children: ComponentChildren;
}

/** The last column is a bar, which says nothing that the numbers do not. */
function Table({ head, children }: TableProps): JSX.Element {
  return (
    <section class="table-frame" tabIndex={0} aria-label={`Table: ${head.join(", ")}`}>
      <table class="plain costs-table">
        <thead>
          <tr>
            {head.map((name, index) => (
              <th key={name} scope="col" class={index === 0 ? "" : "number"}>
                {name}
              </th>
            ))}
            <td class="bar-cell" />
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

function shareOf(part: number, whole: number): number {
  return whole > 0 ? part / whole : 0;
}
