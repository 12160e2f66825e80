/** One row of the closed error catalogue. */
interface ErrorRow {
  /** JSON-RPC error code. Codes from -32700 to -32600 are those of the JSON-RPC 2.0 specification. */
  readonly code: number;
  /** Status of an HTTP answer that carries this error alone. */
  readonly httpStatus: number;
  /** Whether the same call may succeed later without a change by the caller. */
  readonly retryable: boolean;
  /** Meaning, for documents. */
  readonly meaning: string;
}

/**
 * Every error that crosses the wire. `error.data.name` holds the key, `error.code` the number.
 * A code is never reused for something else.
 */
export const errorCatalogue = {
  parse_error: row(-32700, 400, false, "The text is not JSON."),
  invalid_request: row(-32600, 400, false, "The JSON is not a JSON-RPC 2.0 request."),
  method_not_found: row(-32601, 404, false, "The method does not exist."),
  invalid_params: row(-32602, 400, false, "The params do not match the method's schema; each finding names its path."),
  internal_error: row(-32603, 500, false, "The daemon failed; its log has the cause."),
  unauthorized: row(-32001, 401, false, "The token is missing or invalid."),
  forbidden: row(
    -32002,
    403,
    false,
    "The request was understood and refused: the Host or Origin is not allowed, the command is not available to clients, or the token lacks a capability; data.needs names it.",
  ),
  session_not_found: row(-32010, 404, false, "The session does not exist."),
  session_busy: row(
    -32011,
    409,
    true,
    "The session is running or compacting, and the call does not say what to do in that case.",
  ),
  run_mismatch: row(
    -32028,
    409,
    false,
    "The expected run is not the current one; data.runId is the current run, if there is one.",
  ),
  session_idle: row(-32029, 409, false, "There is no run, and the call requires one."),
  session_closed: row(-32012, 410, false, "The session was closed during the call."),
  child_exited: row(-32013, 502, true, "The session's pi process ended before it answered."),
  start_failed: row(-32014, 502, false, "pi could not be started for this session; data has its last output."),
  link_failed: row(-32015, 502, false, "pi is running, but the helper extension did not load or does not answer."),
  pi_not_found: row(-32016, 502, false, "The daemon did not find pi."),
  pi_too_old: row(-32017, 502, false, "The installed pi is older than the oldest supported version."),
  cwd_invalid: row(-32018, 400, false, "The working directory is missing, is not a directory, or is not accessible."),
  path_invalid: row(
    -32070,
    400,
    false,
    "A file or directory in the options of pi's start is missing or unreadable; data names it.",
  ),
  profile_not_found: row(-32071, 400, false, "The profile does not exist in the daemon's configuration."),
  session_lost: row(-32072, 410, false, "The session existed only in its pi's memory, and that pi has ended."),
  session_asleep: row(
    -32073,
    409,
    false,
    "The session has no pi, queries do not start one, and no stored answer exists; data.reason says why.",
  ),
  answer_unknown: row(
    -32075,
    409,
    false,
    "The call asks for what is known without pi, and nothing is known; data.reason says why.",
  ),
  model_not_found: row(-32019, 400, false, "pi does not know this model."),
  startup_dialog: row(
    -32062,
    502,
    false,
    "An extension opened a dialog while pi was starting, when pi does not read answers; data.title is its title.",
  ),
  refused_by_pi: row(-32020, 409, false, "pi answered the command with a failure; data has its message."),
  unsupported_by_pi: row(-32021, 501, false, "This version of pi does not support the method or the option."),
  prompt_not_found: row(-32022, 404, false, "The prompt does not exist, or its record has expired."),
  prompt_lost: row(
    -32023,
    409,
    false,
    "pi ended and lost the prompt, or never received it; it is not resent automatically.",
  ),
  not_controller: row(
    -32024,
    409,
    false,
    "The session requires control, and this client does not have it; data names the controller, if there is one.",
  ),
  client_not_found: row(-32025, 404, false, "The client is not connected."),
  delivery_not_found: row(-32030, 404, false, "The delivery does not exist."),
  conflict: row(-32031, 409, false, "The id was already used with different content."),
  deadline_exceeded: row(-32032, 504, true, "The state was not reached before the timeout; nothing was cancelled."),
  too_large: row(-32033, 413, false, "The content, frame or body exceeds its limit."),
  wrong_state: row(-32035, 409, false, "The delivery's state does not allow it; data has the delivery."),
  outcome_unknown: row(
    -32036,
    409,
    false,
    "The daemon ended, or all waiting clients disconnected, during the call; it may have had an effect.",
  ),
  cancelled: row(-32034, 499, true, "The client cancelled the call with $/cancelRequest, or disconnected."),
  token_not_found: row(-32080, 404, false, "The token does not exist."),
  dialog_not_found: row(-32060, 404, false, "The dialog does not exist, or its record has expired."),
  stale: row(-32061, 409, false, "The dialog has already ended; data.resolution says how, and which client answered."),
  dialog_reserved: row(
    -32063,
    409,
    true,
    "Another client may answer the dialog first; data.owner names it, and data.openToOthersAt and data.retryAfterMs say when others may answer.",
  ),
  overloaded: row(-32040, 503, true, "A limit was reached; data.retryAfterMs says when to try again."),
  store_failed: row(-32042, 503, true, "The store cannot be written; nothing was accepted."),
  not_ready: row(-32043, 503, true, "The daemon is not ready; data.reasons says why, and data.checks has every check."),
  web_not_built: row(-32044, 501, false, "The files of the web console are missing; the message says what to run."),
  port_unavailable: row(-32045, 409, false, "The daemon cannot listen on the port; the message says why."),
  shutting_down: row(-32041, 503, true, "The daemon is shutting down."),
  session_in_use: row(-32050, 409, true, "Another daemon has the session's file; data.owner names it."),
  session_file_unusable: row(-32051, 409, false, "pi's session file cannot be used; data.reason says why."),
  foreign_write: row(
    -32052,
    409,
    false,
    "Another program wrote to the session's file, and the session's policy forbids continuing; data describes the change.",
  ),
  context_invalid: row(
    -32090,
    422,
    false,
    "The context cannot be converted to valid messages, or repairs are not allowed; data.code says why, data.nodeId where.",
  ),
  context_too_large: row(-32091, 413, false, "The context exceeds a limit; data.limit names it."),
  context_over_budget: row(
    -32092,
    422,
    false,
    "The context exceeds its token budget, and trimming is not allowed or not sufficient.",
  ),
  context_mode_conflict: row(-32093, 409, false, "The context's mode is not possible for this kind of session."),
  context_transport_failed: row(
    -32094,
    502,
    true,
    "The helper extension did not receive the complete context, or did not confirm it in time.",
  ),
  budget_exceeded: row(
    -32046,
    409,
    false,
    "The session's cost budget is spent, and its policy refuses further prompts; data has the budget and the amount spent.",
  ),
  phase_not_open: row(-32047, 409, false, "No open phase has this label."),
  price_unknown: row(-32048, 409, false, "The model has no prices, so a budget in USD cannot be enforced."),
  entry_not_found: row(-32095, 404, false, "The entry does not exist in the session."),
  block_not_found: row(-32096, 404, false, "The block does not exist on the session's active branch."),
  block_not_restorable: row(
    -32097,
    409,
    false,
    "The block cannot be opened or closed in its current state; the message says why.",
  ),
  transcript_changed: row(
    -32074,
    409,
    false,
    "The session's file was rewritten after the page from which the call goes on; read again from the end.",
  ),
  pruning_disabled: row(-32098, 409, false, "Pruning is off for this session, or for its model; the message says why."),
} as const satisfies Record<string, ErrorRow>;

export type ErrorName = keyof typeof errorCatalogue;

/** `error.data` of every error: the name, whether a retry can help, and additional fields of the error. */
export interface ErrorData {
  readonly name: ErrorName;
  readonly retryable: boolean;
  readonly [detail: string]: unknown;
}

/** One finding of a params check. */
export interface ParamsFinding {
  /** JSON pointer into `params`; the empty string is `params` itself. */
  readonly path: string;
  readonly message: string;
}

function row(code: number, httpStatus: number, retryable: boolean, meaning: string): ErrorRow {
  return { code, httpStatus, retryable, meaning };
}

const nameByCode: ReadonlyMap<number, ErrorName> = new Map(
  (Object.keys(errorCatalogue) as ErrorName[]).map((name) => [errorCatalogue[name].code, name]),
);

/** The catalogue's name of a code, if it has one. */
export function errorNameOf(code: number): ErrorName | undefined {
  return nameByCode.get(code);
}

/**
 * An error that crosses the wire. The daemon throws it, and the client library throws received errors as one. Its
 * message says what was attempted, why it failed, and what to do.
 */
export class WireError extends Error {
  override readonly name = "WireError";
  readonly code: number;
  readonly data: ErrorData;

  constructor(
    name: ErrorName,
    message: string,
    details: Readonly<Record<string, unknown>> = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
    const { code, retryable } = errorCatalogue[name];
    this.code = code;
    // An error can say that the same call can never succeed.
    this.data = { ...details, name, retryable: retryable && details["retryable"] !== false };
  }

  /** The name in the catalogue, for example `session_busy`. */
  get kind(): ErrorName {
    return this.data.name;
  }

  get httpStatus(): number {
    return errorCatalogue[this.kind].httpStatus;
  }
}
