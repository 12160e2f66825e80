import { type Costs, SessionCosts } from "./costs.ts";
import type { Daemon } from "./daemon.ts";
import type { Page } from "./page.ts";
import { type RequestBodies, SubscribedBodies } from "./request-bodies.ts";
import { type Requests, SessionRequests } from "./requests.ts";

/** The requests of a session, and what they cost. */
export interface Figures {
  readonly requests: Requests;
  readonly bodies: RequestBodies;
  readonly costs: Costs;
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

  constructor(options: FiguresOptions) {
    const costs = new SessionCosts(options);
    this.costs = costs;
    this.bodies = new SubscribedBodies(options);
    this.requests = new SessionRequests({ ...options, onSpent: () => costs.changed() });
  }

  close(): void {
    this.requests.close();
    this.bodies.close();
    this.costs.close();
  }
}
