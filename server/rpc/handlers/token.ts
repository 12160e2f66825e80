import type { tokenMethods } from "../../../protocol/token-methods.ts";
import type { HandlersOf } from "../call.ts";
import type { Tokens } from "../tokens.ts";

export function tokenHandlers(tokens: Tokens): HandlersOf<typeof tokenMethods> {
  return {
    "token/create": (params) => tokens.create(params),
    "token/list": () => tokens.list(),
    "token/rotate": ({ name }) => tokens.rotate(name),
    "token/revoke": ({ name }) => {
      tokens.revoke(name);
      return {};
    },
  };
}
