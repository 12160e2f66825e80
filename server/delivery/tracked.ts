import type { Delivery } from "../../protocol/delivery.ts";
import type { DeliveryInput } from "../../protocol/delivery-machine.ts";
import type { StoredPush } from "../store/deliveries.ts";

/** The open deliveries of one session, and the bytes of their pushes. */
export interface OpenOfSession {
  readonly ids: Set<string>;
  bytes: number;
}

export const nothingOpen: OpenOfSession = { ids: new Set(), bytes: 0 };

/** Why a push is withdrawn. */
export type Withdrawal = Extract<DeliveryInput, { kind: "withdrawn" }>;

export interface Tracked {
  readonly push: StoredPush;
  readonly stored: Promise<void>;
  /** Whether it is on disk; only then may it be sent. */
  isDurable: boolean;
  delivery: Delivery;
  /** The withdrawal to apply as soon as it is certain that pi does not have it. */
  withdrawal?: Withdrawal;
}
