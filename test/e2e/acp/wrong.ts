import { acpFindings } from "../../helpers/acp-schema.ts";

type Json = Readonly<Record<string, unknown>>;

/** The definitions of what an agent sends, by method. */
const answers: Readonly<Record<string, string>> = {
  initialize: "InitializeResponse",
  authenticate: "AuthenticateResponse",
  "session/new": "NewSessionResponse",
  "session/load": "LoadSessionResponse",
  "session/resume": "ResumeSessionResponse",
  "session/list": "ListSessionsResponse",
  "session/close": "CloseSessionResponse",
  "session/delete": "DeleteSessionResponse",
  "session/set_mode": "SetSessionModeResponse",
  "session/set_config_option": "SetSessionConfigOptionResponse",
  "session/prompt": "PromptResponse",
};
const asked: Readonly<Record<string, string>> = {
  "session/update": "SessionNotification",
  "session/request_permission": "RequestPermissionRequest",
  "elicitation/create": "CreateElicitationRequest",
  "$/cancel_request": "CancelRequestNotification",
};

/** How a message of the agent is not one of the protocol; undefined if it is. `of`: the method that it answers. */
export function wrongIn(message: Json, of: string | undefined): string | undefined {
  const { method, params, result, error } = message;
  if (message["jsonrpc"] !== "2.0") return "It is not JSON-RPC.";
  if (typeof method === "string") {
    const definition = asked[method];
    return definition === undefined ? `There is no method ${method}.` : found(definition, params);
  }
  if (error !== undefined) return found("Error", error);
  const definition = answers[of ?? ""];
  // Answers of our own methods are any objects, as those of session/set_model, which is older than the schema.
  return definition === undefined ? undefined : found(definition, result);
}

function found(definition: string, value: unknown): string | undefined {
  return acpFindings(definition, value)[0];
}
