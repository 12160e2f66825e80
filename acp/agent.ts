import { realpath } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { WireError } from "../protocol/errors.ts";
import type { MethodName, Params as WireParams } from "../protocol/methods.ts";
import { isRecord } from "../protocol/objects.ts";
import type { SessionInfo } from "../protocol/session.ts";
import { PROTOCOL_VERSION } from "../protocol/wire.ts";
import { AcpError, acpErrorCode } from "./acp-error.ts";
import { AnswersAtEnd } from "./answers-at-end.ts";
import type { Choices } from "./choices.ts";
import { abilitiesIn, type ClientAbilities } from "./client-abilities.ts";
import { acpErrorOf } from "./known-errors.ts";
import { mcpServersOf, type WireServers } from "./mcp-servers.ts";
import { Outbox, type Sink } from "./outbox.ts";
import { ownMethodIn, ownMethods } from "./own-methods.ts";
import type { Port } from "./port.ts";
import { type Answer, type Method, type Params, RpcPeer } from "./rpc-peer.ts";
import { AcpSession } from "./session.ts";
import { listSessions } from "./session-list.ts";
import { abilitiesOfTwo, capabilitiesOfTwo, versionFor } from "./v2/initialization.ts";
import { methodsOfTwo } from "./v2/methods.ts";
import { SecondVersion } from "./v2/session-version.ts";

export interface AgentOptions {
  readonly port: Port;
  readonly sink: Sink;
  /** Reads a message. Default: `JSON.parse`. */
  readonly parse?: (text: Buffer) => unknown;
  /** The version of this program. */
  readonly version: string;
  /** Whether a client can have version 2 of the protocol, which is a draft. Default: false. */
  readonly hasVersion2?: boolean;
  /** What sessions are created and opened with, such as the client's environment. */
  readonly created?: Partial<WireParams<"session/create">>;
  readonly opened?: Partial<WireParams<"session/open">>;
  /** Writes a session that works in `cwd` to a file as HTML. Resolves with the file's path. Without it the client has no `/export`. */
  readonly saveExport?: (cwd: string, path: string | undefined, html: string) => Promise<string>;
}

type Servers = { readonly mcpServers?: WireServers };

interface Opened {
  readonly session: AcpSession;
  /** Whether the client has not had it until now. */
  readonly isNew: boolean;
  readonly warnings: readonly string[];
}

/** Questions of extensions wait for a person. */
const dialogPolicy = { kind: "wait" } as const;
const withoutServers = "This version of pi does not take MCP servers of clients: they are left out.";

/** An agent of ACP for one client, whose sessions are those of the daemon. */
export class Agent {
  readonly #options: AgentOptions;
  readonly #outbox: Outbox;
  readonly #peer: RpcPeer;
  readonly #sessions = new Map<string, AcpSession>();
  /** By session: the newest of the requests that attach to it or leave it. Each waits for the one before it. */
  readonly #turns = new Map<string, Promise<unknown>>();
  #client: ClientAbilities | undefined;
  /** Whether the client has sent other requests than `initialize`. */
  #isInUse = false;
  /** Whether this pi takes MCP servers of clients. */
  #takesServers = false;
  readonly #methods: Readonly<Record<1 | 2, Readonly<Record<string, Method>>>>;

  constructor(options: AgentOptions) {
    this.#options = options;
    this.#outbox = new Outbox(options.sink);
    this.#peer = new RpcPeer(this.#outbox, {
      request: (method, params, signal) => this.#request(method, params, signal),
      notification: (method, params) => this.#notification(method, params),
    });
    const common = {
      "session/new": (params) => this.#create(params),
      "session/resume": (params) => this.#inTurn(params, () => this.#resume(params)),
      "session/list": async (params) => ({ result: await listSessions(this.#options.port, params) }),
      "session/close": (params) => this.#inTurn(params, () => this.#close(params)),
      "session/delete": (params) => this.#inTurn(params, () => this.#delete(params)),
      "session/set_config_option": (params) => this.#setOption(params),
      "session/prompt": async (params, signal) => ({ result: await this.#sessionOf(params).prompt(params, signal) }),
    } satisfies Readonly<Record<string, Method>>;
    const authenticate = (): Promise<Answer> => this.#authenticate();
    const load: Method = (params) => this.#inTurn(params, () => this.#load(params));
    this.#methods = {
      1: {
        ...common,
        authenticate,
        "session/load": load,
        "session/set_mode": async ({ sessionId, modeId }) => {
          await this.#set(sessionId, "thought_level", modeId);
          return { result: {} };
        },
        "session/set_model": async ({ sessionId, modelId }) => {
          await this.#set(sessionId, "model", modelId);
          return { result: {} };
        },
      },
      2: methodsOfTwo({
        common,
        authenticate,
        load,
        takesServers: () => this.#takesServers,
        options: async (params) => (await this.#sessionOf(params).choices()).configOptions,
      }),
    };
  }

  /** Handles one message of the client. Resolves when it is answered, or needs no answer. */
  receive(text: Buffer): Promise<void> {
    return this.#peer.receive(text, this.#options.parse ?? parsed);
  }

  /** The client has gone: its sessions and their runs go on. Returns the ids of its sessions. */
  close(): readonly string[] {
    const left = [...this.#sessions.keys()];
    this.#outbox.close();
    for (const session of this.#sessions.values()) session.leave();
    this.#peer.close();
    this.#sessions.clear();
    return left;
  }

  /** Another daemon has the sessions now: it gets again what daemons keep in memory alone. */
  renew(): void {
    const { port, opened } = this.#options;
    if (opened === undefined) return;
    // A session that is not open must not be opened.
    for (const sessionId of this.#sessions.keys())
      void port
        .call("session/get", { sessionId })
        .then(() => port.call("session/open", { ...opened, sessionId }))
        .catch(() => {});
  }

  /** The daemon cannot be reached any more: answers everything that waits. */
  fail(why: string): void {
    this.#peer.failAll(new AcpError("internalError", why));
  }

  async #request(method: string, params: Params, signal: AbortSignal): Promise<Answer> {
    if (method === "initialize") return await this.#initialize(params);
    if (this.#client === undefined) throw new AcpError("invalidRequest", "The first request is initialize.");
    this.#isInUse = true;
    const own = ownMethodIn(method);
    if (own !== undefined) return await this.#own(own, params, signal);
    const methods = this.#methods[this.#peer.version];
    const perform = Object.hasOwn(methods, method) ? methods[method] : undefined;
    if (perform === undefined) throw new AcpError("methodNotFound", `There is no method ${method.slice(0, 100)}.`);
    return await perform(params, signal);
  }

  #notification(method: string, { sessionId }: Params): void {
    if (method !== "session/cancel") return;
    void this.#sessions.get(String(sessionId))?.cancel();
  }

  async #initialize(params: Params): Promise<Answer> {
    const { port, version, hasVersion2 = false } = this.#options;
    const isSecond = versionFor(params, { hasVersion2, former: this.#client && this.#peer.version }) === 2;
    if (isSecond && this.#isInUse) throw new AcpError("invalidRequest", "initialize comes before all other requests.");
    this.#peer.version = isSecond ? 2 : 1;
    this.#client = isSecond ? abilitiesOfTwo(params) : abilitiesIn(params);
    const { pi, capabilities } = await port.call("daemon/info", {});
    this.#takesServers = pi.capabilities.mcpServers === true;
    const info = { name: "pi-rpcd", title: "pi", version };
    const authMethods = this.#authMethods();
    const methods = ownMethods(capabilities);
    const _meta = { "pi-rpcd": { protocol: PROTOCOL_VERSION, pi: pi.version, methods } };
    if (isSecond) {
      const offered = { ...capabilitiesOfTwo(this.#takesServers), _meta };
      return { result: { protocolVersion: 2, info, capabilities: offered, authMethods } };
    }
    return {
      result: {
        protocolVersion: 1,
        agentInfo: info,
        agentCapabilities: {
          loadSession: true,
          promptCapabilities: { image: true, audio: false, embeddedContext: true },
          mcpCapabilities: { http: this.#takesServers, sse: false },
          sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
          _meta,
        },
        authMethods,
      },
    };
  }

  #authMethods(): readonly object[] {
    const isSecond = this.#peer.version === 2;
    const login = { [isSecond ? "methodId" : "id"]: "pi", name: "Log in with pi" };
    if (this.#client?.terminalLogin === true) return [{ ...login, type: "terminal", args: ["--login"] }];
    const agent = { ...login, description: "Run `pi-rpcd pi` in a terminal, and /login there." };
    return [isSecond ? { ...agent, type: "agent" } : agent];
  }

  async #authenticate(): Promise<Answer> {
    const { models } = await this.#options.port.call("model/list", { refresh: true });
    if (models.length === 0) throw this.#noModel();
    return { result: {} };
  }

  #noModel(): AcpError {
    return new AcpError("authRequired", "pi has no model: log in, or give it a key.", {
      authMethods: this.#authMethods(),
    });
  }

  async #create(params: Params): Promise<Answer> {
    const { port, created } = this.#options;
    const cwd = directoryIn(params);
    const servers = this.#serversIn(params);
    const info = await this.#withServers(servers.taken, (mcpServers) =>
      port.call("session/create", { ...created, cwd, dialogPolicy, whenLeft: "close", ...mcpServers }),
    );
    const { sessionId } = info;
    const session = this.#attached(info);
    const choices = await this.#orForget(sessionId, async () => {
      const read = await session.choices();
      if (!session.hasModel) throw this.#noModel();
      return read;
    }).catch(async (error: unknown) => {
      await port.call("session/close", { sessionId }).catch(() => {});
      throw error;
    });
    // Clients drop updates of a session whose id they do not know yet.
    const after = (): void => {
      session.follow({ after: 0 });
      if (servers.isLeftOut) session.warn(withoutServers);
    };
    return { result: { sessionId, ...choices }, after };
  }

  /** Two of these at once would each follow the session, and the later one would be the first to be forgotten. */
  async #inTurn({ sessionId: given }: Params, perform: () => Promise<Answer>): Promise<Answer> {
    const sessionId = String(given);
    const turn = (this.#turns.get(sessionId) ?? Promise.resolve()).then(perform, perform);
    this.#turns.set(sessionId, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(sessionId) === turn) this.#turns.delete(sessionId);
    }
  }

  async #load(params: Params): Promise<Answer> {
    const { session, warnings } = await this.#opened(params);
    const result = await this.#orForget(session.id, () => session.replay());
    const after = (): void => {
      session.resume();
      for (const warning of warnings) session.warn(warning);
    };
    return { result, after };
  }

  async #resume(params: Params): Promise<Answer> {
    const { session, isNew, warnings } = await this.#opened(params);
    const result = await this.#orForget(session.id, () => (isNew ? session.skip() : session.again()));
    const after = (): void => {
      if (isNew) session.resume();
      for (const warning of warnings) session.warn(warning);
    };
    return { result, after };
  }

  /** A session that the client cannot have in the end is not one of its sessions. */
  async #orForget<T>(sessionId: string, attach: () => Promise<T>): Promise<T> {
    try {
      return await attach();
    } catch (error) {
      this.#forget(sessionId);
      throw error;
    }
  }

  async #opened(params: Params): Promise<Opened> {
    const cwd = directoryIn(params);
    const sessionId = String(params["sessionId"]);
    const servers = this.#serversIn(params);
    const warnings = servers.isLeftOut ? [withoutServers] : [];
    const open = (given: Servers) => this.#open(sessionId, { cwd, ...given });
    const info = await this.#withServers(servers.taken, open).catch(async (error: unknown) => {
      if (servers.taken.length === 0 || !keepsServers(error)) throw error;
      warnings.push(`The session keeps its MCP servers. ${error.message}`);
      return await open({});
    });
    const known = this.#sessions.get(sessionId);
    return { session: known ?? this.#attached(info), isNew: known === undefined, warnings };
  }

  /** `isLeftOut`: pi cannot take those of the client. */
  #serversIn({ mcpServers = [] }: Params): { readonly taken: WireServers; readonly isLeftOut: boolean } {
    const servers = mcpServersOf(mcpServers as Parameters<typeof mcpServersOf>[0]);
    return this.#takesServers ? { taken: servers, isLeftOut: false } : { taken: [], isLeftOut: servers.length > 0 };
  }

  /** No list leaves a session's servers as they are. */
  async #withServers<T>(servers: WireServers, call: (params: Servers) => Promise<T>): Promise<T> {
    try {
      return await call(servers.length === 0 ? {} : { mcpServers: servers });
    } catch (error) {
      const isForbidden = error instanceof WireError && error.kind === "forbidden" && servers.length > 0;
      throw isForbidden ? new AcpError("invalidParams", error.message, error.data) : error;
    }
  }

  /** Another directory than the session's is refused before anything changes. */
  async #open(sessionId: string, { cwd, ...servers }: Servers & { readonly cwd: string }): Promise<SessionInfo> {
    const { port, opened } = this.#options;
    try {
      return await port.call("session/open", {
        ...opened,
        sessionId,
        cwd,
        dialogPolicy,
        whenLeft: "close",
        ...servers,
      });
    } catch (error) {
      const isForbidden = error instanceof WireError && error.kind === "forbidden";
      // A client that may only read sees the sessions that the daemon has.
      if (!isForbidden || servers.mcpServers !== undefined) throw error;
      const info = await port.call("session/get", { sessionId });
      if (cwd === info.cwd || (await realPathOf(cwd)) === (await realPathOf(info.cwd))) return info;
      throw new AcpError("invalidParams", "The session has another directory.", { cwd: info.cwd });
    }
  }

  /** Ends this client's part of the session; the session stays. */
  async #close(params: Params): Promise<Answer> {
    const { sessionId } = params;
    const session = this.#sessionOf(params);
    await session.close();
    this.#forget(String(sessionId));
    return { result: {} };
  }

  async #delete({ sessionId: given }: Params): Promise<Answer> {
    const { port } = this.#options;
    const sessionId = String(given);
    const remove = () => port.call("session/delete", { sessionId, confirm: true, ifAlone: true });
    const isUnknown = (error: unknown): boolean => acpErrorOf(error).code === acpErrorCode.resourceNotFound;
    try {
      await remove().catch(async (error: unknown) => {
        if (!isUnknown(error)) throw error;
        // pi may have stored a session that the daemon does not have.
        await port.call("session/open", { sessionId });
        await remove();
      });
    } catch (error) {
      if (!isUnknown(error)) throw error;
    }
    this.#forget(sessionId);
    return { result: {} };
  }

  async #setOption({ sessionId, configId, value }: Params): Promise<Answer> {
    const { configOptions } = await this.#set(sessionId, configId, value);
    return { result: { configOptions } };
  }

  async #set(given: unknown, configId: unknown, value: unknown): Promise<Choices> {
    const { port } = this.#options;
    const sessionId = String(given);
    const session = this.#sessionOf({ sessionId });
    if (typeof value !== "string") throw new AcpError("invalidParams", "The value is not a text.");
    if (configId === "thought_level") {
      type Level = WireParams<"session/setThinkingLevel">["level"];
      await port.call("session/setThinkingLevel", { sessionId, level: value as Level });
    } else if (configId === "model") {
      const [provider = "", ...rest] = value.split("/");
      await port.call("session/setModel", { sessionId, provider, modelId: rest.join("/") });
    } else throw new AcpError("invalidParams", "The option is neither model nor thought_level.");
    return await session.tellLevel();
  }

  /** A method of the daemon's, with the rights that the connection has. */
  async #own(method: MethodName, params: Params, signal: AbortSignal): Promise<Answer> {
    const { _meta, ...own } = params;
    const result = await this.#options.port.call(method, own as WireParams<MethodName>, signal);
    return { result: isRecord(result) ? result : { value: result } };
  }

  #attached({ sessionId, cwd }: SessionInfo): AcpSession {
    const { saveExport } = this.#options;
    const session = new AcpSession({
      sessionId,
      cwd,
      port: this.#options.port,
      peer: this.#peer,
      outbox: this.#outbox,
      client: this.#client as ClientAbilities,
      version: (parts) =>
        this.#peer.version === 2
          ? new SecondVersion(parts)
          : { answers: new AnswersAtEnd(parts), echoes: false, questionsAreTools: true },
      saveExport: saveExport && ((path, html) => saveExport(cwd, path, html)),
      onEnd: () => {
        if (this.#sessions.get(sessionId) === session) this.#sessions.delete(sessionId);
      },
    });
    this.#sessions.set(sessionId, session);
    return session;
  }

  #forget(sessionId: string): void {
    this.#sessions.get(sessionId)?.leave();
    this.#sessions.delete(sessionId);
  }

  #sessionOf({ sessionId }: Params): AcpSession {
    const session = this.#sessions.get(String(sessionId));
    if (session === undefined)
      throw new AcpError("resourceNotFound", "The session is not open on this connection: create, load or resume it.");
    return session;
  }
}

/** Whether a session cannot get other MCP servers now. */
function keepsServers(error: unknown): error is WireError {
  return error instanceof WireError && (error.kind === "session_busy" || error.kind === "not_controller");
}

function directoryIn({ cwd }: Params): string {
  if (typeof cwd !== "string" || !isAbsolute(cwd)) throw new AcpError("invalidParams", "cwd is not an absolute path.");
  return cwd;
}

async function realPathOf(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    return path;
  }
}

function parsed(text: Buffer): unknown {
  return JSON.parse(text.toString("utf8"));
}
