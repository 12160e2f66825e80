import type { ExtensionContext } from "@earendil-works/pi-coding-agent";

/** Whether the model has any price. */
export function hasPrices({ model }: Pick<ExtensionContext, "model">): boolean {
  return model !== undefined && Object.values(model.cost ?? {}).some((price) => typeof price === "number" && price > 0);
}

/** Why no budget can be kept. */
export function unpriced({ model }: Pick<ExtensionContext, "model">): string {
  if (model === undefined) return "There is no model, so that no budget in USD can be kept.";
  return `${model.provider}/${model.id} has no prices, so that no budget in USD can be kept.`;
}
