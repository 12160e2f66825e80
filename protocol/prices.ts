/** Whether a model of pi's has any price, by its field `cost`: USD for a million tokens. */
export function hasAnyPrice(cost: unknown): boolean {
  return (
    typeof cost === "object" &&
    cost !== null &&
    Object.values(cost).some((price) => typeof price === "number" && price > 0)
  );
}

/** Why no budget can be kept. `model`: as `provider/id`; absent: there is none. */
export function unpricedReason(model: string | undefined): string {
  const why = model === undefined ? "There is no model" : `The model ${model} has no prices`;
  return `${why}, so that no budget in USD can be kept.`;
}
