import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import puppeteer, { type Browser, type KeyInput, type LaunchOptions, type Page } from "puppeteer-core";
import { expect } from "vitest";
import type { Client, Params, SessionHandle } from "../../client/index.ts";
import { pathOf } from "../../scripts/lib/tiers.ts";
import { bundleWeb } from "../../scripts/lib/web-bundle.ts";

/** How long a page may take for anything: only one that hangs takes so long, also on a loaded machine. */
const patience = { timeout: 300_000, interval: 100 };

type Program = "chromium" | "firefox-esr";

const chromiumArgs = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--disable-background-networking",
  "--disable-component-update",
];

const onlyLoopback = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1";

const launchers: Readonly<Record<Program, LaunchOptions>> = {
  chromium: { browser: "chrome", pipe: true },
  // Firefox does not know all that the default view sets.
  "firefox-esr": { browser: "firefox", defaultViewport: null, args: ["--width=1200", "--height=900"] },
};

// The page of this checkout, once for all files of a worker.
await bundleWeb();

/** Has an extension ask; its command ends when all is answered. */
export function ask(session: SessionHandle, questions: readonly object[]): void {
  session.prompt(`/ask ${JSON.stringify(questions)}`).catch(() => {});
}

/** An address that opens the page once. The code is valid for minutes, because a loaded machine may need them. */
export async function consoleAddress(client: Client, options: Params<"web/open"> = {}): Promise<string> {
  const { url, code } = await client.call("web/open", { print: true, ...options });
  return `${url}#${code}`;
}

/** A headless browser with a profile of its own. */
export class ConsoleBrowser implements AsyncDisposable {
  readonly #browser: Browser;
  readonly #program: Program;
  readonly #profile: string;

  private constructor(browser: Browser, program: Program, profile: string) {
    this.#browser = browser;
    this.#program = program;
    this.#profile = profile;
  }

  /** `rules`: how host names and ports are replaced, as in Chromium's option of that name. */
  static async open(program: Program = "chromium", rules?: string): Promise<ConsoleBrowser> {
    const profile = mkdtempSync(join(tmpdir(), "browser-"));
    const home = { HOME: profile, TMPDIR: profile, XDG_CONFIG_HOME: profile, XDG_CACHE_HOME: profile };
    const executablePath = pathOf(program);
    if (executablePath === undefined) throw new Error(`${program} is missing.`);
    const browser = await puppeteer.launch({
      ...launchers[program],
      ...(program === "chromium" && { args: [...chromiumArgs, `--host-resolver-rules=${rules ?? onlyLoopback}`] }),
      executablePath,
      userDataDir: join(profile, "profile"),
      env: { ...process.env, ...home },
      timeout: patience.timeout,
      protocolTimeout: patience.timeout,
    });
    return new ConsoleBrowser(browser, program, profile);
  }

  /** Opens an address in a window of its own, which shares nothing with the others. */
  async visit(address: string, view = { width: 1440, height: 900 }): Promise<Visit> {
    const context = await this.#browser.createBrowserContext();
    const page = await context.newPage();
    page.setDefaultTimeout(patience.timeout);
    if (this.#program === "chromium") await page.setViewport(view);
    const visit = new Visit(page, new URL(address).origin);
    await visit.watch();
    await page.goto(address);
    return visit;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close();
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}

/** One window with the page. */
export class Visit {
  readonly page: Page;
  readonly #origin: string;
  readonly #faults: string[] = [];

  constructor(page: Page, origin: string) {
    this.page = page;
    this.#origin = origin;
  }

  /** Notes what no page may do: run foreign code, ask another host, break its own policy, throw. */
  async watch(): Promise<void> {
    const { page } = this;
    page.on("pageerror", (error) => {
      const { stack = "" } = error as Partial<Error>;
      // Firefox also reports errors of the scripts that drive it. They have no place in the page.
      if (stack.includes(this.#origin)) this.#faults.push(`error: ${stack}`);
    });
    page.on("dialog", (dialog) => {
      this.#faults.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("request", (request) => {
      const url = request.url();
      const isOwn = url.startsWith(`${this.#origin}/`) || url.startsWith(`blob:${this.#origin}/`);
      if (!isOwn) this.#faults.push(`request: ${url}`);
    });
    await page.evaluateOnNewDocument(() => {
      const reports: string[] = [];
      Object.assign(globalThis, { reports });
      document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) =>
        reports.push(`${violatedDirective}: ${blockedURI}`),
      );
    });
  }

  /** Everything that a page may not do and did. */
  async faults(): Promise<readonly string[]> {
    const reports = await this.page.evaluate(() => (globalThis as unknown as { reports: string[] }).reports);
    return [...this.#faults, ...reports];
  }

  /** The text that can be seen; `textContent` also has what is hidden. */
  text(selector = "body"): Promise<string> {
    return this.page.evaluate(
      (path) => Array.from(document.querySelectorAll<HTMLElement>(path), (found) => found.innerText).join("\n"),
      selector,
    );
  }

  /** Resolves when the text can be seen. */
  async shows(pattern: RegExp, selector?: string): Promise<void> {
    await expect.poll(() => this.text(selector), patience).toMatch(pattern);
  }

  async hides(pattern: RegExp, selector?: string): Promise<void> {
    await expect.poll(() => this.text(selector), patience).not.toMatch(pattern);
  }

  /** Resolves when the function returns a true value in the page. */
  async holds(condition: () => unknown): Promise<void> {
    await expect.poll(() => this.page.evaluate(condition), patience).toBeTruthy();
  }

  /** Clicks what has this accessible name. */
  async click(name: string): Promise<void> {
    await this.page.locator(`::-p-aria(${name})`).click();
  }

  /** Clicks an element when it is there. */
  async clickOn(selector: string): Promise<void> {
    await this.page.locator(selector).click();
  }

  /** Resolves when the page was drawn again, with what has just changed. */
  async isDrawn(): Promise<void> {
    await this.page.evaluate(async () => {
      for (const _ of [1, 2]) await new Promise(requestAnimationFrame);
    });
  }

  async press(...keys: readonly KeyInput[]): Promise<void> {
    for (const key of keys) await this.page.keyboard.press(key);
  }

  async type(text: string): Promise<void> {
    await this.page.keyboard.type(text);
  }

  /** Presses Tab until what has the focus has this name. */
  async tabTo(name: RegExp): Promise<void> {
    const focused = (): Promise<string> =>
      this.page.evaluate(() => {
        const focused = document.activeElement as HTMLInputElement | null;
        return focused?.getAttribute("aria-label") ?? focused?.labels?.[0]?.innerText ?? focused?.innerText ?? "";
      });
    for (let presses = 0; presses < 200; presses += 1) {
      if (name.test(await focused())) return;
      await this.press("Tab");
    }
    throw new Error(`Tab does not reach ${name}; it ends at ${await focused()}.`);
  }

  /** Keeps a picture if the environment asks for it: CONSOLE_SHOTS=DIRECTORY. */
  async shot(name: string): Promise<void> {
    const { CONSOLE_SHOTS: directory } = process.env;
    if (directory === undefined) return;
    mkdirSync(directory, { recursive: true });
    await this.page.screenshot({ path: join(directory, `${name}.png`) });
  }
}
