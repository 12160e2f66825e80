import { cachedParam } from "./cached.ts";
import { ImageBlock } from "./content.ts";
import type { ErrorName } from "./errors.ts";
import { SessionId } from "./ids.ts";
import { Type } from "./json-schema.ts";

// Shared by several rows of the method table.

export const sessionIdOnly = params({ sessionId: SessionId });
export const sessionIdAndCached = params({ sessionId: SessionId, ...cachedParam });
export const empty = params({});
export const idempotencyKey = Type.Optional(
  Type.String({
    pattern: "^[!-~]{1,128}$",
    description:
      "With the same key and params, the first result is returned again. With the same key and other params: `conflict`.",
  }),
);
export const ifAlone = Type.Optional(
  Type.Boolean({
    default: false,
    description: "Only if no other connection follows the session: otherwise `session_busy`.",
  }),
);
/** Errors of calls that need the session's pi, and start one if necessary. */
export const childErrors = [
  "session_not_found",
  "session_closed",
  "session_lost",
  "child_exited",
  "cwd_invalid",
  "model_not_found",
  "pi_not_found",
  "pi_too_old",
  "start_failed",
  "startup_dialog",
  "unsupported_by_pi",
  "link_failed",
  "overloaded",
  "shutting_down",
  "session_in_use",
  "session_file_unusable",
  "foreign_write",
] as const satisfies readonly ErrorName[];
/** Additional errors of commands to pi. */
export const commandErrors = [...childErrors, "refused_by_pi", "too_large"] as const satisfies readonly ErrorName[];
/** Errors of queries that do not start a pi. */
export const questionErrors = [...commandErrors, "session_asleep"] as const satisfies readonly ErrorName[];
/** Errors of queries that take `cached`. */
export const cachedErrors = [...questionErrors, "answer_unknown"] as const satisfies readonly ErrorName[];
export const sessionName = Type.String({
  // Control characters and lone surrogates would differ between the daemon, pi and the store.
  pattern: "^(?!-)[^\\u0000-\\u001f\\u007f-\\u009f\\ud800-\\udfff]{1,200}$",
  description: "A name for lists, including pi's own: without control characters, and without a leading `-`.",
});
export const message = {
  sessionId: SessionId,
  text: Type.String({
    minLength: 1,
    description: "The user's text. A text that begins with `/` may be a command, template or skill of pi.",
  }),
  images: Type.Optional(Type.Array(ImageBlock, { maxItems: 64, description: "Images that are sent with the text." })),
  idempotencyKey,
};

/** Params by name; unknown names are refused. */
export function params<T extends Parameters<typeof Type.Object>[0]>(properties: T) {
  return Type.Object(properties, { additionalProperties: false });
}

/** A tool's name or pattern, in the format of pi's `--tools`. */
export function toolPattern() {
  return Type.String({ pattern: "^[+A-Za-z_][A-Za-z0-9_.*:-]{0,127}$" });
}
