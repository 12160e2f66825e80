/**
 * Capabilities of a token. `observe`: reading; `prompt`: operating sessions (prompts, pushes, dialogs, life cycle);
 * `bash`: direct shell commands and exports; `payload`: complete requests to the provider; `admin`: all of these,
 * session options that run code, commands that the daemon does not know, and tokens.
 */
export const capabilities = ["observe", "prompt", "bash", "payload", "admin"] as const;
export type Capability = (typeof capabilities)[number];
