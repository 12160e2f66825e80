import { namedTokensPercent } from "../rpc/quota.ts";

/** The bounds of the edge, each with its unit. */
export interface EdgeLimits {
  /** A larger WebSocket message closes its connection with 1009. */
  readonly maxFrameBytes: number;
  /** A larger HTTP body is answered with 413. */
  readonly maxBodyBytes: number;
  /** Bytes that a peer may send after its request was refused: they are discarded, so that the peer can read the refusal. */
  readonly maxDiscardedBytes: number;
  /** A larger head of a request is answered with 431. */
  readonly maxHeaderBytes: number;
  /** Sockets of each transport; further ones are closed when they are accepted. */
  readonly maxSockets: number;
  /** Sockets of a TCP transport without a token; a further one replaces the oldest. */
  readonly maxSocketsWithoutToken: number;
  /** The same from one address beyond loopback. */
  readonly maxSocketsWithoutTokenPerAddress: number;
  /** The time until such a socket must send a token; then 408. */
  readonly tokenTimeoutMs: number;
  /** WebSocket connections; further upgrades are answered with 503. */
  readonly maxConnections: number;
  /** Streams of server-sent events; further ones are answered with 503. */
  readonly maxEventStreams: number;
  /** WebSocket connections of one named token; further upgrades are answered with 503. */
  readonly maxConnectionsPerToken: number;
  /** Streams of one named token; further ones are answered with 503. */
  readonly maxEventStreamsPerToken: number;
  /** Sockets from one address beyond loopback; further ones are closed when they are accepted. */
  readonly maxSocketsPerAddress: number;
  /** Unanswered HTTP requests of all sockets; further ones are answered with 503. */
  readonly maxHttpRequests: number;
  /** The bodies of these requests; one in chunks counts as `maxBodyBytes` until it is complete. Further ones get 503. */
  readonly maxHttpBytes: number;
  /** The same of one named token. */
  readonly maxHttpRequestsPerToken: number;
  readonly maxHttpBytesPerToken: number;
  /** Unread bytes of HTTP answers on all sockets; a further answer over 16 KiB becomes 503. */
  readonly maxUnreadHttpBytes: number;
  readonly maxUnreadHttpBytesPerToken: number;
  /** The part of each quota that all named tokens may use together, in percent. The rest is for the main token. */
  readonly namedTokensPercent: number;
  /**
   * Received bytes that all WebSockets hold: incomplete or unanswered messages, if those of a connection exceed 64 KiB. A
   * connection that sends more is closed with 1013.
   */
  readonly maxInboundBytes: number;
  readonly maxInboundBytesPerToken: number;
  /** The time from a message's first byte to its last, checked with each ping; then the connection is closed with 1013. */
  readonly messageTimeoutMs: number;
  /** Unanswered HTTP requests of one socket (pipelining); further ones are answered with 503. */
  readonly maxRequestsPerSocket: number;
  /**
   * Bytes handed to a connection's socket at a time, and the longest fragment of a message. More than the high-water mark
   * of Node's sockets (64 KiB), because a socket emits `drain` only after it exceeded the mark.
   */
  readonly socketWindowBytes: number;
  /** Bytes that wait for one connection, without those in its socket, before deltas are merged. */
  readonly mergeDeltasAboveBytes: number;
  /** Bytes that wait for one connection before deltas are replaced by gaps. */
  readonly dropDeltasAboveBytes: number;
  /** Bytes that may wait for one connection, in addition to the last frame; above it, it is closed with 1013. */
  readonly maxBufferedBytes: number;
  /** Bytes that may wait for all connections; above it, the largest connection of the largest token is closed with 1013. */
  readonly maxBufferedBytesAllConnections: number;
  /** A connection that takes less than a window in this time while more waits is closed with 1013. */
  readonly slowReaderDeadlineMs: number;
  /** The time for a request's head; then 408. */
  readonly headersTimeoutMs: number;
  /** The time for a whole request; then 408. The time for a client to read an HTTP answer, too. */
  readonly requestTimeoutMs: number;
  /** The idle time between two requests on one socket; then the socket is closed. */
  readonly keepAliveTimeoutMs: number;
  /** The time that a client of a stream waits before it reconnects (`retry:`). */
  readonly eventRetryMs: number;
  /** The time between pings. A connection that neither sent nor took a byte between two pings is closed. */
  readonly pingIntervalMs: number;
  /** Refused tokens per minute that get an answer; above it, the socket is closed. */
  readonly maxRefusedTokensPerMinute: number;
  /** The time for a peer to answer the close of its connection, also when the daemon ends. */
  readonly closeTimeoutMs: number;
}

export const defaultEdgeLimits: EdgeLimits = {
  maxFrameBytes: 16 * 1024 * 1024,
  maxBodyBytes: 16 * 1024 * 1024,
  maxDiscardedBytes: 16 * 1024 * 1024,
  maxHeaderBytes: 16 * 1024,
  maxSockets: 2_048,
  maxSocketsWithoutToken: 256,
  maxSocketsWithoutTokenPerAddress: 64,
  tokenTimeoutMs: 10_000,
  maxConnections: 1_024,
  maxEventStreams: 256,
  maxConnectionsPerToken: 256,
  maxEventStreamsPerToken: 64,
  maxSocketsPerAddress: 256,
  maxHttpRequests: 1_024,
  maxHttpBytes: 256 * 1024 * 1024,
  maxHttpRequestsPerToken: 256,
  maxHttpBytesPerToken: 64 * 1024 * 1024,
  maxUnreadHttpBytes: 128 * 1024 * 1024,
  maxUnreadHttpBytesPerToken: 32 * 1024 * 1024,
  maxInboundBytes: 256 * 1024 * 1024,
  maxInboundBytesPerToken: 96 * 1024 * 1024,
  messageTimeoutMs: 30_000,
  namedTokensPercent,
  maxRequestsPerSocket: 64,
  socketWindowBytes: 256 * 1024,
  mergeDeltasAboveBytes: 4 * 1024 * 1024,
  dropDeltasAboveBytes: 8 * 1024 * 1024,
  maxBufferedBytes: 96 * 1024 * 1024,
  maxBufferedBytesAllConnections: 256 * 1024 * 1024,
  slowReaderDeadlineMs: 10_000,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  keepAliveTimeoutMs: 60_000,
  eventRetryMs: 2_000,
  pingIntervalMs: 15_000,
  maxRefusedTokensPerMinute: 60,
  closeTimeoutMs: 2_000,
};
