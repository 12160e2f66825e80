import { computed, type ReadonlySignal, signal } from "@preact/signals";
import {
  AnotherDaemonError,
  type Client,
  ConnectionClosedError,
  type ConnectionEvent,
  connectTo,
  type DaemonInfo,
} from "../../client/browser.ts";
import type { Credentials, SignIn } from "../sign-in.ts";
import type { Daemon } from "./daemon.ts";
import { outcomeOf, wordsOf } from "./outcome.ts";
import type { Tab } from "./page.ts";
import { read } from "./reading.ts";
import { PageWorkspace, type Workspace } from "./workspace.ts";

export type { Workspace } from "./workspace.ts";

/** The page's connection to its daemon. */
export type ConnectionState =
  /** Looks for a token, or makes the first connection. */
  | { readonly kind: "connecting" }
  | { readonly kind: "connected"; readonly daemon: DaemonInfo | undefined }
  /** `since`, `nextTryAt`: Unix time in milliseconds. Shown after a second. */
  | { readonly kind: "lost"; readonly since: number; readonly nextTryAt: number; readonly attempt: number }
  /** It does not come back. All that was loaded stays. The way on is always: run `pi-rpcd web`. */
  | { readonly kind: "ended"; readonly why: EndReason; readonly words: string };

/**
 * `signed_out`: there is no token. `refused`: the daemon does not take the token. `another_daemon`: another process answers
 * at the address. `signed_off`: by "Sign out". `failed`: anything else.
 */
export type EndReason = "signed_out" | "refused" | "another_daemon" | "signed_off" | "failed";

/** The state of the page, and what people can do. Views read its signals and call its methods; they call nothing else. */
export interface App {
  readonly connection: ReadonlySignal<ConnectionState>;
  /** Undefined until the first connection. */
  readonly workspace: ReadonlySignal<Workspace | undefined>;
  /** For the title of the page: open questions, host and state directory. */
  readonly title: ReadonlySignal<string>;
  /** Whether single letters are commands, as the daemon's configuration says. */
  readonly hasLetterKeys: ReadonlySignal<boolean>;
  /** Ends the token and the connection. */
  signOut(): Promise<void>;
}

/** A daemon whose connection can be closed. */
export interface ConnectedDaemon extends Daemon {
  close(): Promise<unknown>;
}

export interface AppOptions {
  readonly page: Tab;
  readonly signIn: SignIn;
  readonly connect: (credentials: Credentials) => Promise<ConnectedDaemon>;
  /** Whether the daemon serves the page still: then a connection that does not open means a token that it does not take. */
  readonly isServed: () => Promise<boolean>;
}

/** The daemon closed the connection because its token has ended. */
const tokenEndedCode = 4401;
/** After so many refused connections to a daemon that serves the page, the token counts as refused. */
const maxRefused = 2;
const advice = "Run `pi-rpcd web` to open the page again.";

/** Connects to the daemon of this page. */
export function connectHere({ token, instance }: Credentials): Promise<Client> {
  return connectTo({
    url: location.origin,
    path: "/ws",
    token,
    instance,
    name: "web console",
    // The token lasts as long as its daemon.
    reconnect: { giveUpAfterMs: Number.POSITIVE_INFINITY },
  });
}

/** Whether something answers at the address of this page. */
export async function isServedHere(): Promise<boolean> {
  try {
    return (await fetch("/", { method: "HEAD" })).ok;
  } catch {
    return false;
  }
}

export class PageApp implements App {
  readonly #options: AppOptions;
  readonly #connection = signal<ConnectionState>({ kind: "connecting" });
  readonly #workspace = signal<PageWorkspace | undefined>(undefined);
  readonly #daemonTitle = signal("pi-rpcd");
  readonly hasLetterKeys = signal(true);
  readonly title: ReadonlySignal<string>;
  #daemon: ConnectedDaemon | undefined;
  #credentials: Credentials | undefined;
  #refused = 0;

  constructor(options: AppOptions) {
    this.#options = options;
    this.title = computed(() => {
      const open = this.#workspace.value?.questions.open.value ?? 0;
      return `${open === 0 ? "" : `(${open}) `}${this.#daemonTitle.value}`;
    });
  }

  get connection(): ReadonlySignal<ConnectionState> {
    return this.#connection;
  }

  get workspace(): ReadonlySignal<Workspace | undefined> {
    return this.#workspace;
  }

  /** Signs in and connects. Never rejects. */
  async start(): Promise<void> {
    const { signIn, connect, page } = this.#options;
    const signedIn = await signIn.obtain();
    if (signedIn.kind === "no_token") {
      this.#end("signed_out", `This tab has no access to the daemon. ${advice}`);
      return;
    }
    if (signedIn.kind === "refused") {
      this.#end("refused", signedIn.words);
      return;
    }
    const { credentials } = signedIn;
    this.#credentials = credentials;
    this.#daemonTitle.value = credentials.title;
    this.hasLetterKeys.value = credentials.letterKeys;
    try {
      this.#daemon = await connect(credentials);
    } catch (error) {
      await this.#notConnected(error);
      return;
    }
    const daemon = this.#daemon;
    daemon.onConnection((event) => this.#changed(event));
    const isConnected = computed(() => this.#connection.value.kind === "connected");
    const workspace = new PageWorkspace({ daemon, page, isConnected });
    this.#workspace.value = workspace;
    this.#connected();
    await workspace.start();
  }

  async signOut(): Promise<void> {
    const credentials = this.#credentials;
    const daemon = this.#daemon;
    this.#daemon = undefined;
    this.#workspace.peek()?.forget();
    this.#end("signed_off", `You have signed out. ${advice}`);
    // The token ends at the daemon also when the answer is lost.
    if (credentials !== undefined) await this.#options.signIn.signOut(credentials).catch(() => {});
    await daemon?.close();
  }

  #connected(): void {
    this.#refused = 0;
    this.#options.signIn.connected(this.#credentials);
    this.#connection.value = { kind: "connected", daemon: undefined };
    const daemon = this.#daemon;
    if (daemon === undefined) return;
    void outcomeOf(() => read(daemon, "daemon/info", {})).then((info) => {
      if (info.kind === "done" && this.#connection.value.kind === "connected")
        this.#connection.value = { kind: "connected", daemon: info.value };
    });
  }

  #changed(event: ConnectionEvent): void {
    if (this.#daemon === undefined) return;
    if (event.kind === "connected") this.#connected();
    else if (event.kind === "closed") this.#closed(event.end.error);
    else this.#lost(event);
  }

  #lost({ reason, attempt, nextTryInMs }: Extract<ConnectionEvent, { kind: "lost" }>): void {
    const { page, signIn, isServed } = this.#options;
    signIn.connected(undefined);
    if (reason instanceof ConnectionClosedError && reason.code === tokenEndedCode) {
      this.#tokenEnded();
      return;
    }
    const former = this.#connection.value;
    const since = former.kind === "lost" ? former.since : page.now();
    this.#connection.value = { kind: "lost", since, nextTryAt: page.now() + nextTryInMs, attempt };
    if (attempt < 2) return;
    void isServed().then((served) => {
      this.#refused = served ? this.#refused + 1 : 0;
      if (this.#refused >= maxRefused && this.#connection.value.kind === "lost") this.#tokenEnded();
    });
  }

  #closed(error: unknown): void {
    if (this.#connection.value.kind === "ended") return;
    if (error instanceof AnotherDaemonError) this.#anotherDaemon();
    else this.#end("failed", `The connection has ended: ${wordsOf(error)} ${advice}`);
  }

  async #notConnected(error: unknown): Promise<void> {
    if (error instanceof AnotherDaemonError) this.#anotherDaemon();
    else if (await this.#options.isServed()) this.#tokenEnded();
    else this.#end("failed", `There is no connection to the daemon: ${wordsOf(error)} ${advice}`);
  }

  #anotherDaemon(): void {
    this.#options.signIn.forget();
    this.#end("another_daemon", `Another daemon runs at this address. ${advice}`);
  }

  #tokenEnded(): void {
    this.#options.signIn.forget();
    this.#end("refused", `The daemon does not accept this tab's access. ${advice}`);
    void this.#daemon?.close();
  }

  #end(why: EndReason, words: string): void {
    this.#options.signIn.connected(undefined);
    this.#connection.value = { kind: "ended", why, words };
  }
}
