// Interleaved comparison (A-B-A-B): a machine that is slow for a while is slow for both sides. A turn that did not
// handle everything throws, so that no figure of it is printed.

/** Median, least and greatest of a side's turns. */
export type Spread = { readonly median: number; readonly least: number; readonly most: number };

/** One line of the table: our figure, the peer's of the same run, and how they compare. */
export type Row = {
  /** `P1`; selects the row on the command line. */
  readonly measure: string;
  readonly title: string;
  readonly unit: string;
  readonly peer: string;
  readonly ours: Spread;
  readonly peers: Spread;
  /** ours / peer of each round; ours - peer if `goal` is a difference; ours if the goal is absolute. */
  readonly compared: Spread;
  readonly goal: Goal;
  /** null: there is no goal. */
  readonly reached: boolean | null;
};

export type Goal = {
  readonly kind: 'ratio' | 'difference' | 'absolute';
  readonly at: 'least' | 'most';
  readonly value: number | null;
};
/** The ratio is printed for information. */
export const NO_GOAL: Goal = { kind: 'ratio', at: 'least', value: null };
export const ratioAtLeast = (value: number): Goal => ({ kind: 'ratio', at: 'least', value });
export const ratioAtMost = (value: number): Goal => ({ kind: 'ratio', at: 'most', value });
export const differenceAtMost = (value: number): Goal => ({ kind: 'difference', at: 'most', value });
export const absoluteAtMost = (value: number): Goal => ({ kind: 'absolute', at: 'most', value });

/** `full`: for results. `quick`: the same with fewer calls and rounds. `smoke`: shows only that every measure runs. */
export const SIZES = ['full', 'quick', 'smoke'] as const;
export type Size = (typeof SIZES)[number];

export type Options = {
  /** How many calls, events or jobs a run of this size has. */
  readonly count: (full: number, quick: number, smoke: number) => number;
  /** Rounds that are counted. */
  readonly rounds: number;
  readonly say: (line: string) => void;
};

export const ROUNDS: Readonly<Record<Size, number>> = { full: 5, quick: 2, smoke: 1 };

/** A point of the plot: calls/s at a concurrency, or a growth ratio at a size. */
export type Point = { readonly series: string; readonly x: number; readonly y: number };

export type Outcome = {
  readonly rows: readonly Row[];
  /** What each peer is, and which rows are copies made by SQL: printed under the table and stored in bench.json. */
  readonly notes: readonly string[];
  readonly points?: readonly Point[];
};

export type Measure = {
  readonly name: string;
  readonly title: string;
  run(options: Options): Promise<Outcome>;
};

export function row(
  titles: Pick<Row, 'measure' | 'title' | 'unit' | 'peer'>,
  goal: Goal,
  rounds: readonly { readonly ours: number; readonly peer: number }[],
): Row {
  const compared = spread(
    rounds.map(({ ours, peer }) =>
      goal.kind === 'ratio' ? ours / peer : goal.kind === 'difference' ? ours - peer : ours,
    ),
  );
  return {
    ...titles,
    ours: spread(rounds.map(({ ours }) => ours)),
    peers: spread(rounds.map(({ peer }) => peer)),
    compared,
    goal,
    reached: isReached(goal, compared.median),
  };
}

function isReached({ at, value }: Goal, median: number): boolean | null {
  if (value === null) return null;
  return at === 'least' ? median >= value : median <= value;
}

/** Runs the sides in turn, `rounds` times, after one turn each that does not count (caches, compiled code). */
export async function interleaved<Side extends string, T>(
  { rounds: count, say }: Pick<Options, 'rounds' | 'say'>,
  sides: Readonly<Record<Side, () => Promise<T>>>,
  title = '',
): Promise<Readonly<Record<Side, T>>[]> {
  const names = Object.keys(sides) as Side[];
  const round = async () => {
    const found = {} as Record<Side, T>;
    for (const name of names) found[name] = await sides[name]();
    return found;
  };
  await round();
  const rounds: Record<Side, T>[] = [];
  for (let n = 1; n <= count; n++) {
    rounds.push(await round());
    say(`${title}${title === '' ? '' : ': '}round ${n} of ${count}`);
  }
  return rounds;
}

/** ms of `work`. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  return { median: quantile(sorted, 0.5), least: sorted[0] ?? Number.NaN, most: sorted.at(-1) ?? Number.NaN };
}

/** Linear interpolation between the closest ranks of sorted values. */
export function quantile(sorted: readonly number[], q: number): number {
  const at = (sorted.length - 1) * q;
  const low = sorted[Math.floor(at)] ?? Number.NaN;
  const high = sorted[Math.ceil(at)] ?? Number.NaN;
  return low + (high - low) * (at - Math.floor(at));
}
