import { namedTokensPercent } from "../rpc/shares.ts";

/** Every bound of the edge, with its unit. */
export interface EdgeLimits {
  /** A larger WebSocket message closes its connection with 1009. */
  readonly maxFrameBytes: number;
  /** A larger HTTP body is answered with 413. */
  readonly maxBodyBytes: number;
  /** What a peer may send after its request was refused: it is read and thrown away, so that the peer can read the refusal. */
  readonly maxDiscardedBytes: number;
  /** A larger head of a request is answered with 431. */
  readonly maxHeaderBytes: number;
  /** Sockets of each transport; further ones are closed as they come. */
  readonly maxSockets: number;
  /** Sockets of a TCP transport that have not shown a token; a further one takes the place of the oldest. */
  readonly maxSocketsWithoutToken: number;
  /** The same from one address beyond loopback. */
  readonly maxSocketsWithoutTokenPerAddress: number;
  /** Until such a socket has shown a token; then 408. */
  readonly tokenTimeoutMs: number;
  /** WebSocket connections; further upgrades are answered with 503. */
  readonly maxConnections: number;
  /** Streams of server-sent events; further ones are answered with 503. */
  readonly maxEventStreams: number;
  /** WebSocket connections of one named token; further upgrades are answered with 503. */
  readonly maxConnectionsPerToken: number;
  /** Streams of one named token. As above. */
  readonly maxEventStreamsPerToken: number;
  /** Sockets from one address beyond loopback; further ones are closed as they come. */
  readonly maxSocketsPerAddress: number;
  /** HTTP requests that are not answered yet, of all sockets; further ones are answered with 503. */
  readonly maxHttpRequests: number;
  /** Their bodies together; one that is in chunks counts as `maxBodyBytes` until it has come. As above. */
  readonly maxHttpBytes: number;
  /** The same of one named token. */
  readonly maxHttpRequestsPerToken: number;
  readonly maxHttpBytesPerToken: number;
  /** HTTP answers that were sent and are not read, over all sockets; a further one over 16 KiB is 503. */
  readonly maxUnreadHttpBytes: number;
  readonly maxUnreadHttpBytesPerToken: number;
  /**
   * What all named tokens together may have of each of these bounds, of connections and of streams, in percent. The rest
   * is the main token's.
   */
  readonly namedTokensPercent: number;
  /**
   * What has come over all WebSockets and is kept: messages that are not whole or not answered, where those of a
   * connection are over 64 KiB. The connection on which more comes is closed with 1013.
   */
  readonly maxInboundBytes: number;
  readonly maxInboundBytesPerToken: number;
  /** From a message's first byte to its last, looked at with each ping; then the connection is closed with 1013. */
  readonly messageTimeoutMs: number;
  /** HTTP requests of one socket that are not answered yet (pipelining); further ones are answered with 503. */
  readonly maxRequestsPerSocket: number;
  /**
   * What a connection's socket is given at a time, and the longest fragment of a message. More than the mark of Node's
   * sockets (64 KiB), from which on they tell that they are empty again.
   */
  readonly socketWindowBytes: number;
  /** What waits for one connection, beside what its socket has, before the deltas in it are merged. */
  readonly mergeDeltasAboveBytes: number;
  /** What waits for one connection before the deltas in it are left out, and told as gaps. */
  readonly dropDeltasAboveBytes: number;
  /** What may wait for one connection, beside the last frame; over it, it is closed with 1013. */
  readonly maxBufferedBytes: number;
  /** What may wait for all of them; over it, of the token for which most waits the one for which most waits is closed with 1013. */
  readonly maxBufferedBytesAllConnections: number;
  /** A connection that takes less than a window in this time while more waits is closed with 1013. */
  readonly slowReaderDeadlineMs: number;
  /** Until a request's headers have come; then 408. */
  readonly headersTimeoutMs: number;
  /** Until the whole request has come; then 408. Also how long a client may leave an HTTP answer unread. */
  readonly requestTimeoutMs: number;
  /** Between two requests on one socket. */
  readonly keepAliveTimeoutMs: number;
  /** What a stream of server-sent events tells its client to wait before it connects again. */
  readonly eventRetryMs: number;
  /** A connection from which nothing has come when the second ping is due is ended. */
  readonly pingIntervalMs: number;
  /** Refused tokens a minute that still get an answer; beyond, the socket is closed. */
  readonly maxRefusedTokensPerMinute: number;
  /** How long a peer may take to answer the close of its connection, and all of them when the daemon ends. */
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
