// The form in which a limit is told.

/** In `unit`; `default` where a caller may leave it out. */
export type LimitTold = {
  readonly name: string;
  readonly unit: string;
  readonly min: number | null;
  readonly max: number;
  readonly default: number | null;
  readonly meaning: string;
  /** What a caller gets who goes beyond it. */
  readonly beyond: string;
};

type Range = { readonly min: number; readonly max: number; readonly default?: number | null };
type Told = Pick<LimitTold, 'unit' | 'meaning' | 'beyond'>;

export const upTo = (name: string, max: number, told: Told): LimitTold => ({
  name,
  ...told,
  min: null,
  max,
  default: null,
});
export const range = (name: string, { min, max, default: usual = null }: Range, told: Told): LimitTold => ({
  name,
  ...told,
  min,
  max,
  default: usual,
});

export const INVALID = '400 invalid_request; nothing is clamped.';
