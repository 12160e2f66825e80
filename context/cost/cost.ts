import type { PartContext } from "../parts/optimisation/part-context.ts";
import { addCostCommand } from "./command.ts";
import { CostDesk } from "./desk.ts";
import { CostOrders } from "./orders.ts";

/** Cost of a session: checkpoints, phases and budgets. Only adds entries of its own to the session. */
export function addCost(host: PartContext): void {
  const desk = new CostDesk(host);
  const orders = new CostOrders(host, desk);
  host.answer("cost/checkpoint", (params, ctx) => orders.checkpoint(params, ctx));
  host.answer("cost/startPhase", (params, ctx) => orders.startPhase(params, ctx));
  host.answer("cost/endPhase", (params, ctx) => orders.endPhase(params, ctx));
  host.answer("cost/setBudget", (params, ctx) => orders.setBudget(params, ctx));
  host.answer("cost/refresh", (_params, ctx) => {
    desk.look(ctx);
    return {};
  });
  host.onSession((ctx) => desk.sessionStarted(ctx), "cost");
  host.boundary.contribute("cost", ({ hook, ctx }) => {
    if (hook === "turn_end") desk.ended("turn", ctx);
    return undefined;
  });
  host.on("cost", "agent_settled", (_event, ctx) => desk.ended("run", ctx));
  host.on("cost", "session_compact", (_event, ctx) => void desk.look(ctx));
  host.on("cost", "session_tree", (_event, ctx) => void desk.look(ctx));
  host.on("cost", "model_select", (_event, ctx) => desk.checkPrices(ctx));
  host.inspect("cost", (ctx) => desk.figures(ctx));
  addCostCommand(host, orders, desk);
}
