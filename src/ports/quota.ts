// Rate limits and quotas: fixed windows, counted by rule and key.

/**
 * No call fails because a store is unavailable, or waits for it: meanwhile, an implementation with shared windows counts
 * per process.
 */
export interface Quota {
  /** Takes `units` (1) from the window of `key`. Refused units count too; a retry can succeed after `resetMs`. */
  take(rule: QuotaRule, key: string, units?: number): Promise<QuotaState>;
  /** The state that `take` of one unit would return, without taking. */
  look(rule: QuotaRule, key: string): Promise<QuotaState>;
  /** Returns `units` (1) to the window of `key`, if it is still open. */
  giveBack(rule: QuotaRule, key: string, units?: number): Promise<void>;
}

export type QuotaRule = { readonly name: string; readonly windowMs: number; readonly maxRequests: number };

export type QuotaState = {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** ms until the window ends. */
  readonly resetMs: number;
};
