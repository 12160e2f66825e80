/** The channel of `pi.events` on which other extensions hear of each checkpoint, as its `CostCheckpointEvent`. */
export const COST_CHANNEL = "cost_checkpoint";
