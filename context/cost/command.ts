import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { AskRefused, type HostPort } from "../../extension/engine-port.ts";
import { messageOf } from "../../extension/pi-types.ts";
import { usd } from "../../protocol/number-text.ts";
import type { CostActions } from "./actions.ts";
import type { CostFold } from "./fold.ts";
import { phaseFacts } from "./report.ts";
import type { CostNeeds, CostTracker } from "./tracker.ts";

const usage =
  "/cost, /cost start LABEL [$USD [warn|stop]], /cost end [LABEL], /cost checkpoint LABEL, /cost budget USD|none [warn|stop]";

/**
 * Registers the command `/cost`, unless another extension has it: with two commands of the same name pi recognises
 * neither, and would send the text to the model.
 */
export function addCostCommand(
  { onSession }: Pick<HostPort, "onSession">,
  pi: CostNeeds["pi"],
  context: Omit<CommandContext, "ctx">,
): void {
  let isThere = false;
  onSession(() => {
    if (isThere || pi.getCommands().some(({ name }) => /^cost(?::\d+)?$/.test(name))) return;
    isThere = true;
    pi.registerCommand("cost", {
      description: "Show the cost of the session, its phases and its budget.",
      handler: async (text: string, ctx: ExtensionContext) => {
        try {
          ctx.ui.notify(runCommand(text.trim(), { ...context, ctx }), "info");
        } catch (thrown) {
          const words = thrown instanceof AskRefused ? thrown.message : `It failed: ${messageOf(thrown)}`;
          ctx.ui.notify(words, "error");
        }
      },
    });
  }, "cost");
}

interface CommandContext {
  readonly actions: CostActions;
  readonly tracker: CostTracker;
  readonly ctx: ExtensionContext;
}

/** Runs the command, and returns the answer for people. */
function runCommand(text: string, { actions, tracker, ctx }: CommandContext): string {
  const [, verb = "", rest = ""] = /^(\S*)\s*(.*)$/s.exec(text) ?? [];
  if (verb === "") return overview(tracker.update(ctx), tracker.rules);
  if (!tracker.rules.enabled) throw new AskRefused("invalid_params", "The part cost is off in this session.");
  switch (verb) {
    case "start": {
      const [, label = rest, budget, onBudget] = /^(.*?)\s+\$(\d+(?:\.\d+)?)(?:\s+(warn|stop))?$/s.exec(rest) ?? [];
      const { phase } = actions.startPhase({ label, budgetUsd: budget && usdOf(budget), onBudget }, ctx);
      return `Phase ${phase.path.join(" › ")} started.`;
    }
    case "end": {
      const { phase } = actions.endPhase(rest === "" ? {} : { label: rest }, ctx);
      return `Phase ${phase.path.join(" › ")} has cost ${usd(phase.usage.cost.total)}.`;
    }
    case "checkpoint": {
      const { event } = actions.checkpoint({ label: rest }, ctx);
      return `${event.label}: ${usd(event.deltaTokens.cost.total)} since the last one, ${usd(event.cumulativeCost)} in all.`;
    }
    case "budget": {
      const [, word, onBudget] = /^(none|\$?\d+(?:\.\d+)?)(?:\s+(warn|stop))?$/.exec(rest) ?? [];
      if (word === undefined) break;
      const budgetUsd = word === "none" ? undefined : usdOf(word.replace("$", ""));
      const { budget } = actions.setBudget({ budgetUsd, onBudget }, ctx);
      return budget === null
        ? "The session has no budget."
        : `The session may cost ${usd(budget.usd)}; ${usd(budget.spentUsd)} is spent.`;
    }
    default:
  }
  throw new AskRefused("invalid_params", `Usage: ${usage}`);
}

function usdOf(text: string): number {
  const value = Number(text);
  if (value > 0 && value <= 1_000_000) return value;
  throw new AskRefused("invalid_params", "A budget is more than 0 and at most 1000000 USD.");
}

function overview(fold: CostFold, rules: CostTracker["rules"]): string {
  const { whole, openPhases } = fold;
  const { totalTokens, cost } = whole.total;
  const lines = [`${usd(cost.total)}${whole.isEstimated ? " or more" : ""} for ${totalTokens} tokens.`];
  for (const [source, { cost: spent }] of Object.entries(whole.bySource()))
    lines.push(`${source}: ${usd(spent.total)}`);
  for (const phase of openPhases) {
    const { path, usage: spent } = phaseFacts(phase, rules, Date.now());
    lines.push(`Phase ${path.join(" › ")}: ${usd(spent.cost.total)}`);
  }
  for (const { phase, usd: budget, spentUsd } of fold.budgets(rules)) {
    lines.push(`Budget of ${phase === undefined ? "the session" : phase.label}: ${usd(spentUsd)} of ${usd(budget)}`);
  }
  return lines.join("\n");
}
