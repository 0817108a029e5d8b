// Rate limits and quotas: fixed windows, counted by rule and key.

/**
 * No call fails because a store is unavailable, or waits for it: meanwhile, an implementation with shared windows counts
 * per process.
 */
export interface Quota {
  /** Takes a unit from the window of `key`. Refused units count too; a retry can succeed after `resetMs`. */
  take(rule: QuotaRule, key: string): Promise<QuotaState>;
  /** The state that `take` would return, without taking. */
  look(rule: QuotaRule, key: string): Promise<QuotaState>;
}

export type QuotaRule = { readonly name: string; readonly windowMs: number; readonly maxRequests: number };

export type QuotaState = {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** ms until the window ends. */
  readonly resetMs: number;
};
