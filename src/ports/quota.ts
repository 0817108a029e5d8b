// How often: fixed windows, counted per name.

export interface Quota {
  /** Takes `units` from `key`'s window; `allowed` false takes nothing back and says when to come again. */
  take(rule: QuotaRule, key: string, units?: number): Promise<QuotaState>;
  /** The same answer as `take` of one unit would give, without taking. */
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
