import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { httpCall } from "../../client/http-client.ts";
import type { Params, Result } from "../../protocol/methods.ts";
import { type Daemon, startDaemon } from "../../server/daemon.ts";
import { createLog } from "../../server/log.ts";
import { type HttpAnswer, http, openWebSocket, type TestWebSocket } from "./edge.ts";
import type { Unchecked } from "./unchecked.ts";
import { writeWebFiles } from "./web-page.ts";

const fakePi = join(import.meta.dirname, "..", "fixtures", "fake-pi.mjs");

/** A whole daemon on a fake pi, and clients with different tokens. */
export interface TokenStage extends AsyncDisposable {
  readonly root: string;
  readonly stateDir: string;
  readonly daemon: Daemon;
  /** The daemon's own token at its start. */
  readonly main: string;
  /** The log, one record per line. */
  readonly logged: readonly string[];
  /** Opens the web console, over the Unix socket. Its files are small ones of the tests. */
  openWeb(params?: Params<"web/open">): Promise<Result<"web/open">>;
  /** Creates a directory, and returns its path without links. */
  directory(name: string): string;
  /** Creates a token, and returns its secret. */
  token(params: Params<"token/create">): Promise<string>;
  /** The result of a call over HTTP, or the error's data with its name, HTTP status of a refusal included. */
  call(token: string, method: string, params?: object): Promise<Unchecked>;
  http(token: string, method: string, path: string, body?: object): Promise<HttpAnswer>;
  webSocket(token: string, path?: string): Promise<TestWebSocket>;
}

export interface TokenStageOptions {
  /** The configuration file. Default: no file. */
  readonly config?: string;
  /** Its content, if the stage must write it. */
  readonly configured?: (root: string) => object;
}

export async function startTokenStage({ config: given, configured }: TokenStageOptions = {}): Promise<TokenStage> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "tokens-")));
  const stateDir = join(root, "state");
  const logged: string[] = [];
  const config = configured === undefined ? given : join(root, "config.json");
  if (configured !== undefined) writeFileSync(join(root, "config.json"), JSON.stringify(configured(root)));
  writeWebFiles(join(root, "web"));
  const daemon = await startDaemon({
    stateDir,
    webFiles: join(root, "web"),
    pi: fakePi,
    helper: "unused",
    drainMs: 0,
    config,
    env: {
      ...process.env,
      PI_CODING_AGENT_DIR: join(root, "agent"),
      PI_RPCD_WARM_CHILDREN: "0",
      PI_RPCD_VALIDATE: "1",
    },
    log: createLog({ level: "trace", lines: { write: (line) => logged.push(line) } }),
  }).catch((error: unknown) => {
    rmSync(root, { recursive: true });
    throw error;
  });
  const { token: main, url, socketPath } = daemon.file;
  const where = { port: Number(new URL(url).port), socketPath };
  const authorization = (token: string) => ({ authorization: `Bearer ${token}` });
  const stage: TokenStage = {
    root,
    stateDir,
    daemon,
    main,
    logged,
    openWeb: (params = {}) => httpCall("web/open", params, { stateDir }),
    directory: (name) => {
      mkdirSync(join(root, name), { recursive: true });
      return join(root, name);
    },
    token: async (params) => (await stage.call(main, "token/create", params)).token,
    call: async (token, method, params = {}) => {
      const { status, body } = await stage.http(token, "POST", "/v1/rpc", { jsonrpc: "2.0", id: 1, method, params });
      if (status !== 200) return { status, name: body.name };
      return body.error === undefined ? body.result : { ...body.error.data, message: body.error.message };
    },
    http: (token, method, path, body) =>
      http(where, {
        method,
        path,
        headers: { ...authorization(token), ...(body !== undefined && { "content-type": "application/json" }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    webSocket: (token, path) => openWebSocket(where, "tcp", authorization(token), path),
    [Symbol.asyncDispose]: async () => {
      await daemon.stop();
      rmSync(root, { recursive: true });
    },
  };
  return stage;
}
