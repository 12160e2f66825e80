import type { HostPort } from "../../extension/engine-port.ts";
import { CostActions } from "./actions.ts";
import { addCostCommand } from "./command.ts";
import { type CostNeeds, CostTracker } from "./tracker.ts";

/** Cost of a session: checkpoints, phases and budgets. Only adds entries of its own to the session. */
export function addCost(
  { answer, onSession, on, boundary }: Pick<HostPort, "answer" | "onSession" | "on" | "boundary">,
  needs: CostNeeds,
): void {
  const tracker = new CostTracker(needs);
  const actions = new CostActions(tracker);
  answer("cost/checkpoint", (params, ctx) => actions.checkpoint(params, ctx));
  answer("cost/startPhase", (params, ctx) => actions.startPhase(params, ctx));
  answer("cost/endPhase", (params, ctx) => actions.endPhase(params, ctx));
  answer("cost/setBudget", (params, ctx) => actions.setBudget(params, ctx));
  answer("cost/refresh", (_params, ctx) => {
    tracker.update(ctx);
    return {};
  });
  onSession((ctx) => tracker.sessionStarted(ctx), "cost");
  boundary.contribute("cost", ({ hook, ctx }) => {
    if (hook === "turn_end") tracker.ended("turn", ctx);
    return undefined;
  });
  on("cost", "agent_settled", (_event, ctx) => tracker.ended("run", ctx));
  on("cost", "session_compact", (_event, ctx) => void tracker.update(ctx));
  on("cost", "session_tree", (_event, ctx) => void tracker.update(ctx));
  on("cost", "model_select", (_event, ctx) => tracker.checkPrices(ctx));
  needs.status.inspect((ctx) => tracker.figures(ctx));
  addCostCommand({ onSession }, needs.pi, { actions, tracker });
}
