/** The beginning of the daemon's notifications; its other messages are answers. */
const notificationHead = Buffer.from('{"jsonrpc":"2.0","method":', "latin1");

/** Counts the outstanding answers, so that a stream that ends can wait for them. */
export class OpenCalls {
  #open = 0;

  get isEmpty(): boolean {
    return this.#open === 0;
  }

  /** A message to the daemon. Invalid JSON is answered, too. */
  sent(message: Buffer): void {
    if (isAnswered(message)) this.#open += 1;
  }

  /** A message of the daemon. */
  received(message: Buffer): void {
    if (this.#open > 0 && !message.subarray(0, notificationHead.length).equals(notificationHead)) this.#open -= 1;
  }
}

function isAnswered(message: Buffer): boolean {
  let value: unknown;
  try {
    value = JSON.parse(message.toString());
  } catch {
    return true;
  }
  // An empty batch is answered with an error; a batch of notifications and responses is not answered.
  return Array.isArray(value) ? value.length === 0 || !value.every(isSilent) : !isSilent(value);
}

/** Notifications and responses get no answer; anything else that is not a request gets an error. */
function isSilent(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { jsonrpc, method, params = {} } = value as Readonly<Record<string, unknown>>;
  if (jsonrpc !== "2.0") return false;
  const hasOutcome = "result" in value || "error" in value;
  if (method === undefined) return hasOutcome;
  return typeof method === "string" && !("id" in value) && !hasOutcome && typeof params === "object" && params !== null;
}
