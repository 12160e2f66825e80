import { type Costs, SessionCosts } from "./costs.ts";
import type { Daemon } from "./daemon.ts";
import type { Page } from "./page.ts";
import { type RequestBodies, SubscribedBodies } from "./request-bodies.ts";
import { type Requests, SessionRequests } from "./requests.ts";
import { KnownContext, type SessionContext } from "./session-context.ts";

/** The requests of a session, what they cost, and what fills its context. */
export interface Figures {
  readonly requests: Requests;
  readonly bodies: RequestBodies;
  readonly costs: Costs;
  readonly context: SessionContext;
}

export interface FiguresOptions {
  readonly daemon: Daemon;
  readonly page: Page;
  readonly sessionId: string;
}

export class SessionFigures implements Figures {
  readonly requests: SessionRequests;
  readonly bodies: SubscribedBodies;
  readonly costs: SessionCosts;
  readonly context: KnownContext;

  constructor(options: FiguresOptions) {
    const costs = new SessionCosts(options);
    this.costs = costs;
    this.bodies = new SubscribedBodies(options);
    this.context = new KnownContext(options);
    this.requests = new SessionRequests({ ...options, onSpent: () => costs.changed() });
  }

  close(): void {
    this.requests.close();
    this.bodies.close();
    this.costs.close();
    this.context.end();
  }
}
