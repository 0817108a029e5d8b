// Rate limits and quotas: fixed windows, counted by rule and key.

/** No call fails or waits for a store: an implementation that shares its windows counts alone while it cannot. */
export interface Quota {
  /** Takes `units` (1) from the window of `key`. Refused units count too; `resetMs` is when to try again. */
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
