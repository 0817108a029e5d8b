// Ours and the peer's turn by turn, in one process and over the same data: a machine that is slow for a while is slow
// for both. A round that did not handle everything throws, so that no rate is printed of it.

/** One turn: what was handled, and in how many ms. */
export type Turn = { readonly handled: number; readonly ms: number };

export type Compared = {
  readonly name: string;
  readonly title: string;
  readonly unit: string;
  readonly peer: string;
  /** The least ratio that performance promises. */
  readonly goal: number;
  readonly rounds: readonly { readonly ours: number; readonly peer: number; readonly ratio: number }[];
};

export type Size = { readonly quick: boolean };

export type Measure = {
  readonly name: string;
  run(size: Size, say: (line: string) => void): Promise<Compared>;
};

type Sides = { readonly ours: () => Promise<Turn>; readonly peer: () => Promise<Turn> };

/** One of each before, not counted: caches, compiled code. Rates in handled per second. */
export async function rounds(
  count: number,
  handled: number,
  sides: Sides,
  say: (line: string) => void,
): Promise<Compared['rounds']> {
  const rate = async (side: keyof Sides) => {
    const turn = await sides[side]();
    if (turn.handled !== handled) throw new Error(`${side} handled ${turn.handled} of ${handled}`);
    return turn.handled / (turn.ms / 1000);
  };
  await rate('ours');
  await rate('peer');
  const found: Compared['rounds'][number][] = [];
  for (let n = 1; n <= count; n++) {
    const ours = await rate('ours');
    const peer = await rate('peer');
    found.push({ ours, peer, ratio: ours / peer });
    say(`round ${n} of ${count}: ours ${Math.round(ours)}, peer ${Math.round(peer)}`);
  }
  return found;
}

/** ms of `work`. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

/** Median, least and greatest. */
export function spread(values: readonly number[]): {
  readonly median: number;
  readonly least: number;
  readonly most: number;
} {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (index: number) => sorted[index] ?? Number.NaN;
  const [low, high] = [Math.floor((sorted.length - 1) / 2), Math.ceil((sorted.length - 1) / 2)];
  return { median: (at(low) + at(high)) / 2, least: at(0), most: at(sorted.length - 1) };
}
