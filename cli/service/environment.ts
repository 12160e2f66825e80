import { UsageError } from "../errors.ts";

/** Variables that a daemon without a shell needs; the user is asked for the others. */
const usual =
  /^(?:PATH|LANG|LC_ALL|SHELL|NODE_EXTRA_CA_CERTS|(?:HTTPS?|NO|ALL)_PROXY|(?:https?|no|all)_proxy|PI_[A-Z_]+|XDG_(?:CONFIG|DATA|STATE|CACHE)_HOME)$/;
/** Variables with pi's logins. */
const secret = /(?:_API_KEY|_TOKEN|_SECRET|_ACCESS_KEY(?:_ID)?|_CREDENTIALS|_AUTH)$/;
const name = /^[A-Za-z_][A-Za-z0-9_]*$/;

export interface Candidates {
  /** Kept unless the user excludes them. */
  readonly usual: readonly string[];
  /** Secrets: kept only if named. */
  readonly secrets: readonly string[];
}

/** The variables of this environment that may be kept. */
export function candidates(env: NodeJS.ProcessEnv): Candidates {
  const names = Object.keys(env).filter((each) => name.test(each) && isOneLine(env[each]));
  const isSecret = (each: string): boolean => secret.test(each) && !/^(?:SSH_|GPG_|DBUS_|XAUTH)/.test(each);
  return {
    usual: names.filter((each) => usual.test(each) && !isSecret(each) && each !== "PI_RPCD_STATE_DIR").sort(),
    secrets: names.filter(isSecret).sort(),
  };
}

/** Returns the kept variables. Throws a {@link UsageError} for an invalid name or a variable that is not set. */
export function kept(env: NodeJS.ProcessEnv, names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...new Set(names)].map((each) => {
      const value = env[each];
      if (!name.test(each)) throw new UsageError(`"${each}" is not a valid name of a variable.`, "service");
      if (value === undefined) throw new UsageError(`${each} is not set, so it cannot be kept.`, "service");
      if (!isOneLine(value)) throw new UsageError(`${each} has more than one line, so it cannot be kept.`, "service");
      return [each, value];
    }),
  );
}

/** Whether a value has no control character, which would end the line or the file of a service. */
export function isOneLine(value: string | undefined): boolean {
  return value !== undefined && !/\p{Cc}/u.test(value);
}
