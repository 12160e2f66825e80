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
  method_not_found: row(-32601, 404, false, "There is no such method."),
  invalid_params: row(-32602, 400, false, "The params do not match the method's schema; each finding names its path."),
  internal_error: row(-32603, 500, false, "The daemon failed; its log has the cause."),
  unauthorized: row(-32001, 401, false, "No token, or a wrong one."),
  forbidden: row(
    -32002,
    403,
    false,
    "Understood and refused: a foreign Host or Origin, a command that is not for clients, or a capability that the token lacks; data.needs names it.",
  ),
  session_not_found: row(-32010, 404, false, "No session has this id."),
  session_busy: row(
    -32011,
    409,
    true,
    "The session is running (or compacting) and the call did not say what to do then.",
  ),
  run_mismatch: row(
    -32028,
    409,
    false,
    "The run that the call expects is not on; data.runId is the one that is, if any.",
  ),
  session_idle: row(-32029, 409, false, "No run is on, and the call said that it is only for one."),
  session_closed: row(-32012, 410, false, "The session was closed while the call was under way."),
  child_exited: row(-32013, 502, true, "The session's pi process ended before it answered."),
  start_failed: row(-32014, 502, false, "pi could not be started for this session; data has its last words."),
  link_failed: row(-32015, 502, false, "pi runs, but the helper extension did not load or does not answer."),
  pi_not_found: row(-32016, 502, false, "There is no pi where the daemon looked."),
  pi_too_old: row(-32017, 502, false, "The pi that was found is older than the oldest one supported."),
  cwd_invalid: row(-32018, 400, false, "The working directory is missing, is no directory, or may not be entered."),
  path_invalid: row(
    -32070,
    400,
    false,
    "A file or directory that pi is to be started with is missing or cannot be read; data has which.",
  ),
  profile_not_found: row(-32071, 400, false, "The daemon's configuration has no such profile."),
  session_lost: row(-32072, 410, false, "The session was kept in its pi's memory alone, and that pi has ended."),
  session_asleep: row(
    -32073,
    409,
    false,
    "The session has no pi, a question starts none, and the answer is not known; data.reason says why.",
  ),
  model_not_found: row(-32019, 400, false, "pi does not know this model."),
  startup_dialog: row(
    -32062,
    502,
    false,
    "An extension asked a question while pi started, when pi reads no answer; data.title has it.",
  ),
  refused_by_pi: row(-32020, 409, false, "pi answered the command with a failure; data has its words."),
  unsupported_by_pi: row(-32021, 501, false, "This pi lacks what the method needs."),
  prompt_not_found: row(-32022, 404, false, "No prompt has this id, or it was forgotten."),
  prompt_lost: row(
    -32023,
    409,
    false,
    "pi ended and lost the prompt, or never got it; it is not sent again by itself.",
  ),
  not_controller: row(-32024, 409, false, "Another client controls the session, or nobody does; data says who."),
  client_not_found: row(-32025, 404, false, "No client with this id is connected."),
  delivery_not_found: row(-32030, 404, false, "No delivery has this id."),
  conflict: row(-32031, 409, false, "The id was used before with other content."),
  deadline_exceeded: row(-32032, 504, true, "The state was not reached in time; nothing was cancelled."),
  too_large: row(-32033, 413, false, "The content, frame or body exceeds its limit."),
  wrong_state: row(-32035, 409, false, "The delivery's state does not allow it; data has the delivery."),
  outcome_unknown: row(
    -32036,
    409,
    false,
    "The daemon ended, or all who waited had gone, while the call was under way; it may have taken effect.",
  ),
  cancelled: row(-32034, 499, true, "The caller cancelled the call with $/cancelRequest, or went away."),
  token_not_found: row(-32080, 404, false, "No token has this name."),
  dialog_not_found: row(-32060, 404, false, "No dialog has this id, or it was forgotten."),
  stale: row(-32061, 409, false, "The dialog has ended already; data.resolution says how, and who has answered."),
  dialog_reserved: row(
    -32063,
    409,
    true,
    "The dialog belongs to another client first; data.owner names it, data.openToOthersAt and data.retryAfterMs say when others may answer.",
  ),
  overloaded: row(-32040, 503, true, "A bound was reached; data.retryAfterMs says when to try again."),
  store_failed: row(-32042, 503, true, "The store could not be written; nothing was accepted."),
  not_ready: row(
    -32043,
    503,
    true,
    "The daemon cannot do its work now; data.reasons says why, and data.checks how everything is.",
  ),
  shutting_down: row(-32041, 503, true, "The daemon is about to end."),
  session_in_use: row(-32050, 409, true, "Another daemon has the session's file; data.owner says which."),
  session_file_unusable: row(-32051, 409, false, "pi's session file cannot be used; data.reason says why."),
  foreign_write: row(
    -32052,
    409,
    false,
    "Another program has written to the session's file, and the session's policy does not let it go on; data says what was found.",
  ),
  context_invalid: row(
    -32090,
    422,
    false,
    "The context cannot be made into sound messages, or may not be repaired; data.code says why, data.nodeId where.",
  ),
  context_too_large: row(-32091, 413, false, "The context exceeds a limit; data.limit names it."),
  context_over_budget: row(
    -32092,
    422,
    false,
    "The context needs more tokens than its budget, and may not or cannot be trimmed to it.",
  ),
  context_mode_conflict: row(-32093, 409, false, "The context's mode does not fit the way the session is kept."),
  context_transport_failed: row(
    -32094,
    502,
    true,
    "The context did not reach the helper extension whole, or was not confirmed in time.",
  ),
  budget_exceeded: row(
    -32046,
    409,
    false,
    "What the session may cost is spent, and its budget stops it; data has the budget and what was spent.",
  ),
  phase_not_open: row(-32047, 409, false, "No phase of this label is open."),
  price_unknown: row(-32048, 409, false, "The model has no prices, so that no budget in USD can be kept."),
  entry_not_found: row(-32095, 404, false, "The session has no entry with this id."),
  block_not_found: row(-32096, 404, false, "The session's active branch has no block with this id."),
  block_not_restorable: row(
    -32097,
    409,
    false,
    "The block cannot be opened or closed as it stands; the message says why.",
  ),
  pruning_disabled: row(-32098, 409, false, "Pruning is off for this session, or for its model; the message says why."),
} as const satisfies Record<string, ErrorRow>;

export type ErrorName = keyof typeof errorCatalogue;

/** `error.data` of every error: the name, whether a retry can help, and what the error has to add. */
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
 * An error that crosses the wire. The daemon throws it, the client library throws what it received as one.
 * Its message reads as help: what was attempted, why it failed, what to do.
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
    // What the same call can never come to may say so itself.
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
