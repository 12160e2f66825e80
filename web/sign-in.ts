/** What a tab needs to connect. */
export interface Credentials {
  readonly token: string;
  /** Names the process of the daemon that gave the token. */
  readonly instance: string;
  /** Names the daemon, for the title of the page. */
  readonly title: string;
  /** Whether single letters are commands. */
  readonly letterKeys: boolean;
}

export type SignedIn =
  | { readonly kind: "signed_in"; readonly credentials: Credentials }
  | { readonly kind: "no_token" }
  | { readonly kind: "refused"; readonly words: string };

/** What signing in uses of a browser. */
export interface SignInBrowser {
  /** With `#` and a code, if there is one. */
  readonly fragment: string;
  /** Takes the fragment out of the address, so that nobody copies it. */
  clearAddress(): void;
  readonly storage: Pick<Storage, "getItem" | "setItem" | "removeItem">;
  readonly channel: Pick<BroadcastChannel, "postMessage" | "addEventListener" | "removeEventListener">;
  post(path: string, body: unknown, token?: string): Promise<Response>;
}

const key = "pi-rpcd.credentials";
/** How long the other tabs have to answer, in milliseconds. */
const askMs = 300;
const codePattern = /^#([A-Za-z0-9_-]{20,256})$/;

export function thisBrowser(): SignInBrowser {
  return {
    fragment: location.hash,
    clearAddress: () => history.replaceState(null, "", location.pathname),
    storage: sessionStorage,
    channel: new BroadcastChannel("pi-rpcd"),
    post: (path, body, token) =>
      fetch(path, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify(body),
      }),
  };
}

/** Gets a token for this tab: by the code in the address, else from its storage, else from another tab. */
export class SignIn {
  readonly #browser: SignInBrowser;
  /** What this tab gives to others: only while it is connected. */
  #given: Credentials | undefined;

  constructor(browser: SignInBrowser) {
    this.#browser = browser;
    browser.channel.addEventListener("message", ({ data }) => {
      const id = idOf(data, "ask");
      if (id !== undefined && this.#given !== undefined)
        browser.channel.postMessage({ kind: "give", id, credentials: this.#given });
    });
  }

  /** Nothing else of the address is read. */
  async obtain(): Promise<SignedIn> {
    const code = codePattern.exec(this.#browser.fragment)?.[1];
    if (this.#browser.fragment !== "") this.#browser.clearAddress();
    if (code !== undefined) return await this.#exchange(code);
    const credentials = this.#stored() ?? (await this.#askOthers());
    if (credentials === undefined) return { kind: "no_token" };
    this.#keep(credentials);
    return { kind: "signed_in", credentials };
  }

  /** Says whether this tab is connected with what {@link obtain} returned. */
  connected(credentials: Credentials | undefined): void {
    this.#given = credentials;
  }

  /** Deletes the token from this tab: the daemon does not take it, or it has ended. */
  forget(): void {
    this.#given = undefined;
    this.#browser.storage.removeItem(key);
  }

  /** Ends the token at the daemon, for all tabs. */
  async signOut({ token }: Credentials): Promise<void> {
    this.forget();
    await this.#browser.post("/sign-out", {}, token);
  }

  async #exchange(code: string): Promise<SignedIn> {
    let words = "The daemon does not answer.";
    try {
      const response = await this.#browser.post("/exchange", { code });
      const answer: unknown = await response.json();
      const credentials = response.ok ? credentialsIn(answer) : undefined;
      if (credentials !== undefined) {
        this.#keep(credentials);
        return { kind: "signed_in", credentials };
      }
      words = detailIn(answer) ?? `The daemon refused the code (${response.status}).`;
    } catch {
      // No answer, or not JSON.
    }
    return { kind: "refused", words };
  }

  #keep(credentials: Credentials): void {
    this.#browser.storage.setItem(key, JSON.stringify(credentials));
  }

  #stored(): Credentials | undefined {
    try {
      return credentialsIn(JSON.parse(this.#browser.storage.getItem(key) ?? "null"));
    } catch {
      return undefined;
    }
  }

  #askOthers(): Promise<Credentials | undefined> {
    const { channel } = this.#browser;
    const id = crypto.randomUUID();
    return new Promise((resolve) => {
      const end = (credentials: Credentials | undefined): void => {
        clearTimeout(timer);
        channel.removeEventListener("message", onMessage);
        resolve(credentials);
      };
      const onMessage = ({ data }: MessageEvent): void => {
        if (idOf(data, "give") === id) end(credentialsIn((data as { readonly credentials?: unknown }).credentials));
      };
      const timer = setTimeout(() => end(undefined), askMs);
      channel.addEventListener("message", onMessage);
      channel.postMessage({ kind: "ask", id });
    });
  }
}

function idOf(data: unknown, kind: "ask" | "give"): string | undefined {
  const message = (data ?? {}) as { readonly kind?: unknown; readonly id?: unknown };
  return message.kind === kind && typeof message.id === "string" ? message.id : undefined;
}

function credentialsIn(value: unknown): Credentials | undefined {
  const { token, instance, title, letterKeys } = (value ?? {}) as Partial<Readonly<Record<keyof Credentials, unknown>>>;
  return typeof token === "string" && typeof instance === "string" && typeof title === "string"
    ? { token, instance, title, letterKeys: letterKeys !== false }
    : undefined;
}

/** The words of a refusal (RFC 9457). */
function detailIn(value: unknown): string | undefined {
  const { detail } = (value ?? {}) as { readonly detail?: unknown };
  return typeof detail === "string" ? detail : undefined;
}
