import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { rolldown } from "rolldown";

/** A web server on loopback with one page, and the page's reports. */
export class Site implements AsyncDisposable {
  readonly origin: string;
  /** The page's posts to `/told`. */
  readonly told: Promise<unknown>;
  readonly #server: ReturnType<typeof createServer>;

  private constructor(server: ReturnType<typeof createServer>, told: Promise<unknown>) {
    this.#server = server;
    this.told = told;
    this.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** `order` returns the answer to the page's GET of `/order`. */
  static async open(script: string, order: () => unknown): Promise<Site> {
    const { promise: told, resolve } = Promise.withResolvers<unknown>();
    const pages: Readonly<Record<string, readonly [type: string, body: () => string]>> = {
      "/": [
        "text/html",
        () => '<!doctype html><title>page</title><body></body><script type="module" src="/page.js"></script>',
      ],
      "/page.js": ["text/javascript", () => script],
      "/order": ["application/json", () => JSON.stringify(order())],
    };
    const server = createServer((request, response) => {
      if (request.url === "/told") {
        void buffer(request).then((body) => {
          resolve(JSON.parse(body.toString()));
          response.end();
        });
        return;
      }
      const [type, body] = pages[request.url ?? ""] ?? [];
      response.writeHead(body === undefined ? 404 : 200, { "content-type": type ?? "text/plain" }).end(body?.());
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Site(server, told);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** A headless Chromium that shows one page. It can only reach loopback. */
export class Browser implements AsyncDisposable {
  readonly #child: ReturnType<typeof spawn>;
  readonly #exited: Promise<unknown>;
  readonly #profile: string;

  constructor(url: string) {
    this.#profile = mkdtempSync(join(tmpdir(), "chromium-"));
    this.#child = spawn(
      "chromium",
      [
        "--headless=new",
        "--no-sandbox",
        "--no-first-run",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        `--user-data-dir=${this.#profile}`,
        "--remote-debugging-pipe",
        url,
      ],
      {
        // A process group of its own, which ends as a whole.
        detached: true,
        env: {
          ...process.env,
          HOME: this.#profile,
          TMPDIR: this.#profile,
          XDG_CONFIG_HOME: this.#profile,
          XDG_CACHE_HOME: this.#profile,
        },
        // Its end of the pipe must stay open during its life.
        stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
      },
    );
    this.#exited = once(this.#child, "exit");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { pid } = this.#child;
    if (pid !== undefined && this.#child.exitCode === null) process.kill(-pid, "SIGKILL");
    await this.#exited;
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}

/** A module and its imports, for a page. */
export async function bundle(file: string): Promise<string> {
  await using build = await rolldown({ input: file, platform: "browser", logLevel: "silent" });
  const { output } = await build.generate({ format: "esm" });
  return output[0].code;
}
