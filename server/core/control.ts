import type { By } from "../../protocol/client-identity.ts";
import type { ControlChange, ControlPolicy, Control as ControlState } from "../../protocol/control.ts";
import { WireError } from "../../protocol/errors.ts";

export interface ControlOptions {
  readonly sessionId: string;
  readonly policy: ControlPolicy;
  readonly onPolicy: (policy: ControlPolicy) => void;
  /** Reports a change; `by` is the client whose call caused it. */
  readonly say: (control: ControlState, change: ControlChange, by: By | undefined) => void;
  /** How long a lease outlasts its client's last connection. */
  readonly graceMs: number;
}

interface Lease {
  readonly controller: By;
  readonly ttlMs: number;
  /** Milliseconds on the monotonic clock. */
  readonly endsAt: number;
  readonly timer: NodeJS.Timeout;
  /** Runs while the client has no connection. */
  grace: NodeJS.Timeout | undefined;
}

export interface Acquire {
  readonly by: By;
  readonly ttlMs: number;
  readonly takeOver: boolean;
  readonly policy: ControlPolicy | undefined;
}

/**
 * The control lease of a session. At most one client has it; it ends by the monotonic clock, so a jump of the wall
 * clock has no effect. It coordinates cooperating clients and is not a security boundary: every client may take it
 * over.
 */
export class Control {
  readonly #options: ControlOptions;
  #policy: ControlPolicy;
  #lease: Lease | undefined;

  constructor(options: ControlOptions) {
    this.#options = options;
    this.#policy = options.policy;
  }

  get state(): ControlState {
    const lease = this.#lease;
    if (lease === undefined) return { policy: this.#policy };
    const expiresAt = Math.round(Date.now() + lease.endsAt - performance.now());
    return { policy: this.#policy, controller: lease.controller, expiresAt };
  }

  /** Whether a call of this client may change the session. */
  allows(clientId: string): boolean {
    return this.#policy === "shared" || this.#isControlledBy({ clientId });
  }

  /** Throws `not_controller` when this client may not change the session. */
  check(by: By | undefined): void {
    if (this.#policy === "shared" || (by !== undefined && this.allows(by.clientId))) return;
    throw this.#refusal("The session's policy is exclusive");
  }

  /** Throws `not_controller` when another client has the lease, and `takeOver` is not set. */
  acquire({ by, ttlMs, takeOver, policy }: Acquire): ControlState {
    const former = this.#lease?.controller;
    const isOthers = former !== undefined && former.clientId !== by.clientId;
    if (isOthers && !takeOver) throw this.#refusal("The session has a controller");
    this.#take(by, ttlMs);
    const hasPolicy = policy !== undefined && policy !== this.#policy;
    if (hasPolicy) {
      this.#policy = policy;
      this.#options.onPolicy(policy);
    }
    if (isOthers) this.#say("taken_over", by);
    else if (former === undefined) this.#say("acquired", by);
    else if (hasPolicy) this.#say("policy", by);
    return this.state;
  }

  /** Throws `not_controller` when the client has no lease to release. */
  release(by: By, to: By | undefined): ControlState {
    const lease = this.#lease;
    if (lease === undefined || !this.#isControlledBy(by)) throw this.#refusal("Only the controller can release it");
    if (to === undefined) this.#end("released", by);
    else {
      this.#take(to, Math.max(1, lease.endsAt - performance.now()));
      this.#say("handed_over", by);
    }
    return this.state;
  }

  /** A client's last connection has closed: its lease ends, unless the client reconnects in time. */
  left(clientId: string): void {
    const lease = this.#lease;
    if (lease === undefined || lease.controller.clientId !== clientId) return;
    lease.grace ??= setTimeout(() => this.#end("disconnected", undefined), this.#options.graceMs).unref();
  }

  /** A client has reconnected. */
  returned(clientId: string): void {
    if (this.#lease?.controller.clientId !== clientId) return;
    clearTimeout(this.#lease.grace);
    this.#lease.grace = undefined;
  }

  /** The session is over: stops reporting. */
  close(): void {
    this.#drop();
  }

  #isControlledBy({ clientId }: Pick<By, "clientId">): boolean {
    const lease = this.#lease;
    return lease !== undefined && lease.controller.clientId === clientId && performance.now() < lease.endsAt;
  }

  #take(controller: By, ttlMs: number): void {
    this.#drop();
    const timer = setTimeout(() => this.#end("expired", undefined), ttlMs).unref();
    this.#lease = { controller, ttlMs, endsAt: performance.now() + ttlMs, timer, grace: undefined };
  }

  #end(change: ControlChange, by: By | undefined): void {
    this.#drop();
    this.#say(change, by);
  }

  #drop(): void {
    clearTimeout(this.#lease?.timer);
    clearTimeout(this.#lease?.grace);
    this.#lease = undefined;
  }

  #say(change: ControlChange, by: By | undefined): void {
    this.#options.say(this.state, change, by);
  }

  #refusal(what: string): WireError {
    const { sessionId } = this.#options;
    const { controller } = this.state;
    const who = controller === undefined ? "no client controls it" : `${nameOf(controller)} controls it`;
    const how = "Call session/acquireControl to become the controller, with takeOver: true if another client is.";
    return new WireError("not_controller", `${what}, and ${who}: ${how}`, { sessionId, ...this.state });
  }
}

function nameOf({ clientId, name }: By): string {
  return name === undefined ? clientId : `${name} (${clientId})`;
}
