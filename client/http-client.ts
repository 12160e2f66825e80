import type { IncomingMessage, RequestOptions } from "node:http";
import type { MethodName, Params, Result } from "../protocol/methods.ts";
import { RPC_PATH } from "../protocol/wire.ts";
import { nameOf, rpcUrl } from "./address.ts";
import { daemonError, isErrorObject, refusal } from "./daemon-error.ts";
import { ConnectionFailedError } from "./local-errors.ts";
import { type Candidate, type ReachOptions, reachDaemon } from "./reach.ts";
import { type HttpAnswer, postToSocket } from "./socket-request.ts";

export interface HttpCallOptions extends ReachOptions {
  /** Ends the call by rejecting with the signal's reason. The call may have taken effect. */
  readonly signal?: AbortSignal;
  /** A longer answer rejects with `ConnectionFailedError`. Default: 134217728. */
  readonly maxAnswerBytes?: number;
}

/**
 * Makes one call over HTTP (`POST /v1/rpc`), for scripts that make one call and end. Finds the daemon as `connect` does and
 * rejects with the errors of `connect` and `Client.call`. Methods that need a connection (`session/subscribe`) are refused.
 */
export async function httpCall<M extends MethodName>(
  method: M,
  params: Params<M>,
  options: HttpCallOptions = {},
): Promise<Result<M>> {
  options.signal?.throwIfAborted();
  const request = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  return reachDaemon({
    options,
    signal: options.signal,
    attempt: async (candidate) => resultOf(await post(candidate, request, options), candidate) as Result<M>,
  });
}

function resultOf({ status, body }: HttpAnswer, { address, token }: Candidate): unknown {
  const refused = { where: nameOf(address), sentToken: token !== undefined, status, body };
  if (status === 401) throw refusal(refused);
  let answer: unknown;
  try {
    answer = JSON.parse(body);
  } catch {
    throw refusal(refused);
  }
  if (typeof answer === "object" && answer !== null) {
    if ("error" in answer && isErrorObject(answer.error)) throw daemonError(answer.error);
    if ("result" in answer) return answer.result;
  }
  throw refusal(refused);
}

function post({ address, token }: Candidate, body: string, options: HttpCallOptions): Promise<HttpAnswer> {
  const { signal, maxAnswerBytes = 134_217_728 } = options;
  const headers = {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
  if (address.kind === "unix") {
    const { socketPath } = address;
    return postToSocket({ socketPath, path: RPC_PATH, headers, body, signal, maxAnswerBytes });
  }
  const target: RequestOptions = {
    method: "POST",
    agent: false,
    headers,
    ...(signal !== undefined && { signal }),
  };
  // An import would evaluate every export of the module, and its WebSocket takes longer to load than everything else.
  const { request: requestUrl } = address.url.startsWith("https:")
    ? process.getBuiltinModule("node:https")
    : process.getBuiltinModule("node:http");
  return new Promise<HttpAnswer>((resolve, reject) => {
    const onError = (error: Error): void => reject(signal?.aborted === true ? signal.reason : error);
    const onResponse = (response: IncomingMessage): void => {
      const chunks: Buffer[] = [];
      let size = 0;
      response.on("data", (chunk: Buffer) => {
        size += chunk.length;
        chunks.push(chunk);
        if (size > maxAnswerBytes) {
          response.destroy(new ConnectionFailedError(`The answer is longer than maxAnswerBytes (${maxAnswerBytes}).`));
        }
      });
      response.on("end", () => resolve({ status: response.statusCode, body: Buffer.concat(chunks).toString() }));
      response.on("error", onError);
    };
    const request = requestUrl(rpcUrl(address.url), target, onResponse);
    request.on("error", onError);
    request.end(body);
  });
}
