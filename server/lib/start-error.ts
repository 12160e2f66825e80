export type StartErrorKind =
  | "port_in_use"
  | "address_unavailable"
  | "daemon_already_running"
  | "state_dir_unusable"
  | "socket_path_too_long"
  | "token_unusable"
  | "store_unusable"
  | "store_too_new"
  | "config_invalid"
  | "listen_unsafe"
  | "tls_unusable"
  | "platform_unsupported";

/** Why the daemon did not start. It never crosses the wire: only the process that started the daemon receives it. */
export class StartError extends Error {
  override readonly name = "StartError";
  readonly kind: StartErrorKind;

  /** The message says what was attempted, why it failed, and what to do. */
  constructor(kind: StartErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}
