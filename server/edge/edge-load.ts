import { BufferBudget } from "./buffer-budget.ts";
import { defaultEdgeLimits, type EdgeLimits } from "./limits.ts";
import { createQuotas, type Quotas } from "./quotas.ts";

/** The edge's limits and what its peers use of them. It exists before the edge, for handlers that report it. */
export class EdgeLoad {
  readonly limits: EdgeLimits;
  readonly quotas: Quotas;
  readonly buffers: BufferBudget;

  /** `limits` override the default ones. */
  constructor(limits: Partial<EdgeLimits> = {}) {
    this.limits = { ...defaultEdgeLimits, ...limits };
    this.quotas = createQuotas(this.limits);
    this.buffers = new BufferBudget(this.limits.maxBufferedBytesAllConnections);
  }

  /** The number of WebSocket connections and event streams. */
  get connections(): number {
    return this.quotas.connections.taken + this.quotas.eventStreams.taken;
  }

  /** The number of deltas that slow readers have lost since the start. */
  get droppedDeltas(): number {
    return this.buffers.droppedDeltas;
  }
}
