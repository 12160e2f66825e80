import type { IncomingMessage, ServerResponse } from "node:http";
import { Quota } from "../rpc/quota.ts";
import { grantOf } from "./admission.ts";
import type { EdgeLimits } from "./limits.ts";
import { type Refusal, refusal } from "./refusal.ts";
import { whenGone } from "./when-gone.ts";

/** The edge's bounds on what all peers have together. Each leaves a part to the main token. */
export interface Quotas {
  readonly connections: Quota;
  readonly eventStreams: Quota;
  readonly requests: Quota;
  readonly requestBytes: Quota;
  readonly unreadBytes: Quota;
  readonly inboundBytes: Quota;
}

export function createQuotas(limits: EdgeLimits): Quotas {
  const { namedTokensPercent } = limits;
  const quota = (what: string, max: number, maxPerToken: number): Quota =>
    new Quota({ what, max, maxPerToken, namedTokensPercent });
  return {
    connections: quota("connections", limits.maxConnections, limits.maxConnectionsPerToken),
    eventStreams: quota("streams of events", limits.maxEventStreams, limits.maxEventStreamsPerToken),
    requests: quota("HTTP requests that wait for their answer", limits.maxHttpRequests, limits.maxHttpRequestsPerToken),
    requestBytes: quota(
      "bytes of HTTP requests that wait for their answer",
      limits.maxHttpBytes,
      limits.maxHttpBytesPerToken,
    ),
    unreadBytes: quota(
      "bytes of HTTP answers that are not read",
      limits.maxUnreadHttpBytes,
      limits.maxUnreadHttpBytesPerToken,
    ),
    inboundBytes: quota(
      "bytes of messages that are not whole, or not answered",
      limits.maxInboundBytes,
      limits.maxInboundBytesPerToken,
    ),
  };
}

/**
 * Counts an HTTP request and its body until the response ends or its peer leaves. Returns the refusal if a quota is
 * full. The quotas cover all transports: the bounds of single sockets add up over many sockets.
 */
export function countRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { requests, requestBytes }: Pick<Quotas, "requests" | "requestBytes">,
  maxBodyBytes: number,
): Refusal | undefined {
  const grant = grantOf(request);
  const announced = announcedBytes(request, maxBodyBytes);
  const full = requests.refusal(grant, 1) ?? (announced === 0 ? undefined : requestBytes.refusal(grant, announced));
  if (full !== undefined) return refusal(full);
  requests.add(grant, 1);
  let bytes = announced;
  if (bytes > 0) {
    requestBytes.add(grant, bytes);
    const before = request.socket.bytesRead;
    // A body in chunks shows its length at its end.
    request.on("end", () => {
      const received = Math.min(bytes, Math.max(0, request.socket.bytesRead - before));
      requestBytes.add(grant, received - bytes);
      bytes = received;
    });
  }
  whenGone(request, response, () => {
    requests.add(grant, -1);
    requestBytes.add(grant, -bytes);
    bytes = 0;
  });
  return undefined;
}

/** Larger bodies are refused unread, and a body in chunks may become as long as the limit. */
function announcedBytes({ headers }: IncomingMessage, maxBodyBytes: number): number {
  if (headers["transfer-encoding"] !== undefined) return maxBodyBytes;
  return Math.min(Number(headers["content-length"] ?? 0) || 0, maxBodyBytes);
}
