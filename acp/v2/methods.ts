import type { McpServer, SessionConfigOption } from "@agentclientprotocol/sdk";
import { isRecord } from "../../protocol/objects.ts";
import { AcpError } from "../acp-error.ts";
import { acpErrorOf } from "../known-errors.ts";
import type { Answer, Method, Params } from "../rpc-peer.ts";
import { optionsOfTwo } from "./update-encoder.ts";

/** What the agent does in all versions: params and answers are those of version 1. */
export interface Core {
  readonly common: Readonly<
    Record<
      | "session/new"
      | "session/resume"
      | "session/list"
      | "session/close"
      | "session/delete"
      | "session/set_config_option"
      | "session/prompt",
      Method
    >
  >;
  /** Resolves if pi has a usable model. */
  readonly authenticate: () => Promise<Answer>;
  /** Tells a session's history and follows it. */
  readonly load: Method;
  /** Whether this pi takes MCP servers of clients. */
  readonly takesServers: () => boolean;
  /** The config options of a session. */
  readonly options: (params: Params) => Promise<readonly SessionConfigOption[]>;
}

/** The methods of version 2. */
export function methodsOfTwo(core: Core): Readonly<Record<string, Method>> {
  const { common, authenticate, load, options } = core;
  // pi's keys are those of all its clients: a client logs out of its own connection.
  let isLoggedOut = false;
  const attaching =
    (attach: Method): Method =>
    async (params, signal) => {
      if (isLoggedOut) throw new AcpError("authRequired", "The client has logged out.");
      const given = { ...params, mcpServers: serversOfOne(params["mcpServers"], core.takesServers()) };
      const { result, after } = await attach(given, signal);
      const { sessionId, configOptions } = result as Attached;
      const created = sessionId === undefined ? {} : { sessionId };
      return { result: { ...created, configOptions: optionsOfTwo(configOptions) }, ...(after && { after }) };
    };
  const methods: Readonly<Record<string, Method>> = {
    ...common,
    "auth/login": async ({ methodId }) => {
      if (methodId !== "pi") throw new AcpError("invalidParams", "There is no such method of authentication.");
      const answer = await authenticate();
      isLoggedOut = false;
      return answer;
    },
    "auth/logout": () => {
      isLoggedOut = true;
      return Promise.resolve({ result: {} });
    },
    "session/new": attaching(common["session/new"]),
    "session/resume": attaching(async (params, signal) => {
      const { replayFrom } = params;
      if (replayFrom === undefined || replayFrom === null) return await common["session/resume"](params, signal);
      if (!isRecord(replayFrom) || replayFrom["type"] !== "start")
        throw new AcpError("invalidParams", "A history can be told from its start alone.");
      return await load(params, signal);
    }),
    "session/close": async (params, signal) => {
      try {
        return await common["session/close"](params, signal);
      } catch (error) {
        // It is closed already.
        if (error instanceof AcpError && error.code === notFound) return { result: {} };
        throw error;
      }
    },
    "session/set_config_option": async (params, signal) => {
      const { configId, type, value } = params;
      const option = (await options(params)).find(({ id }) => id === configId);
      const offered = option?.type === "select" ? option.options : [];
      if (type !== "id" || !offered.some((each) => "value" in each && each.value === value))
        throw new AcpError("invalidParams", "The session has no such option, or the option has no such value.");
      const { result } = await common["session/set_config_option"](params, signal);
      return { result: { configOptions: optionsOfTwo((result as Attached).configOptions) } };
    },
    "tool_call/cancel": cancelNothing,
    "terminal/cancel": cancelNothing,
  };
  return Object.fromEntries(Object.entries(methods).map(([name, method]) => [name, namingSession(method)]));
}

interface Attached {
  readonly sessionId?: string;
  readonly configOptions: readonly SessionConfigOption[];
}

const notFound = -32_002;

/** The error for an unknown session has its id. */
function namingSession(method: Method): Method {
  return async (params, signal) => {
    try {
      return await method(params, signal);
    } catch (error) {
      const { sessionId } = params;
      const known = acpErrorOf(error);
      if (known.code !== notFound || typeof sessionId !== "string") throw known;
      throw new AcpError("resourceNotFound", known.message, { ...(isRecord(known.data) ? known.data : {}), sessionId });
    }
  };
}

/** No tool call and no terminal is offered for that. */
function cancelNothing(): Promise<never> {
  return Promise.reject(new AcpError("invalidParams", "It cannot be cancelled alone: cancel the session's work."));
}

/** Their lists are optional in version 2. Throws {@link AcpError} for what the agent has not offered. */
function serversOfOne(servers: unknown, takesServers: boolean): readonly object[] {
  const given = Array.isArray(servers) ? (servers as readonly (McpServer & { readonly type: string })[]) : [];
  return given.map((server) => {
    const { type } = server;
    if (!takesServers || (type !== "stdio" && type !== "http"))
      throw new AcpError("invalidParams", "The agent does not take MCP servers of this type.", { type });
    return { args: [], env: [], headers: [], ...server };
  });
}
