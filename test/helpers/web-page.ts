import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { WebSocket } from "ws";
import { createValidator } from "../../protocol/validation.ts";
import { TOKEN_SUBPROTOCOL_PREFIX, WEBSOCKET_SUBPROTOCOL } from "../../protocol/wire.ts";
import { limits } from "../../server/configuration/limits.ts";
import { EdgeLoad } from "../../server/edge/edge-load.ts";
import type { EdgeLimits } from "../../server/edge/limits.ts";
import { WebPage } from "../../server/edge/web-page.ts";
import { createDispatcher } from "../../server/rpc/dispatcher.ts";
import { WebTokens } from "../../server/rpc/web-tokens.ts";
import { type EdgeTestOptions, fakeCore, type HttpAnswer, http, TestWebSocket } from "./edge.ts";

/** Writes a page of two files, with their list, as a build does. */
export function writeWebFiles(directory: string): void {
  mkdirSync(directory, { recursive: true });
  const files = [
    { path: "/", file: "index.html", type: "text/html; charset=utf-8" },
    { path: "/main.js", file: "main.js", type: "text/javascript; charset=utf-8" },
  ];
  writeFileSync(join(directory, "index.html"), '<!doctype html><script type="module" src="/main.js"></script>');
  writeFileSync(join(directory, "main.js"), 'document.title = "console";');
  writeFileSync(join(directory, "unlisted.txt"), "not served");
  writeFileSync(join(directory, "files.json"), JSON.stringify({ files }));
}

/** The web console of a daemon, as a browser reaches it. */
export interface OpenConsole {
  readonly port: number;
  readonly code: string;
}

type Headers = Readonly<Record<string, string | undefined>>;

function headersOf(headers: Headers): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter((pair): pair is [string, string] => pair[1] !== undefined));
}

/** A POST of the page's own script. Undefined leaves a header out. */
export function post(port: number, path: string, body: string, headers: Headers = {}): Promise<HttpAnswer> {
  const own = { origin: `http://127.0.0.1:${port}`, "content-type": "application/json" };
  const where = { port, socketPath: "" };
  return http(where, { method: "POST", path, headers: headersOf({ ...own, ...headers }), body });
}

/** Exchanges a code as the page does. */
export function exchange({ port, code }: OpenConsole, headers?: Headers): Promise<HttpAnswer> {
  return post(port, "/exchange", JSON.stringify({ code }), headers);
}

/** Signs in, and returns the token. */
export async function signIn(console: OpenConsole): Promise<string> {
  return (await exchange(console)).body.token;
}

/** Opens the page's WebSocket. Rejects if the upgrade is refused. Undefined leaves a header out. */
export function openPageSocket(
  port: number,
  token: string,
  headers: Headers = {},
  path = "/ws",
): Promise<TestWebSocket> {
  const offered = token === "" ? [] : [WEBSOCKET_SUBPROTOCOL, TOKEN_SUBPROTOCOL_PREFIX + token];
  const own = { origin: `http://127.0.0.1:${port}` };
  const webSocket = new WebSocket(`ws://127.0.0.1:${port}${path}`, offered, {
    headers: headersOf({ ...own, ...headers }),
  });
  const opened = new TestWebSocket(webSocket);
  const { promise, resolve, reject } = Promise.withResolvers<TestWebSocket>();
  webSocket.once("open", () => resolve(opened));
  webSocket.once("error", reject);
  return promise;
}

export interface WebPageTestOptions {
  readonly limits?: Partial<Record<keyof typeof limits.web, number>>;
  readonly edgeLimits?: Partial<EdgeLimits>;
  readonly handlers?: EdgeTestOptions["handlers"];
  /** Names that other tokens have. */
  readonly taken?: readonly string[];
}

/** The web console over handlers that do almost nothing. */
export interface TestPage extends AsyncDisposable {
  readonly page: WebPage;
  readonly tokens: WebTokens;
  /** The directory of its files. */
  readonly files: string;
  readonly logged: readonly string[];
}

export function startWebPage(options: WebPageTestOptions = {}): TestPage {
  const files = mkdtempSync(join(tmpdir(), "web-"));
  writeWebFiles(files);
  const logged: string[] = [];
  const log = pino({ level: "trace" }, { write: (line) => logged.push(line) });
  const load = new EdgeLoad(options.edgeLimits);
  const own = { ...limits.web, ...options.limits };
  const tokens = new WebTokens({ limits: own, isTaken: (name) => options.taken?.includes(name) === true });
  const { handlers } = fakeCore(options.handlers);
  const dispatcher = createDispatcher({ handlers, validator: createValidator(), log });
  const facts = { version: "1.2.3", instance: "this-daemon", stateDir: "/state", letterKeys: false };
  const page = new WebPage({ ...facts, dispatcher: () => dispatcher, tokens, load, files, limits: own, log });
  return {
    page,
    tokens,
    files,
    logged,
    [Symbol.asyncDispose]: async () => {
      await page.stop("stopped");
      rmSync(files, { recursive: true });
    },
  };
}
