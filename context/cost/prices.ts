import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { hasAnyPrice, unpricedReason } from "../../protocol/prices.ts";

type Ctx = Pick<ExtensionContext, "model">;

/** Whether the session's model has any price. */
export function hasPrices({ model }: Ctx): boolean {
  return hasAnyPrice(model?.cost);
}

/** Returns why budgets are impossible. */
export function unpriced({ model }: Ctx): string {
  return unpricedReason(model && `${model.provider}/${model.id}`);
}
