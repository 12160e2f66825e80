import type { Workbench } from "../parts/optimisation/workbench.ts";
import { addCostCommand } from "./command.ts";
import { CostDesk } from "./desk.ts";
import { CostOrders } from "./orders.ts";

/** What a session costs: checkpoints, phases and budgets. It only ever adds entries of its own to the session. */
export function addCost(bench: Workbench): void {
  const desk = new CostDesk(bench);
  const orders = new CostOrders(bench, desk);
  bench.answer("cost/checkpoint", (params, ctx) => orders.checkpoint(params, ctx));
  bench.answer("cost/startPhase", (params, ctx) => orders.startPhase(params, ctx));
  bench.answer("cost/endPhase", (params, ctx) => orders.endPhase(params, ctx));
  bench.answer("cost/setBudget", (params, ctx) => orders.setBudget(params, ctx));
  bench.answer("cost/refresh", (_params, ctx) => {
    desk.look(ctx);
    return {};
  });
  bench.onSession((ctx) => desk.sessionStarted(ctx), "cost");
  bench.boundary.contribute("cost", ({ hook, ctx }) => {
    if (hook === "turn_end") desk.ended("turn", ctx);
    return undefined;
  });
  bench.on("cost", "agent_settled", (_event, ctx) => desk.ended("run", ctx));
  bench.on("cost", "session_compact", (_event, ctx) => void desk.look(ctx));
  bench.on("cost", "session_tree", (_event, ctx) => void desk.look(ctx));
  bench.on("cost", "model_select", (_event, ctx) => desk.checkPrices(ctx));
  bench.inspect("cost", (ctx) => desk.figures(ctx));
  addCostCommand(bench, orders, desk);
}
