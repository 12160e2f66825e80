import { Branching } from "./branching.ts";
import { type Costs, SessionCosts } from "./costs.ts";
import type { Daemon } from "./daemon.ts";
import type { Page } from "./page.ts";
import { type RequestBodies, SubscribedBodies } from "./request-bodies.ts";
import { type Requests, SessionRequests } from "./requests.ts";
import { KnownContext, type SessionContext } from "./session-context.ts";
import { SessionTree, type Tree } from "./session-tree.ts";

/** The requests of a session, what they cost, what fills its context, and its branches. */
export interface Figures {
  readonly requests: Requests;
  readonly bodies: RequestBodies;
  readonly costs: Costs;
  readonly context: SessionContext;
  readonly branching: Branching;
  /** It is read when it is first asked for. */
  readonly tree: Tree;
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
  readonly branching: Branching;
  readonly #options: FiguresOptions;
  #tree: SessionTree | undefined;

  constructor(options: FiguresOptions) {
    this.#options = options;
    this.branching = new Branching(options);
    const costs = new SessionCosts(options);
    this.costs = costs;
    this.bodies = new SubscribedBodies(options);
    this.context = new KnownContext(options);
    this.requests = new SessionRequests({ ...options, onSpent: () => costs.changed() });
  }

  get tree(): Tree {
    this.#tree ??= new SessionTree(this.#options);
    return this.#tree;
  }

  close(): void {
    this.#tree?.close();
    this.requests.close();
    this.bodies.close();
    this.costs.close();
    this.context.end();
  }
}
