import type { tokenMethods } from "../../../protocol/token-methods.ts";
import type { Call, HandlersOf } from "../call.ts";
import type { Tokens } from "../tokens.ts";

export function tokenHandlers(tokens: Tokens): HandlersOf<typeof tokenMethods> {
  return {
    "token/create": (params) => tokens.create(params),
    "token/list": () => tokens.list(),
    "token/rotate": ({ name }, call) => tokens.rotate(name, afterwards(call)),
    "token/revoke": ({ name }, call) => {
      tokens.revoke(name, afterwards(call));
      return {};
    },
  };
}

/** Calls a function when the call has been answered. */
function afterwards(call: Call): (then: () => void) => void {
  return (then) => {
    if (call.whenAnswered === undefined) setImmediate(then);
    else call.whenAnswered(then);
  };
}
