/** Channel of `pi.events` that announces each checkpoint to other extensions as a `CostCheckpointEvent`. */
export const COST_CHANNEL = "cost_checkpoint";
