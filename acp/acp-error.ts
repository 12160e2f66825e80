/** The codes of this protocol's errors: those of JSON-RPC, and those that the protocol's schema adds. */
export const acpErrorCode = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  /** The client cancelled the request by `$/cancel_request`. */
  requestCancelled: -32800,
  /** pi has no usable model, or its login is missing. */
  authRequired: -32000,
  /** No session has this id. */
  resourceNotFound: -32002,
  /** Version 2: the agent has no version that is as old as the client's. */
  unsupportedVersion: -32022,
} as const;
export type AcpErrorCode = (typeof acpErrorCode)[keyof typeof acpErrorCode];

/** A request's error, as its answer has it. */
export class AcpError extends Error {
  readonly code: AcpErrorCode;
  readonly data: unknown;

  constructor(name: keyof typeof acpErrorCode, message: string, data?: unknown) {
    super(message);
    this.name = "AcpError";
    this.code = acpErrorCode[name];
    this.data = data;
  }
}
