/** Whether a model of pi has any price in its field `cost`: USD per million tokens. */
export function hasAnyPrice(cost: unknown): boolean {
  return (
    typeof cost === "object" &&
    cost !== null &&
    Object.values(cost).some((price) => typeof price === "number" && price > 0)
  );
}

/** Why a budget cannot be enforced. `model`: as `provider/id`; absent: no model is selected. */
export function unpricedReason(model: string | undefined): string {
  const why = model === undefined ? "No model is selected" : `The model ${model} has no prices`;
  return `${why}, so a budget in USD cannot be enforced.`;
}
