import { type HttpCallOptions, httpCall } from "../client/http-client.ts";

/** A token without its secret. */
export interface TokenFacts {
  readonly name: string;
  readonly capabilities: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly cwds?: readonly string[];
  readonly createdAt: number;
  readonly rotatedAt?: number;
  readonly lastUsedAt?: number;
}

/** A token with its secret, which is told once. */
export interface NewToken extends TokenFacts {
  readonly token: string;
}

/** The calls about tokens. */
interface TokenCalls {
  readonly "token/create": readonly [params: Omit<TokenFacts, "createdAt">, result: NewToken];
  readonly "token/list": readonly [params: Record<string, never>, result: { readonly tokens: readonly TokenFacts[] }];
  readonly "token/rotate": readonly [params: { readonly name: string }, result: NewToken];
  readonly "token/revoke": readonly [params: { readonly name: string }, result: Record<string, never>];
}

export const tokenCall = httpCall as unknown as <M extends keyof TokenCalls>(
  method: M,
  params: TokenCalls[M][0],
  options: HttpCallOptions,
) => Promise<TokenCalls[M][1]>;
